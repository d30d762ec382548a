"""Goes through folders; started as a program, one process of a walk: folders on stdin, what lies in them on stdout.

It imports few modules, which Python has loaded anyway: a process of it starts in a few hundredths of a second. The loop
is written for speed: a name and a status are all that it makes of an entry, and what a folder holds is packed before
the next is looked into, so that memory stays in the processor's cache.
"""

from __future__ import annotations

import marshal
import os
import sys
from array import array

TYPE_CHECKING = False  # as mypy knows it; `typing` and `collections.abc` would double the time in which this starts
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import IO

    Listing = Callable[[int], tuple[list[bytes], Callable[[bytes], os.stat_result]]]
    """Gives the names in an open folder, and what tells the status of each."""

FIELDS = ("mode", "inode", "uid", "gid", "size", "mtime_ns", "ctime_ns")
"""The numbers of an entry."""
ACL = "system.posix_acl_access"
_WIDTH = 12
"""Numbers that are taken of a status: the ten that it has as a tuple, then two that are no part of the tuple."""
_PLACES = (0, 1, 4, 5, 6, 10, 11)
"""Where the fields stand among them."""
_KIND, _FOLDER = 0o170000, 0o040000
_LARGEST, _BITS = (1 << 63) - 1, (1 << 64) - 1
_MTIME_S, _LAST_S = 8, _LARGEST // 1_000_000_000 - 1
"""Where a status has its seconds, and the last of which the nanoseconds are a signed number: in the year 2262."""
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

Walked = tuple[bytes, bytes, bytes, bytes, bytes, list[tuple[bytes, str]], list[tuple[int, bytes]], list[bytes]]
"""Paths of folders, their numbers, how many entries each has; names, numbers; unread; access lists; what is left."""


def list_in_place(descriptor: int) -> tuple[list[bytes], Callable[[bytes], os.stat_result]]:
    """List a folder from wherever this process is."""
    # By the folder and not by a path: the kernel need not go down the whole tree for each file.
    names = list(map(os.fsencode, os.listdir(descriptor)))
    return names, lambda name: os.stat(name, dir_fd=descriptor, follow_symlinks=False)


def list_inside(descriptor: int) -> tuple[list[bytes], Callable[[bytes], os.stat_result]]:
    """Go into a folder and list it: the fastest way, for a process that has nothing else to do."""
    os.fchdir(descriptor)
    return os.listdir(b"."), os.lstat  # noqa: PTH208 - bytes


def walk_folders(
    root: bytes,
    folders: list[bytes],
    limit: int,
    lists: bool,
    skipped: frozenset[bytes] = frozenset(),
    listing: Listing = list_in_place,
) -> Walked:
    """Go through folders, depth first, until so many entries were seen; a folder that was begun is finished.

    Paths and names have a zero byte behind each, numbers stand field by field. `lists`: look for lists of access at
    folders. Of the folders in them those that are skipped are not gone into.
    """
    seen = _Seen(lists, listing)
    stack = list(reversed(folders))
    while stack and seen.entries < limit:
        folder = stack.pop()
        try:
            inner = seen.look_into(root, folder)
        except FileNotFoundError:  # gone meanwhile
            continue
        except OSError as error:
            seen.unread.append((folder, os.strerror(error.errno or 0).lower()))
            continue
        deeper = [folder + name + b"/" for name in reversed(inner)]
        stack.extend(path for path in deeper if path not in skipped)
    return (*seen.packed(), seen.unread, seen.acls, stack)


