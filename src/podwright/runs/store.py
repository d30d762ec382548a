"""PODWRIGHT_HOME: where all state is, and the only code that makes or removes run folders."""

from __future__ import annotations

import errno
import io
import os
import re
import shutil
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from io import BufferedIOBase
from pathlib import Path
from typing import Any

from podwright.files.untrusted import read_untrusted
from podwright.files.whole import make_private, write_whole
from podwright.pilot.protocol import field_lines, whole_number
from podwright.runs.damaged import closed_record, stand_in_record, stray_record, why_unreadable
from podwright.runs.events import Event
from podwright.runs.fold import Fold
from podwright.runs.folder import RunFolder, Tail
from podwright.runs.index import Index, index_path
from podwright.runs.labels import labels_of
from podwright.runs.ownership import check_owner, take_from_others
from podwright.runs.record import Asked, Record, sum_up
from podwright.runs.shared_files import clear_unused, keep_file, place
from podwright.spec.problems import Refusal, refuse, short

LAYOUT = 1
KEEP_S = 5.0
MAX_KEPT = 50_000
"""Runs whose record is kept in memory, by a client that lives for weeks."""
ID = re.compile(r"[a-z0-9-]{1,200}")
LETTERS = "23456789abcdefghjkmnpqrstvwxyz"
"""No two that look alike: ids are read aloud and typed."""
CREATE_S = 30.0
"""How long a client may take to write the folders of a run's points."""
NEVER_SUBMITTED = "the client that started it died before it was submitted"


def default_home() -> Path:
    """Return PODWRIGHT_HOME, else the user's own folder for data."""
    given = os.environ.get("PODWRIGHT_HOME")
    if given:
        try:
            return Path(given).expanduser().absolute()
        except RuntimeError:
            raise refuse(f"PODWRIGHT_HOME is {given}, and there is no such user", hint="set it to a folder") from None
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "podwright"


def check_layout(version: Path, text: str) -> None:
    """Refuse a home whose file `version` holds no number, or that of a layout which only a newer Podwright knows."""
    layout = whole_number(text)
    if layout is None:
        raise refuse(f"{version} is damaged: it should hold a number", hint=f"write {LAYOUT} into it")
    if layout > LAYOUT:
        raise refuse(
            f"{version.parent} was written by a newer Podwright (layout {layout}, this one knows {LAYOUT})",
            hint="update Podwright, or set PODWRIGHT_HOME to another folder",
        )


