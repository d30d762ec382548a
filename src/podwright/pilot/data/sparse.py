"""Keeps the holes of a sparse file, which no source names: where a block holds only zeros nothing is written."""

from __future__ import annotations

from typing import IO

BLOCK_BYTES = 64 << 10
"""Small enough to find the holes between the parts of an archive, large enough that asking costs nothing."""
ZEROS = bytes(BLOCK_BYTES)


def write_piece(file: IO[bytes], piece: bytes) -> None:
    """Write a piece where the file stands, which must hold nothing beyond; blocks of zeros are passed over."""
    begin, at = 0, 0
    while at < len(piece):
        end = min(at + BLOCK_BYTES, len(piece))
        if piece.startswith(ZEROS[: end - at], at):
            file.write(piece[begin:at])
            file.seek(end - at, 1)
            begin = end
        at = end
    file.write(piece[begin:])


def end_file(file: IO[bytes]) -> None:
    """Let a file end where it stands, which may be behind a hole."""
    file.truncate()