class _Seen:
    """What was seen so far."""

    def __init__(self, lists: bool, listing: Listing) -> None:
        self._lists, self._listing = lists, listing
        self.entries = 0
        self._paths: list[bytes] = []
        self._names: list[bytes] = []
        self._counts, self._folder_numbers, self._numbers = array("Q"), _fields(), _fields()
        self.unread: list[tuple[bytes, str]] = []
        self.acls: list[tuple[int, bytes]] = []

    def look_into(self, root: bytes, folder: bytes) -> list[bytes]:
        """Add what is in a folder; return the names of the folders in it."""
        descriptor = os.open(root + b"/" + folder, _FLAGS)
        try:
            names, numbers, inner = _list(*self._listing(descriptor))
            status = os.fstat(descriptor)
            if self._lists and (entries := _access_list(descriptor)):
                self.acls.append((len(self._paths), entries))
        finally:
            os.close(descriptor)
        _add(self._folder_numbers, [*status, status.st_mtime_ns, status.st_ctime_ns])  # type: ignore[list-item]
        _add(self._numbers, numbers)
        self._counts.append(len(names))
        self._paths.append(folder)
        if names:
            self._names.append(b"\0".join(names))
        self.entries += len(names) + 1
        return inner

    def packed(self) -> tuple[bytes, bytes, bytes, bytes, bytes]:
        folder_numbers, numbers = (b"".join(map(bytes, fields)) for fields in (self._folder_numbers, self._numbers))
        paths, names = (b"\0".join([*parts, b""]) for parts in (self._paths, self._names))
        return paths, folder_numbers, self._counts.tobytes(), names, numbers


def _list(listed: list[bytes], stat: Callable[[bytes], os.stat_result]) -> tuple[list[bytes], list[int], list[bytes]]:
    """Return what is in a folder and is none itself, with its numbers, and the names of the folders in it."""
    names: list[bytes] = []
    numbers: list[int] = []
    inner: list[bytes] = []
    for name in listed:
        try:
            status = stat(name)
        except FileNotFoundError:  # gone meanwhile
            continue
        if status[0] & _KIND == _FOLDER:
            inner.append(name)
            continue
        names.append(name)
        # As a tuple a status has whole numbers alone.
        numbers += status  # type: ignore[arg-type]
        numbers.append(status.st_mtime_ns)
        numbers.append(status.st_ctime_ns)
    inner.sort()
    return names, numbers, inner


def _access_list(descriptor: int) -> bytes:
    try:
        return os.getxattr(descriptor, ACL)
    except OSError:  # none, or a file system without
        return b""


def _fields() -> list[array[int]]:
    # Unsigned numbers, which an array takes twice as fast; whoever reads them reads the same bytes as signed ones.
    return [array("Q") for _ in FIELDS]


def _add(fields: list[array[int]], numbers: list[int]) -> None:
    if max(numbers[_MTIME_S::_WIDTH], default=0) > _LAST_S:
        numbers = [min(number, _LARGEST) for number in numbers]
    for field, offset in zip(fields, _PLACES, strict=True):
        column = numbers[offset::_WIDTH]
        try:
            field.fromlist(column)
        except OverflowError:  # a time before the year 1970
            field.fromlist([max(-_LARGEST, number) & _BITS for number in column])


def send(walked: Walked, stream: IO[bytes]) -> None:
    """Write what was seen; names and numbers as they are, since `marshal` would copy them."""
    large, small = walked[:5], walked[5:]
    marshal.dump((list(map(len, large)), *small), stream)
    for chunk in large:
        stream.write(chunk)
    stream.flush()


def receive(stream: IO[bytes]) -> Walked:
    """Read what a process of the walk has sent; EOFError where that has ended meanwhile."""
    sizes, unread, acls, rest = marshal.load(stream)
    large = list(map(stream.read, sizes))
    if list(map(len, large)) != sizes:
        raise EOFError
    paths, folder_numbers, counts, names, numbers = large
    return paths, folder_numbers, counts, names, numbers, unread, acls, rest


def main() -> None:
    """Answer until nobody asks any more."""
    while True:
        try:
            root, folders, limit, lists = marshal.load(sys.stdin.buffer)
        except EOFError:
            return
        send(walk_folders(root, folders, limit, lists, listing=list_inside), sys.stdout.buffer)


if __name__ == "__main__":
    main()
