"""Goes through folders; started by its path, one process of a walk: folders on stdin, what lies in them on stdout.

It imports four modules that Python has loaded anyway: a process of it starts in a few hundredths of a second. The loop
is written for speed: a name and a status are all that it makes of an entry.
"""

from __future__ import annotations

import marshal
import os
import sys
from array import array

FIELDS = ("mode", "inode", "device", "links", "uid", "gid", "size", "atime", "mtime", "ctime", "mtime_ns", "ctime_ns")
"""The numbers of an entry: the ten of a status as a tuple, then two that are no part of the tuple."""
ACL = "system.posix_acl_access"
_KIND, _FOLDER = 0o170000, 0o040000
_LARGEST = (1 << 63) - 1
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

Walked = tuple[bytes, bytes, bytes, bytes, bytes, list[tuple[bytes, str]], list[tuple[int, bytes]], list[bytes]]
"""Paths of folders, their numbers, how many entries each has; names, numbers; unread; access lists; what is left."""


def walk_folders(
    root: bytes, folders: list[bytes], most: int, lists: bool, known: frozenset[bytes] = frozenset()
) -> Walked:
    """Go through folders, depth first, until so many entries were seen; a folder that was begun is finished.

    Paths and names have a zero byte behind each. `lists`: look for lists of access at folders. Of the folders in them
    those that are known are not gone into.
    """
    seen = _Seen(lists)
    stack = list(reversed(folders))
    while stack and len(seen.names) + len(seen.paths) < most:
        folder = stack.pop()
        try:
            inner = seen.look_into(root, folder)
        except FileNotFoundError:  # gone meanwhile
            continue
        except OSError as error:
            seen.unread.append((folder, os.strerror(error.errno or 0).lower()))
            continue
        deeper = [folder + os.fsencode(name) + b"/" for name in reversed(inner)]
        stack.extend(path for path in deeper if path not in known)
    return (*seen.packed(), seen.unread, seen.acls, stack)


class _Seen:
    """What was seen so far."""

    def __init__(self, lists: bool) -> None:
        self._lists = lists
        self.paths: list[bytes] = []
        self.counts: list[int] = []
        self.folder_numbers: list[int] = []
        self.names: list[str] = []
        self.numbers: list[int] = []
        self.unread: list[tuple[bytes, str]] = []
        self.acls: list[tuple[int, bytes]] = []

    def look_into(self, root: bytes, folder: bytes) -> list[str]:
        """Add what is in a folder; return the names of the folders in it."""
        before = len(self.names)
        place = os.open(root + b"/" + folder, _FLAGS)
        try:
            inner = _list(place, self.names, self.numbers)
            _add(self.folder_numbers, os.fstat(place))
            if self._lists and (entries := _access_list(place)):
                self.acls.append((len(self.paths), entries))
        except OSError:
            del self.names[before:], self.numbers[before * len(FIELDS) :]
            raise
        finally:
            os.close(place)
        self.paths.append(folder)
        self.counts.append(len(self.names) - before)
        return inner

    def packed(self) -> tuple[bytes, bytes, bytes, bytes, bytes]:
        names = os.fsencode("\0".join([*self.names, ""]))
        paths = b"\0".join([*self.paths, b""])
        return paths, _packed(self.folder_numbers), _packed(self.counts), names, _packed(self.numbers)


def _list(place: int, names: list[str], numbers: list[int]) -> list[str]:
    """Add what is in a folder and is none itself; return the names of the folders in it."""
    inner: list[str] = []
    stat = os.stat
    for name in os.listdir(place):
        try:
            # By the folder and not by a path: the kernel need not go down the whole tree for each file.
            status = stat(name, dir_fd=place, follow_symlinks=False)
        except FileNotFoundError:  # gone meanwhile
            continue
        if status[0] & _KIND == _FOLDER:
            inner.append(name)
            continue
        names.append(name)
        # As `_add` does; a call for each file would be a twentieth of a walk.
        numbers += status  # type: ignore[arg-type]
        numbers.append(status.st_mtime_ns)
        numbers.append(status.st_ctime_ns)
    inner.sort()
    return inner


def _add(numbers: list[int], status: os.stat_result) -> None:
    # As a tuple a status has whole numbers alone.
    numbers += status  # type: ignore[arg-type]
    numbers.append(status.st_mtime_ns)
    numbers.append(status.st_ctime_ns)


def _access_list(place: int) -> bytes:
    try:
        return os.getxattr(place, ACL)
    except OSError:  # none, or a file system without
        return b""


def _packed(numbers: list[int]) -> bytes:
    try:
        return array("q", numbers).tobytes()
    except OverflowError:  # an inode with 64 bits, or a time after the year 2262
        return array("q", [max(-_LARGEST, min(number, _LARGEST)) for number in numbers]).tobytes()


def main() -> None:
    """Answer until nobody asks any more."""
    while True:
        try:
            question = marshal.load(sys.stdin.buffer)
        except EOFError:
            return
        marshal.dump(walk_folders(*question), sys.stdout.buffer)
        sys.stdout.buffer.flush()


if __name__ == "__main__":
    main()
