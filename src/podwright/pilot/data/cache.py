"""A node's cache of data, of one user alone: contents under their keys, and a folder of links for each run that lives.

objects/AB/KEY      read-only; the time of its last change is always the same, that of its last use is its access time
seals/XX/INODE      what the cache knows of it: who else touched it is found before the next run has it (seals.py)
origins/ID.gz       where contents come from: nothing is evicted whose source does not have it any more
runs/RUN/INPUT/...  hard links: what a run has, no eviction can take away
runs/RUN/.pins/NAME the pilots that use the folder
part/               what is on its way; under its own name once it is whole and checked
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import os
import shutil
import socket
import stat
import tempfile
import time
from contextlib import contextmanager, suppress
from typing import IO, Any, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Set, Tuple
from urllib.parse import urlsplit

from ..system.plain_files import write_whole
from ..system.processes import stat_fields
from .manifest import Content
from .seals import SEALED_NS, Seals
from .sources import SourceFailed, look

PIN_S = 60.0
STALE_S = 86400.0
"""After which a pilot of another machine that has not touched its pin is gone; those of this machine are looked for."""
RESERVE_BYTES = 256 << 20
"""Left free on the cache's disk, which others use too."""


class NoRoom(Exception):
    """In words."""


class Arriving:
    """A content on its way: the file to write it to, and its SHA-256 once that is known."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.sha256 = file, ""


class Cache:
    """The cache at `root`; `limit_bytes` is the most it may hold, None all that its disk has room for.

    With `verify` a content is read again before a run has it, even where nobody seems to have touched it.
    """

    def __init__(
        self, root: str, limit_bytes: Optional[int], reserve_bytes: int = RESERVE_BYTES, verify: bool = False
    ) -> None:
        self.root, self._limit, self._reserve = root, limit_bytes, reserve_bytes
        self.seals = Seals(root, verify)
        self._coming: Set[str] = set()
        self._over = False

    def make(self) -> None:
        """Make the folders; one that others can write to is refused."""
        os.makedirs(self.root, mode=0o700, exist_ok=True)
        facts = os.lstat(self.root)
        if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid() or facts.st_mode & 0o022:
            raise NoRoom(f"the cache {self.root} is not this user's alone")
        os.chmod(self.root, 0o700)
        for name in ("objects", "seals", "origins", "runs", "part"):
            os.makedirs(os.path.join(self.root, name), mode=0o700, exist_ok=True)

    def object(self, key: str) -> str:
        """Return where a content lies, should it be there."""
        return os.path.join(self.root, "objects", key[-2:], key)

    # what runs use

    def run_folder(self, run: str) -> str:
        """Return the folder of a run's links."""
        return os.path.join(self.root, "runs", run)

    def pin(self, run: str, name: str) -> None:
        """Say that a pilot uses the run's folder; said again now and then."""
        pins = os.path.join(self.run_folder(run), ".pins")
        os.makedirs(pins, mode=0o700, exist_ok=True)
        with open(os.path.join(pins, name), "w", encoding="utf-8") as file:
            json.dump(_self(), file)

    def unpin(self, run: str, name: str) -> None:
        """Leave the run's folder; the last pilot removes it."""
        folder = self.run_folder(run)
        with suppress(OSError):
            os.unlink(os.path.join(folder, ".pins", name))
        self._remove_unused(folder)

    def _remove_unused(self, folder: str) -> None:
        with suppress(OSError):
            # Fails where another pilot has a pin, and from here on nobody can pin what is being removed.
            os.rmdir(os.path.join(folder, ".pins"))
            for above, _, names in os.walk(folder):
                for name in names:
                    self.seals.unlink(os.path.join(above, name))
            shutil.rmtree(folder, ignore_errors=True)

    def take(self, run: str, item: Content) -> bool:
        """Link a content that is here, as it was when it was checked, into the run's folder; return whether it was."""
        path = self.object(item.key)
        try:
            with self.seals.touching(path, item.key, item.file.size, item.sha256) as is_intact:
                if is_intact:
                    for link in item.paths:
                        self._link(path, run, link)
                    os.utime(path, ns=(time.time_ns(), SEALED_NS))
        except FileNotFoundError:  # it is not here, or evicted this very moment
            return False
        return is_intact

    def _link(self, path: str, run: str, link: Tuple[str, bytes]) -> None:
        target = os.path.join(os.fsencode(self.run_folder(run)), link[0].encode(), link[1])
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        with suppress(FileExistsError):
            os.link(os.fsencode(path), target)
            return
        # Of an earlier try: it may be of a content that is another one by now.
        if not os.path.samefile(path, target):
            os.unlink(target)  # what its inode was is found when it is read again
            os.link(os.fsencode(path), target)

    @contextmanager
    def incoming(self, run: str, item: Content) -> Iterator[Arriving]:
        """Give a file to write a content to; it is the run's and the cache's when all went well, else gone."""
        number, path = tempfile.mkstemp(prefix=f"{item.key[:16]}.", dir=os.path.join(self.root, "part"))
        self._coming.add(path)
        try:
            with os.fdopen(number, "w+b") as file:
                self._check_open()
                arriving = Arriving(file)
                yield arriving
                file.flush()
                os.fsync(file.fileno())
            self._check_open()
            os.chmod(path, 0o400)
            os.utime(path, ns=(time.time_ns(), SEALED_NS))
            # The run's own links first: nothing can be evicted between.
            for link in item.paths:
                self._link(path, run, link)
            final = self.object(item.key)
            os.makedirs(os.path.dirname(final), mode=0o700, exist_ok=True)
            with self.seals.sealing(path, final, item.key, arriving.sha256):
                os.rename(path, final)
        finally:
            with suppress(OSError):
                os.unlink(path)
            self._coming.discard(path)

    def abandon(self) -> None:
        """Remove what is on its way, and let nothing more come: whoever brings it may wait for a source for long."""
        self._over = True
        for path in list(self._coming):
            with suppress(OSError):
                os.unlink(path)

    def _check_open(self) -> None:
        if self._over:
            raise OSError(errno.ECANCELED, os.strerror(errno.ECANCELED))

    # how much there is

    def note_origins(self, items: Sequence[Content]) -> None:
        """Keep where contents come from."""
        name = hashlib.sha256("\n".join(item.key for item in items).encode()).hexdigest()[:32]
        path = os.path.join(self.root, "origins", f"{name}.gz")
        if os.path.exists(path):
            return
        rows = [[item.key, *item.file, dict(item.site)] for item in items]
        write_whole(path, gzip.compress(json.dumps(rows).encode(), 6), os.path.join(self.root, "part"))

    def make_room(self, need_bytes: int, environ: Mapping[str, str], keep: Set[str]) -> int:
        """Evict what was used longest ago until there is room; return how much was evicted, or raise NoRoom."""
        self._clear_stale(time.time())
        objects = sorted(self._objects(), key=lambda entry: entry[1].st_atime_ns)
        used = sum(_disk_bytes(facts) for _, facts in objects)
        room, evicted = self._room(used), 0
        if room >= need_bytes:
            return 0
        free = [(path, facts) for path, facts in objects if facts.st_nlink == 1 and os.path.basename(path) not in keep]
        for path, facts in self._with_a_source(free, environ):
            with suppress(OSError):
                self.seals.unlink(path)
                evicted += _disk_bytes(facts)
            if room + evicted >= need_bytes:
                return evicted
        raise NoRoom(self._full_reason(need_bytes, used - evicted, room + evicted))

    def _full_reason(self, need: int, used: int, room: int) -> str:
        bound = f"it may hold {self._limit} bytes" if self._limit is not None else "its disk has no room"
        text = (
            f"{need} bytes are missing in the cache {self.root} and {max(room, 0)} have room: {bound}, {used} are used"
        )
        return text + " by runs, or are kept because their source does not have them any more"

    def _room(self, used: int) -> int:
        disk = os.statvfs(self.root)
        room = disk.f_bavail * disk.f_frsize - self._reserve
        if self._limit is not None:
            room = min(room, self._limit - used)
        return room

    def _objects(self) -> Iterator[Tuple[str, os.stat_result]]:
        folder = os.path.join(self.root, "objects")
        for name in sorted(os.listdir(folder)):
            for entry in os.scandir(os.path.join(folder, name)):
                with suppress(OSError):
                    yield entry.path, entry.stat(follow_symlinks=False)

    def _with_a_source(
        self, entries: Iterable[Tuple[str, os.stat_result]], environ: Mapping[str, str]
    ) -> Iterator[Tuple[str, os.stat_result]]:
        """Yield the contents that their source still has, as they are here; a silent server is asked once."""
        origins, silent = self._origins(), set()
        for path, facts in entries:
            origin = origins.get(os.path.basename(path))
            if origin is None or urlsplit(origin[0]).netloc in silent:
                continue
            source, size, etag, site = origin
            try:
                seen = look(source, site, environ, tries=1)
            except SourceFailed as failure:
                if not failure.final:
                    silent.add(urlsplit(source).netloc)
                continue
            if seen.size == size and etag in ("", seen.etag):
                yield path, facts

    def _origins(self) -> Dict[str, List[Any]]:
        origins: Dict[str, List[Any]] = {}
        folder = os.path.join(self.root, "origins")
        for name in os.listdir(folder):
            with suppress(OSError, ValueError, EOFError):
                with gzip.open(os.path.join(folder, name), "rb") as file:
                    origins.update({row[0]: row[1:] for row in json.load(file)})
        return origins

    def _clear_stale(self, now: float) -> None:
        """Remove what pilots that are gone left behind: their pins, folders that nobody uses, and parts of files."""
        runs, unfinished = os.path.join(self.root, "runs"), os.path.join(self.root, "part")
        for run in os.listdir(runs):
            pins = os.path.join(runs, run, ".pins")
            with suppress(OSError):
                for name in os.listdir(pins):
                    if _is_gone(os.path.join(pins, name), now):
                        os.unlink(os.path.join(pins, name))
            self._remove_unused(os.path.join(runs, run))
        for name in os.listdir(unfinished):
            with suppress(OSError):
                path = os.path.join(unfinished, name)
                # Not by the time of its last write: that of one which is whole, and gets its name now, is the seal's.
                if now - os.lstat(path).st_ctime > STALE_S:
                    os.unlink(path)


