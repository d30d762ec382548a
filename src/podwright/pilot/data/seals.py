"""What a cache knows of its contents beside their bytes: who else touched one since is found by its ctime.

seals/XX/INODE      a content's key, the time at which its status changed last (ctime), and its SHA-256

A cache changes ctimes itself, by its links, times and unlinks: it notes each under a lock. Any other ctime means that
somebody may have written, and the content is read again. That finds accidents and careless programs: a program of the
same user that forges these files, too, is not found.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import stat
from contextlib import contextmanager, suppress
from typing import Iterator, NamedTuple, Optional

SEALED_NS = 1_000_000_000
"""The time of the last change of every content."""
_PIECE_BYTES = 1 << 20


class Seal(NamedTuple):
    """What was noted of a content when it was last touched by the cache."""

    key: str
    ctime_ns: int
    sha256: str


class Seals:
    """The seals of a cache; `verify` reads every content again, whatever its times say."""

    def __init__(self, root: str, verify: bool) -> None:
        self._folder, self._verify = os.path.join(root, "seals"), verify

    @contextmanager
    def touching(self, path: str, key: str, size: int, sha256: str) -> Iterator[bool]:
        """Give whether a content is what it should be, and note what the body does to one that is."""
        with self._locked(os.lstat(path).st_ino):
            is_intact = self._is_intact(path, key, size, sha256)
            yield is_intact
            if is_intact:
                facts = os.lstat(path)
                seal = self._read(facts.st_ino)
                self.note(facts, key, sha256 or (seal.sha256 if seal else ""))

    def _is_intact(self, path: str, key: str, size: int, sha256: str) -> bool:
        facts = os.lstat(path)
        if not stat.S_ISREG(facts.st_mode) or (facts.st_size, facts.st_mtime_ns) != (size, SEALED_NS):
            return False
        seal = self._read(facts.st_ino)
        if seal and seal.key != key:  # of a content whose inode this one has now
            seal = None
        if seal and seal.ctime_ns == facts.st_ctime_ns and not self._verify:
            return True
        expected = sha256 or (seal.sha256 if seal else "")
        return bool(expected) and sha256_of(path) == expected

    @contextmanager
    def sealing(self, path: str, final: str, key: str, sha256: str) -> Iterator[None]:
        """Note a content that the body moves from `path` to `final`."""
        with self._locked(os.lstat(path).st_ino):
            yield
            self.note(os.lstat(final), key, sha256)

    def unlink(self, path: str) -> None:
        """Remove a link to a content, or the content itself."""
        number = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            before = os.fstat(number)
            with self._locked(before.st_ino):
                seal = self._read(before.st_ino)
                before = os.fstat(number)
                os.unlink(path)
                facts = os.fstat(number)
                if facts.st_nlink == 0:
                    with suppress(FileNotFoundError):
                        os.unlink(self._file(facts.st_ino))
                elif seal and seal.ctime_ns == before.st_ctime_ns:
                    self.note(facts, seal.key, seal.sha256)
        finally:
            os.close(number)

    def is_as_noted(self, path: str) -> bool:
        """Return whether nobody but the cache has touched a content."""
        facts = os.lstat(path)
        seal = self._read(facts.st_ino)
        return seal is not None and seal.ctime_ns == facts.st_ctime_ns

    def note(self, facts: os.stat_result, key: str, sha256: str) -> None:
        """Note a content as it is now."""
        # Half of it, after a crash, is as good as nothing: the content is read again.
        data = json.dumps(Seal(key, facts.st_ctime_ns, sha256)).encode()
        file = os.open(self._file(facts.st_ino), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.write(file, data)
        finally:
            os.close(file)

    def _read(self, inode: int) -> Optional[Seal]:
        try:
            with open(self._file(inode), "rb") as file:
                key, ctime_ns, sha256 = json.loads(file.read())
            return Seal(str(key), int(ctime_ns), str(sha256))
        except (OSError, ValueError, TypeError):
            return None

    def _file(self, inode: int) -> str:
        return os.path.join(self._folder, f"{inode & 0xFF:02x}", str(inode))

    @contextmanager
    def _locked(self, inode: int) -> Iterator[None]:
        """Hold the lock of an inode; each holder opens it anew, so it keeps out threads as well as processes."""
        path = os.path.join(os.path.dirname(self._file(inode)), "lock")
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        try:
            lock = os.open(path, flags, 0o600)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            lock = os.open(path, flags, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)


def sha256_of(path: str) -> str:
    """Return the SHA-256 of a file's bytes."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        for piece in iter(lambda: file.read(_PIECE_BYTES), b""):
            digest.update(piece)
    return digest.hexdigest()
