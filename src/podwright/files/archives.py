"""Zip archives that others made: looked at as a whole before anything of them is written.

Nothing in one is believed: not its names, not its sizes, not what it says its entries are.
"""

from __future__ import annotations

import re
import stat
import struct
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

from podwright.files.untrusted import kind_of, open_untrusted

PIECE_BYTES = 1 << 20
MAX_NAME, MAX_DEPTH = 1024, 64
_PART = re.compile(r"[^\x00-\x1f\x7f\\:]{1,255}")
_END, _END_64, _LOCATOR = struct.Struct("<4s4H2LH"), struct.Struct("<4sQ2H2L4Q"), struct.Struct("<4sLQL")
_FREE_BYTES = 16 << 20
"""So much may come of any archive, however well it is packed."""


class BadArchive(ValueError):
    """Says in words why an archive is not taken."""


@dataclass(frozen=True)
class ArchiveBounds:
    """How much an archive may hold, and how many times its own size all of it together may be."""

    files: int = 200_000
    bytes: int = 1 << 40
    ratio: int = 200
    directory_bytes: int = 64 << 20


@contextmanager
def open_archive(path: Path, bounds: ArchiveBounds = ArchiveBounds()) -> Iterator[OthersArchive]:  # noqa: B008 - it is frozen
    """Open an archive whose entries are all plain files of their own names, within bounds; else raise BadArchive."""
    try:
        with open_untrusted(path.absolute().parent, path.name) as file:
            _check_directory(file, bounds)
            with zipfile.ZipFile(file) as archive:
                yield OthersArchive(archive, _entries(archive, _size_of(file), bounds))
    except (zipfile.BadZipFile, zipfile.LargeZipFile, struct.error, NotImplementedError, UnicodeError) as error:
        raise BadArchive(f"it is no whole zip archive: {error}") from None


@dataclass(frozen=True)
class OthersArchive:
    """A checked archive: its entries by name."""

    archive: zipfile.ZipFile
    entries: Mapping[str, zipfile.ZipInfo]

    def read(self, name: str, limit_bytes: int) -> bytes:
        """Return an entry that is no larger than this."""
        if name not in self.entries:
            raise BadArchive(f"{name} is missing")
        if self.entries[name].file_size > limit_bytes:
            raise BadArchive(f"{name} is larger than {limit_bytes >> 20} MiB")
        pieces: list[bytes] = []
        self.copy(name, pieces.append)
        return b"".join(pieces)

    def copy(self, name: str, write: Callable[[bytes], Any]) -> str:
        """Hand over an entry piece by piece, and return its SHA-256; BadArchive where it is not as long as it says."""
        entry, digest, left = self.entries[name], sha256(), self.entries[name].file_size
        try:
            with self.archive.open(entry) as opened:
                while data := opened.read(PIECE_BYTES):
                    left -= len(data)
                    if left < 0:
                        break
                    digest.update(data)
                    write(data)
        except (zipfile.BadZipFile, EOFError, NotImplementedError, RuntimeError, ValueError, _inflate_error()) as error:
            raise BadArchive(f"{name} cannot be unpacked: {error}") from None
        if left:
            raise BadArchive(f"{name} is not as long as it says")
        return digest.hexdigest()


def _inflate_error() -> type[Exception]:
    import zlib

    return zlib.error


def _size_of(file: IO[bytes]) -> int:
    return file.seek(0, 2)


def _check_directory(file: IO[bytes], bounds: ArchiveBounds) -> None:
    """Refuse an archive with so long a list of entries that reading it would fill the memory."""
    size = _size_of(file)
    file.seek(max(0, size - _END.size - _LOCATOR.size))
    tail = file.read()
    if len(tail) < _END.size or tail[-_END.size :][:4] != b"PK\x05\x06":
        raise BadArchive("it is no zip archive as `podwright export` writes them")
    _, _, _, _, count, length, start, _ = _END.unpack(tail[-_END.size :])
    if 0xFFFF in (count,) or 0xFFFFFFFF in (length, start):
        locator = tail[: _LOCATOR.size]
        if len(locator) < _LOCATOR.size or locator[:4] != b"PK\x06\x07":
            raise BadArchive("it is no whole zip archive: its list of entries is not there")
        file.seek(min(_LOCATOR.unpack(locator)[2], size))
        end = file.read(_END_64.size)
        if len(end) < _END_64.size or end[:4] != b"PK\x06\x06":
            raise BadArchive("it is no whole zip archive: its list of entries is not there")
        _, _, _, _, _, _, _, count, length, _ = _END_64.unpack(end)
    if length > bounds.directory_bytes or count > bounds.files:
        raise BadArchive(f"it has more than {bounds.files:,} files")


def _entries(archive: zipfile.ZipFile, size: int, bounds: ArchiveBounds) -> dict[str, zipfile.ZipInfo]:
    entries: dict[str, zipfile.ZipInfo] = {}
    infos = archive.infolist()
    if len(infos) > bounds.files:
        raise BadArchive(f"it has more than {bounds.files:,} files")
    for info in infos:
        _check_entry(info)
        if info.filename in entries:
            raise BadArchive(f"{_shown(info.filename)} is there twice")
        entries[info.filename] = info
    for name in entries:
        above = name.rpartition("/")[0]
        while above:
            if above in entries:
                raise BadArchive(f"{_shown(above)} is a file and a folder")
            above = above.rpartition("/")[0]
    total = sum(info.file_size for info in entries.values())
    if total > bounds.bytes:
        raise BadArchive(f"it would be larger than {bounds.bytes >> 30} GiB")
    if total > _FREE_BYTES and total > bounds.ratio * size:
        raise BadArchive(f"it would become more than {bounds.ratio} times as large as it is")
    return entries


def _check_entry(info: zipfile.ZipInfo) -> None:
    name, mode = info.orig_filename, info.external_attr >> 16
    if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
        raise BadArchive(f"{_shown(name)} is {kind_of(mode)}, no plain file")
    parts = name.split("/")
    is_plain = all(_PART.fullmatch(part) and part not in (".", "..") for part in parts)
    if not is_plain or len(name) > MAX_NAME or len(parts) > MAX_DEPTH or name != info.filename:
        raise BadArchive(f"{_shown(name)} is no name of a file below the archive")
    if info.flag_bits & 1:
        raise BadArchive(f"{_shown(name)} is encrypted")
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise BadArchive(f"{_shown(name)} is packed in a way that no export uses")


def _shown(name: str) -> str:
    return repr(name[:80])