class Home:
    """Constructing it touches nothing; `open` makes the folder, or says why it cannot.

    Several threads may read records at once: what was read before is kept, one thread at a time adds to it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runs = path / "runs"
        self.code = path / "code"
        self._index: Index | None = None
        self._folds: dict[str, tuple[Fold, Tail[Event]]] = {}
        self._folders: dict[str, RunFolder] = {}
        self._kept: dict[str, tuple[str, float]] = {}
        self._lock = threading.RLock()

    @classmethod
    def open(cls, path: Path | None = None) -> Home:
        """Return the home at a path, by default `default_home`, made when it is not there yet."""
        home = cls(Path(path or default_home()).absolute())
        home._prepare()
        return home

    def _prepare(self) -> None:
        version = self.path / "version"
        try:
            check_owner(self.path)
            text = read_untrusted(self.path, "version").decode("utf-8", "replace").strip()
        except FileNotFoundError:
            self._make(version)
            return
        except OSError as error:
            raise home_refusal(self.path, error) from None
        check_layout(version, text)
        try:
            take_from_others(self.path)
        except OSError as error:
            raise home_refusal(self.path, error) from None
        if not self.runs.is_dir():  # removed by hand
            self._make(version)

    def _make(self, version: Path) -> None:
        try:
            for path in (self.path, self.runs, self.code):
                path.mkdir(parents=True, exist_ok=True, mode=0o700)
            take_from_others(self.path)
            write_whole(version, f"{LAYOUT}\n".encode())
        except OSError as error:
            raise home_refusal(self.path, error) from None

    @property
    def index(self) -> Index:
        """Return the index of all runs, opened when it is first asked."""
        with self._lock:
            if self._index is None:
                self._index = Index(index_path(self.path), self.sync)
            return self._index

    def folder(self, run_id: str) -> RunFolder:
        """Return the folder of a run, whether it is there or not."""
        with self._lock:
            if run_id not in self._folders:
                _make_room(self._folders)
                self._folders[run_id] = RunFolder(self.runs / run_id, in_home=True)
            return self._folders[run_id]

    def keep(self, records: Iterable[Record]) -> None:
        """Put records into the index: at once when a state changed, else every few seconds."""
        now = time.monotonic()
        due = []
        with self._lock:
            for record in records:
                state, at = self._kept.get(record.id, ("", 0.0))
                if record.state != state or now - at > KEEP_S:
                    _make_room(self._kept)
                    self._kept[record.id] = (record.state, now)
                    due.append(record)
        self.index.put(due)

    def new_id(self, name: str) -> str:
        """Return a name nobody has; taking it is the rename in `create`, which only one client can win."""
        import secrets  # with OpenSSL behind it, which takes milliseconds

        while True:
            candidate = f"{name}-{''.join(secrets.choice(LETTERS) for _ in range(4))}"
            if not (self.runs / candidate).exists():
                return candidate

    def create(
        self, asked: Asked, files: Mapping[str, bytes], links: Mapping[str, Path], root: Path | None = None
    ) -> RunFolder:
        """Make a run's folder, which appears whole at once: a client killed here leaves a run or nothing.

        With a `root`, where the nodes of a cluster see it, the folder lies there and the home holds a link to it. What
        a point is can be told from its parent, so that only the parent's file is waited for to be on disk.
        """
        part = (root or self.runs) / f".{asked.id}.{os.getpid()}.part"
        try:
            part.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            _fill(part, asked, files, links)
            part.rename(part.parent / asked.id)
            if root is not None and root != self.runs:
                (self.runs / asked.id).symlink_to(root / asked.id)
        except OSError as error:
            shutil.rmtree(part, ignore_errors=True)
            raise home_refusal(self.path, error) from None
        return self.folder(asked.id)

    def store(self, content: bytes | BufferedIOBase, name: str) -> Path:
        """Return a file that runs share, named by its content; one that is missing or damaged is written."""
        if isinstance(content, bytes):
            content = io.BytesIO(content)
        try:
            return keep_file(self.code, content, name)
        except OSError as error:
            raise home_refusal(self.path, error) from None

    def remove(self, run_id: str) -> list[str]:
        """Take a run out of sight at once, then delete it; code that no run holds any more goes with it.

        Where its folder is a link to anything but that run the link alone goes, which is said in a sentence.
        """
        left = _delete_entry(self.runs / run_id)
        self.index.drop([run_id])
        with self._lock:
            for cache in (self._folds, self._folders, self._kept):
                cache.pop(run_id, None)
        clear_unused(self.code)
        return left

    def read(self, run_id: str) -> Record:
        """Return the record as the folder has it now; what was read before is not read again."""
        folder = self.folder(run_id)
        asked = folder.asked
        if asked.points:
            return self._read_parent(asked, folder)
        with self._lock:
            if run_id not in self._folds:
                _make_room(self._folds)
                self._folds[run_id] = (Fold(asked, str(folder.path)), folder.event_tail())
            fold, tail = self._folds[run_id]
            if tail.begin_anew():
                fold = Fold(asked, str(folder.path))
                self._folds[run_id] = (fold, tail)
            fold.take(tail.rows())
            record = fold.record(time.time())
        if record.is_final or not folder.is_sealed:
            return record
        return closed_record(folder, record)

    def read_anyway(self, run_id: str) -> Record:
        """Return the record, or what can be said of a run whose own files say nothing: no run may hide the others."""
        folder = self.folder(run_id)
        try:
            if folder.is_readable:
                return self.read(run_id)
            if folder.strayed_to is not None:
                return stray_record(folder)
            reason = why_unreadable(folder)
        except Exception as error:
            reason = f"its record cannot be read: {type(error).__name__}: {error}"
        last = self._last_known(run_id)
        if last is None and not os.path.lexists(folder.path):
            raise refuse(f"there is no run {run_id!r}", hint="`podwright ps --all` lists them")
        return stand_in_record(folder, last, reason)

    def _last_known(self, run_id: str) -> Record | None:
        with self._lock:
            if run_id in self._folds:
                return self._folds[run_id][0].record(time.time())
        return self.index.record(run_id)

    def _read_parent(self, asked: Asked, folder: RunFolder) -> Record:
        points = [self.read_anyway(point) for point in asked.point_ids if self.is_there(point)]
        labels = labels_of(folder.client_events())
        parent = replace(sum_up(asked, str(folder.path), points), tags=labels.tags, note=labels.note)
        # A client writes the parent first. One that was killed before it wrote a point leaves a run that nobody starts.
        if not points and time.time() - asked.created_at > CREATE_S:
            return replace(parent, state="lost", reason=NEVER_SUBMITTED, ended_at=asked.created_at)
        return parent

    def left_out(self, run_id: str) -> int:
        """Return how many events of a run could not be understood, among those that were read so far."""
        if run_id not in self._folds:
            return 0
        _, tail = self._folds[run_id]
        return tail.left_out

    def has(self, run_id: str) -> bool:
        """Return whether there is a run of this id."""
        return (self.runs / run_id / "run.json").exists()

    def is_there(self, run_id: str) -> bool:
        """Return whether there is a folder of this id, whether it says what was asked or not."""
        return os.path.lexists(self.runs / run_id)

    def all_ids(self) -> Iterator[str]:
        """Yield the ids of all runs, points too, in no order."""
        with os.scandir(self.runs) as entries:
            for entry in entries:
                # A link leads to where the nodes of a cluster see the run, which may be away just now.
                if ID.fullmatch(entry.name) and (entry.is_symlink() or entry.is_dir()):
                    yield entry.name

    def sync(self) -> None:
        """Take up runs that others made or removed; costs one stat when there are none."""
        runs_ns = self.runs.stat().st_mtime_ns
        if self.index.seen_ns() == runs_ns:
            return
        there, known = set(self.all_ids()), self.index.ids()
        self.index.drop(known - there)
        self.index.put(self._records(there - known))
        if time.time_ns() - runs_ns > 2_000_000_000:  # a folder made within the clock's grain must not be overlooked
            self.index.see(runs_ns)

    def _records(self, ids: set[str]) -> Iterator[Record]:
        """Yield the records of these runs; a folder that cannot be read does not hide the others."""
        for run_id in ids:
            with suppress(Refusal):  # another client has just removed it
                yield self.read_anyway(run_id)

    def rebuild(self) -> int:
        """Make the index again and return how many runs it has; what killed clients left half made or removed goes."""
        for path in self.runs.glob(".*"):
            if path.suffix in (".part", ".gone") and time.time() - path.lstat().st_mtime > 3600:
                shutil.rmtree(path, ignore_errors=True)
        self.index.forget()
        self.sync()
        return len(self.index.ids())

    def resolve(self, ref: str) -> str:
        """Return the id a user means: whole, an unambiguous start, or `last`."""
        if not ID.fullmatch(ref):
            raise refuse(f"there is no run {short(ref)!r}", hint="`podwright ps --all` lists them")
        if self.is_there(ref):
            return ref
        self.sync()
        if ref == "last":
            last = self.index.last_id()
            if last is None:
                raise refuse("there is no run yet", hint="start one with `podwright run WORKLOAD`")
            return last
        matches = self.index.starting_with(ref)
        if len(matches) == 1:
            return matches[0]
        if not matches:
            raise refuse(f"there is no run {ref!r}", hint="`podwright ps --all` lists them")
        raise refuse(f"{ref!r} may be any of {', '.join(matches[:6])}", hint="give more of the id")


@contextmanager
def taking_up(home: Home, ids: Iterable[str]) -> Iterator[dict[str, Path]]:
    """Give folders to fill that become those of runs at the block's end, in this order, or none of them does."""
    parts, there = {run_id: home.runs / f".{run_id}.{os.getpid()}.part" for run_id in ids}, list[Path]()
    try:
        for part in parts.values():
            part.mkdir(mode=0o700)
        yield parts
        for run_id, part in parts.items():
            there.append(part.rename(home.runs / run_id))
    except BaseException:
        for folder in there:
            _delete(folder)
        raise
    finally:
        for part in parts.values():
            shutil.rmtree(part, ignore_errors=True)


