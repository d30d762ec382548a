"""Files of JSON lines as they are read while they grow: in pieces of bounded size, whatever somebody made of the file.

Others take it from the protocol.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from typing import Any, BinaryIO, Dict, Iterator, Optional, Tuple

PIECE_BYTES = 1 << 20
"""The most that is read at once. A longer line was not written by a pilot, and is passed over."""


def parse_line(raw: bytes) -> Optional[Dict[str, Any]]:
    """Return the JSON object in a line of a record file, or None for a torn or foreign line."""
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def read_piece(path: str, offset: int = 0) -> Tuple[bytes, int]:
    """Return what `piece_of` does. Whatever lies there that is no plain file has no lines, such as an endless pipe."""
    try:
        with open(path, "rb", opener=_open_at_once) as file:
            return piece_of(file, offset)
    except OSError:
        return b"", offset


def piece_of(file: BinaryIO, offset: int) -> Tuple[bytes, int]:
    """Return whole lines from `offset` on, and where the next reading starts: that is `offset` when nothing is new.

    A torn last line waits. A file that is shorter than `offset` was made anew, and is read from its beginning.
    """
    status = os.fstat(file.fileno())
    if not stat.S_ISREG(status.st_mode):
        return b"", offset
    if offset > status.st_size:
        offset = 0
    start = file.seek(_after_hole(file.fileno(), offset, status.st_size))
    data = file.read(PIECE_BYTES)
    whole = data.rfind(b"\n") + 1
    if whole:
        return data[:whole], start + whole
    if len(data) == PIECE_BYTES:
        return b"", start + len(data)
    return b"", offset


def _open_at_once(path: str, flags: int) -> int:
    """Open a file without waiting for another side, which a pipe may never have."""
    return os.open(path, flags | os.O_NONBLOCK)


def _after_hole(file: int, offset: int, size: int) -> int:
    """Return where bytes lie from `offset` on: a file of terabytes may be made out of nothing."""
    if offset >= size:
        return offset
    try:
        return os.lseek(file, offset, os.SEEK_DATA)
    except OSError as error:
        # Nothing but a hole up to the end; or a file system that knows no holes, which shows by reading.
        return size if error.errno == errno.ENXIO else offset


def parse_lines(data: bytes) -> Iterator[Dict[str, Any]]:
    """Yield the JSON objects of some lines."""
    for line in data.splitlines():
        row = parse_line(line)
        if row is not None:
            yield row


def pieces(path: str) -> Iterator[bytes]:
    """Yield all whole lines that are there, piece by piece."""
    offset, before = 0, -1
    while offset != before:
        before = offset
        data, offset = read_piece(path, offset)
        yield data


def rows_of(path: str) -> Iterator[Dict[str, Any]]:
    """Yield the JSON objects of all whole lines that are there."""
    for data in pieces(path):
        yield from parse_lines(data)
