"""Journals: files of JSON lines that any number of processes append to, each line in one write."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from podwright.pilot.protocol import parse_line

Row = Mapping[str, Any]


class JournalFile:
    """A file of rows; what was read of it is kept, so that the next reader sees only to what came since."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._rows: list[Row] = []
        self._file = (0, 0)
        """Which file was read, by its inode, and how far."""

    def append(self, *rows: Row) -> None:
        """Add rows and wait until they are on the disk: what they say is never done twice."""
        append(self.path, lines_of(*rows), sync=True)

    def rows(self) -> list[Row]:
        """Return all rows; a line that somebody was killed in is left out."""
        try:
            with self.path.open("rb") as file:
                status = os.fstat(file.fileno())
                inode, offset = self._file
                if inode != status.st_ino or offset > status.st_size:
                    self._rows, offset = [], 0
                file.seek(offset)
                whole, end, _ = file.read().rpartition(b"\n")
        except FileNotFoundError:
            self._rows, self._file = [], (0, 0)
            return []
        self._file = (status.st_ino, offset + len(whole) + len(end))
        parsed = [parse_line(line) for line in whole.splitlines()]
        self._rows += [row for row in parsed if row is not None]
        return list(self._rows)


def lines_of(*rows: Row) -> bytes:
    """Return rows as they stand in a journal."""
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


def append(path: Path, data: bytes, sync: bool = False) -> None:
    """Append in one write, so that two writers never mix their lines; wait for the disk where that is asked."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK
    file = os.open(path, flags, 0o600)
    try:
        os.write(file, data)
        if sync:
            os.fsync(file)
    finally:
        os.close(file)