def _delete_entry(entry: Path) -> list[str]:
    """Delete a run, and the link to it where it lies elsewhere; return what the link led to that is left."""
    if not entry.is_symlink():
        _delete(entry)
        return []
    left = []
    if RunFolder(entry, in_home=True).is_readable:
        _delete(entry.resolve())
    else:
        left.append(f"{entry.readlink()} is left as it is: no run of this name can be read there")
    entry.unlink(missing_ok=True)
    return left


def _delete(folder: Path) -> None:
    gone = folder.parent / f".{folder.name}.{os.getpid()}.gone"
    with suppress(FileNotFoundError):  # another client was faster
        folder.rename(gone)
    shutil.rmtree(gone, ignore_errors=True)


def _make_room(cache: dict[str, Any]) -> None:
    """Forget what was kept first where a cache is full: it is read again when it is asked for."""
    if len(cache) >= MAX_KEPT:
        del cache[next(iter(cache))]


def _fill(folder: Path, asked: Asked, files: Mapping[str, bytes], links: Mapping[str, Path]) -> None:
    """Write a run's folder, which nobody sees yet."""
    folder.mkdir(mode=0o700)
    for inner in {name.rpartition("/")[0] for name in (*files, *links)} - {""}:
        make_private(folder / inner)
    for name, data in files.items():
        _write(f"{folder}/{name}", data)
    for name, source in links.items():
        place(source, folder / name)
    data = field_lines(asked.as_json()).encode()
    if asked.parent is None:
        write_whole(folder / "run.json", data)
    else:
        _write(f"{folder}/run.json", data)


def _write(path: str, data: bytes) -> None:
    """Write a file; with plain strings, since a matrix of a thousand points comes here some thousand times."""
    mode = 0o600
    if path.endswith(".sh"):
        mode = 0o700
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, mode)
    with os.fdopen(file, "wb") as opened:
        opened.write(data)


def home_refusal(path: Path, error: OSError) -> Refusal:
    """Return what is wrong with the folder that holds all state, in words."""
    hints = {
        errno.ENOSPC: "free some space, or set PODWRIGHT_HOME to a folder on another disk",
        errno.EDQUOT: "free some of your quota, or set PODWRIGHT_HOME to a folder elsewhere",
        errno.EROFS: "set PODWRIGHT_HOME to a folder that can be written",
        errno.EACCES: "set PODWRIGHT_HOME to a folder of your own",
        errno.EPERM: "set PODWRIGHT_HOME to a folder of your own",
    }
    hint = hints.get(error.errno or 0, "set PODWRIGHT_HOME to another folder")
    return refuse(f"{path} cannot be written: {(error.strerror or str(error)).lower()}", hint=hint)