def _disk_bytes(facts: os.stat_result) -> int:
    """Return what a content takes of the disk, its holes left out: what the bound is of, and what evicting gives.

    What is still to come counts whole: its holes are found on the way.
    """
    return min(facts.st_size, facts.st_blocks * 512)


def _self() -> Dict[str, Any]:
    """Return what distinguishes this process from all others that may look."""
    with suppress(OSError):
        return {"host": socket.gethostname(), "space": os.stat("/proc/self/ns/pid").st_ino, **_birth(os.getpid())}
    return {}


def _birth(pid: int) -> Dict[str, Any]:
    return {"pid": pid, "since": int(stat_fields(pid)[19])}


def _is_gone(pin: str, now: float) -> bool:
    """Return whether the pilot that made a pin is gone: where it would be seen, it is looked for."""
    if now - os.stat(pin).st_mtime > STALE_S:
        return True
    try:
        with open(pin, encoding="utf-8") as file:
            pinned_by = json.load(file)
        own = _self()
        if not own or any(pinned_by[name] != own[name] for name in ("host", "space")):
            return False
        return _birth(int(pinned_by["pid"])) != {"pid": pinned_by["pid"], "since": pinned_by["since"]}
    except FileNotFoundError:
        return True
    except (OSError, ValueError, KeyError, TypeError):
        return False
