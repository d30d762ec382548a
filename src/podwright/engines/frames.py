"""Puts a record together again from frames that came through a container's output."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from podwright.pilot.protocol import Frame, decode_frame, parse_record_name
from podwright.runs.files import make_private

SHIPPED = frozenset({"events.jsonl", "metrics.jsonl", "merged.log", "ship.jsonl"})


def assemble(logs: Iterable[Path], record: Path) -> list[str]:
    """Write every piece where it belongs, and return sentences about pieces that never came.

    A frame says where its bytes go, so doubles do no harm and any number of clients may do this at once.
    """
    gaps = []
    for log in logs:
        seen: set[int] = set()
        for frame in _frames(log):
            if frame.seq not in seen and _is_safe(frame.file):
                seen.add(frame.seq)
                _place(record / frame.file, frame.offset, frame.data)
        sent = max(seen, default=-1) + 1
        missing = sent - len(seen)
        if missing:
            gaps.append(f"{log.stem}: {missing} of {sent} pieces of the record are missing")
    return gaps


def _frames(log: Path) -> Iterator[Frame]:
    with log.open("r", encoding="utf-8", errors="replace", newline="\n") as file:
        for line in file:
            frame = decode_frame(line)
            if frame:
                yield frame


def _is_safe(name: str) -> bool:
    """Return whether a name is one of a record: what comes out of a container decides nothing about our paths."""
    folder, _, file = name.partition("/")
    return parse_record_name(folder) is not None and file in SHIPPED


def _place(path: Path, offset: int, data: bytes) -> None:
    make_private(path.parent)
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        if os.pread(file, len(data), offset) != data:  # else it is there; a gap may be filled by a later reading
            os.pwrite(file, data, offset)
    finally:
        os.close(file)
