"""What ranks left in the folder they started in: found, and kept beside the run's results.

The folder is listed before the first rank starts. After the last one ended, what is new or changed goes to
`results/workdir`: moved where that is the same file system, else copied, within a bound of bytes and of time.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import threading
import time
from contextlib import suppress
from typing import Any, BinaryIO, Callable, Dict, Iterator, List, NamedTuple, Optional, Tuple

from ..protocol import fits
from ..system.paths import make_private
from ..system.plain_files import odd_kind, open_to_read, read_whole, write_whole

LIMIT_BYTES, LIMIT_S = 1 << 30, 300.0
LATE_S = 10.0
"""Beyond its time: how long a copy may take to notice."""
PIECE_BYTES = 1 << 20
NAMED = 20
"""Of what was left out, that many are named and all are counted."""
NEVER = ("__pycache__", "*.pyc", ".git", ".cache", ".*_cache", ".nv", ".triton", ".nfs*")
"""What nobody misses: it is made again by whoever needs it."""
NEVER_WITH = {"CACHEDIR.TAG", "pyvenv.cfg"}
"""A folder with one of these is a cache, as it says itself, or a Python environment, which works nowhere else."""
COPIED = (errno.EXDEV, errno.EPERM, errno.EACCES)
"""What a rename says where only a copy helps."""

Listing = Dict[str, Tuple[int, int]]
"""Size and time of each file, by its path in the folder."""


class LeftFile(NamedTuple):
    """A file, or something else, that ranks created or changed."""

    name: str
    path: str
    size: int
    is_plain: bool


class Stopped(Exception):
    """Keeping was ended: its time was over, or the run is to end now."""


def walk(folder: str) -> Iterator[Tuple[str, str, os.stat_result]]:
    """Yield (path in the folder, path, facts) of all that is no folder, sorted; caches are passed over."""
    for above, folders, files in os.walk(folder):
        if above != folder and not NEVER_WITH.isdisjoint(files):
            folders[:] = []
            continue
        inner = os.path.relpath(above, folder)
        prefix = "" if inner == os.curdir else inner + "/"
        links = [name for name in folders if os.path.islink(os.path.join(above, name))]
        folders[:] = sorted(name for name in folders if not fits(name, NEVER) and name not in links)
        for name in sorted([*files, *links]):
            path = os.path.join(above, name)
            if fits(name, NEVER):
                continue
            try:
                facts = os.lstat(path)
            except OSError:
                continue
            yield prefix + name, path, facts


def write_listing(folder: str, file: str) -> None:
    """Note what lies in the folder before a rank has started there; a pilot that comes later finds the first note."""
    if os.path.exists(file):
        return
    listing = {name: (facts.st_size, facts.st_mtime_ns) for name, _, facts in walk(folder)}
    write_whole(file, json.dumps(listing).encode())


def read_listing(file: str) -> Optional[Listing]:
    """Return what was noted; None where nothing was, or another wrote there."""
    try:
        listing = json.loads(read_whole(file))
        return {str(name): (int(size), int(at)) for name, (size, at) in listing.items()}
    except (OSError, ValueError, TypeError, AttributeError, RecursionError):
        return None


def left_files(folder: str, before: Listing, patterns: List[str]) -> Iterator[LeftFile]:
    """Yield what was created or changed since the listing and fits one of the patterns; without any all does."""
    for name, path, facts in walk(folder):
        if before.get(name) == (facts.st_size, facts.st_mtime_ns) or (patterns and not fits(name, patterns)):
            continue
        yield LeftFile(name, path, facts.st_size, stat.S_ISREG(facts.st_mode))


class Keeping:
    """Keeps what ranks left, in a thread of its own: the node goes on to beat, and hears who wants it to end.

    `patterns` say what is kept, an empty list all; with None nothing is.
    """

    def __init__(
        self,
        folder: str,
        target: str,
        patterns: Optional[List[str]],
        limits: Tuple[int, float] = (LIMIT_BYTES, LIMIT_S),
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder, self._target, self._patterns, self._monotonic = folder, target, patterns, monotonic
        self._limit_bytes, self._limit_s = limits
        self._listing = folder + ".list"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._stop_reason = f"{self._limit_s:g} s were over"
        self._left: List[Dict[str, str]] = []
        self._facts: Dict[str, Any] = {"files": 0, "bytes": 0, "left_count": 0}
        self._began = 0.0

    def note(self) -> None:
        """Note what is in the folder before ranks start; without room for that nothing can be kept."""
        if self._patterns is not None:
            with suppress(OSError):
                write_listing(self._folder, self._listing)

    def start(self) -> None:
        """Begin, where anything is to be kept."""
        if self._patterns is None:
            return
        self._began = self._monotonic()
        try:
            self._thread.start()
        except RuntimeError:  # no thread is to be had: what is left is not worth the run's end
            self._leave_out(".", "no thread is to be had to keep it")

    def stop(self, reason: str) -> None:
        """End it with what is kept by now."""
        self._stop_reason = reason
        self._stop.set()

    @property
    def is_over(self) -> bool:
        """Return whether nothing more is waited for: a disk that does not answer must not hold up the run's end."""
        is_late = self._monotonic() - self._began > self._limit_s + LATE_S
        return not self._thread.is_alive() or self._stop.is_set() or is_late

    def facts(self) -> Dict[str, Any]:
        """Return what the record says of it; nothing where nothing was left."""
        if not self._facts["files"] and not self._left:
            return {}
        return {**self._facts, "left": self._left, "took_s": round(self._monotonic() - self._began, 3)}

    def _run(self) -> None:
        before = read_listing(self._listing)
        if before is None:
            self._leave_out(".", "what lay there before the ranks is not known")
            return
        links: List[LeftFile] = []
        name = ""
        try:
            for left_file in left_files(self._folder, before, self._patterns or []):
                name = left_file.name
                if os.path.islink(left_file.path):
                    links.append(left_file)
                else:
                    self._keep(left_file)
            for link in links:
                name = link.name
                self._keep_link(link)
        except Stopped:
            self._leave_out(name, f"{self._stop_reason}, and what comes after it was not looked at")

    def _keep(self, left_file: LeftFile) -> None:
        over = self._facts["bytes"] + left_file.size > self._limit_bytes
        if not left_file.is_plain:
            self._leave_out(left_file.name, f"{odd_kind(left_file.path) or 'something else'}, no plain file")
        elif over:
            sizes = f"its {_mib(left_file.size)} MiB would make it more than {_mib(self._limit_bytes)} MiB in all"
            self._leave_out(left_file.name, sizes)
        else:
            self._attempt(left_file, self._move)

    def _attempt(self, left_file: LeftFile, keep: Callable[[LeftFile, str], None]) -> None:
        target = os.path.join(self._target, left_file.name)
        try:
            self._check_time()
            make_private(os.path.dirname(target))
            keep(left_file, target)
        except OSError as error:
            self._leave_out(left_file.name, (error.strerror or str(error)).lower())
        else:
            self._facts["files"] += 1
            self._facts["bytes"] += left_file.size

    def _check_time(self) -> None:
        if self._stop.is_set() or self._monotonic() - self._began > self._limit_s:
            raise Stopped

    def _move(self, left_file: LeftFile, target: str) -> None:
        try:
            os.rename(left_file.path, target)
        except OSError as error:
            if error.errno not in COPIED:
                raise
            self._copy(left_file.path, target)

    def _copy(self, path: str, target: str) -> None:
        """Copy a file so that it is never seen by half under its name."""
        unfinished = target + ".unfinished"
        try:
            with open_to_read(path) as source, _create(unfinished) as copy:
                for piece in iter(lambda: source.read(PIECE_BYTES), b""):
                    self._check_time()
                    copy.write(piece)
                facts = os.fstat(source.fileno())
            os.chmod(unfinished, stat.S_IMODE(facts.st_mode) & 0o777)
            os.utime(unfinished, ns=(facts.st_atime_ns, facts.st_mtime_ns))
            os.rename(unfinished, target)
        except (OSError, Stopped):
            with suppress(OSError):
                os.unlink(unfinished)
            raise

    def _keep_link(self, left_file: LeftFile) -> None:
        """Keep a link that leads to something that is kept, written so that it leads to the copy."""
        root = os.path.realpath(self._folder)
        end = os.path.relpath(os.path.realpath(left_file.path), root)
        if end == os.pardir or end.startswith(os.pardir + "/"):
            self._leave_out(left_file.name, "a link that leads out of the folder")
        elif not os.path.lexists(os.path.join(self._target, end)):
            self._leave_out(left_file.name, "a link to what is not kept")
        else:
            self._attempt(left_file, lambda _, target: _make_link(os.path.join(self._target, end), target))

    def _leave_out(self, name: str, reason: str) -> None:
        self._facts["left_count"] += 1
        if len(self._left) < NAMED:
            shown = os.fsencode(name).decode("utf-8", "backslashreplace")
            self._left.append({"path": shown, "why": reason})


def _create(path: str) -> BinaryIO:
    """Open a file of this user's alone, to be written from its beginning."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    return os.fdopen(os.open(path, flags, 0o600), "wb")


def _mib(size: int) -> int:
    return -(-size >> 20)


def _make_link(end: str, target: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(target)
    os.symlink(os.path.relpath(end, os.path.dirname(target)), target)
