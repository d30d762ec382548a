"""Tar shards: which samples lie where in them, and their bytes."""

from __future__ import annotations

import mmap
import os
import struct
import tarfile
from typing import Any, Dict, Iterable, List, Optional, Tuple

BLOCK = 512
HEADER = struct.Struct("100s24x11s21x1s100x5s83x1s")
"""Of a member of a tar: its name, its size, its kind, "ustar", and the first byte of a longer name."""
PLAIN = frozenset((b"0", b"\0", b"5"))
AHEAD = 4 * BLOCK
"""Bytes that are read for a header: small members lie between two of them."""
MAX_OPEN = 256
INDEX = ".idx"
"""Ending of an index, as NVIDIA DALI's wds2idx writes it beside a shard."""
SampleRow = Tuple[Any, ...]
"""A sample before it is read: the path of its shard ("" for files), what is known of it already as a dictionary, and
then in turn a role, an offset and a size, or a role, the path of a file and -1. One tuple: there may be millions."""


def samples_of(path: str) -> List[SampleRow]:
    """Return the samples of a shard: members of one name up to its first dot, by what follows it."""
    for look in (_indexed, _quickly):
        try:
            samples = look(path)
        except (OSError, ValueError, struct.error):  # none, or in another form, or cut off
            continue
        if samples:
            return samples
    return _slowly(path)


def _split(member: str) -> Tuple[str, str]:
    above, slash, name = member.rpartition("/")
    stem, _, suffix = name.partition(".")
    return above + slash + stem, suffix


def _grouped(path: str, members: Iterable[Tuple[str, int, int]]) -> List[SampleRow]:
    """Return the samples that members, each with its offset and size, belong to."""
    samples: Dict[str, SampleRow] = {}
    for member, offset, size in members:
        key, suffix = _split(member)
        if key in samples:
            samples[key] += (suffix, offset, size)
        else:
            samples[key] = (path, {"key": key}, suffix, offset, size)
    return list(samples.values())


def _indexed(path: str) -> List[SampleRow]:
    """Return the samples that an index beside a shard names; nothing where it is not this shard's.

    A line has suffix, offset, size and name of each member of a sample.
    """
    with open(os.path.splitext(path)[0] + INDEX, encoding="utf-8") as file:
        version, count = file.readline().split()
        lines = [line.split() for line in file]
    if version != "v1.2" or not 0 < int(count) == len(lines) or any(not line or len(line) % 4 for line in lines):
        return []
    with open(path, "rb", buffering=0) as shard:
        if not (_lies_there(shard.fileno(), *lines[0][1:4]) and _lies_there(shard.fileno(), *lines[-1][-3:])):
            return []
    samples: List[SampleRow] = []
    for line in lines:
        row: List[Any] = [path, {"key": _split(line[3])[0]}]
        for at in range(0, len(line), 4):
            row += (line[at], int(line[at + 1]), int(line[at + 2]))
        samples.append(tuple(row))
    return samples


def _lies_there(shard: int, offset: str, size: str, name: str) -> bool:
    """Return whether the header before an offset names this member: an index may be older than its shard."""
    member, size_text, *_ = HEADER.unpack(os.pread(shard, HEADER.size, int(offset) - BLOCK))
    same: bool = member.rstrip(b"\0").decode() == name and int(size_text, 8) == int(size)
    return same


def _quickly(path: str) -> List[SampleRow]:
    """Return the samples of a tar that has only plain files and folders; else nothing.

    `tarfile` takes ten times as long, and this is done at the start of every rank.
    """
    members: List[Tuple[str, int, int]] = []
    offset, begin, read = 0, 0, b""
    with open(path, "rb", buffering=0) as file:
        while True:
            at = offset - begin
            if at + BLOCK > len(read):
                # Not mapped into memory: a page fault for each header would cost twice as much as to read it.
                read, begin, at = os.pread(file.fileno(), AHEAD, offset), offset, 0
            if not read or not read[at]:
                return _grouped(path, members)
            name, size_text, kind, magic, prefix = HEADER.unpack_from(read, at)
            if magic != b"ustar" or kind not in PLAIN or prefix != b"\0":
                return []
            size = int(size_text, 8)
            offset += BLOCK
            if kind != b"5":
                members.append((name.rstrip(b"\0").decode(), offset, size))
            offset += (size + BLOCK - 1) // BLOCK * BLOCK


def _slowly(path: str) -> List[SampleRow]:
    try:
        with tarfile.open(path, "r:") as archive:
            files = [member for member in archive if member.isfile()]
    except tarfile.ReadError as error:
        raise RuntimeError(f"{path} is no plain tar: {error}; compressed shards cannot be read in any order") from None
    return _grouped(path, ((member.name, member.offset_data, member.size) for member in files))


class Shards:
    """Open shards, the last few of them: opening one for every sample would cost more than reading.

    What nobody may write to, as staging leaves it, is mapped into memory. Any other is read: to look into a file that
    somebody cuts off meanwhile would kill the process.
    """

    def __init__(self) -> None:
        self._maps: Dict[str, mmap.mmap] = {}
        self._files: Dict[str, int] = {}

    def __reduce__(self) -> Any:
        return Shards, ()  # what is open stays in its process

    def read(self, path: str, offset: int, size: int) -> bytes:
        """Return a piece of a shard."""
        mapped = self._maps.get(path) or self._mapped(path)
        return mapped[offset : offset + size] if mapped else os.pread(self._files[path], size, offset)

    def view(self, path: str, offset: int, size: int) -> memoryview:
        """Return a piece of a shard, which is copied only where the shard is not mapped."""
        mapped = self._maps.get(path) or self._mapped(path)
        if mapped:
            return memoryview(mapped)[offset : offset + size]
        return memoryview(os.pread(self._files[path], size, offset))

    def _mapped(self, path: str) -> Optional[mmap.mmap]:
        if path in self._files:
            return None
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        if os.fstat(file).st_mode & 0o222:
            if len(self._files) >= MAX_OPEN:
                os.close(self._files.pop(next(iter(self._files))))
            self._files[path] = file
            return None
        if len(self._maps) >= MAX_OPEN:
            del self._maps[next(iter(self._maps))]  # views of it hold it open
        self._maps[path] = mmap.mmap(file, 0, access=mmap.ACCESS_READ)
        os.close(file)
        return self._maps[path]
