"""Puts a record together again from frames that came through a container's output."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path

from podwright.files.whole import make_private
from podwright.pilot.protocol import Frame, decode_frame, parse_record_name, parse_series_name

MAX_BYTES = 256 << 20
"""Of a file that comes in frames: a pilot's budget holds less, and no forged offset makes a file of terabytes."""
LINE_BYTES = 64 * 1024
IN_THE_WAY = frozenset([errno.EEXIST, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENXIO, errno.ENAMETOOLONG])
"""Why a file cannot be opened where something else lies in its place, or its name is none."""
SHIPPED = frozenset({"events.jsonl", "metrics.jsonl", "merged.log", "ship.jsonl"})


def assemble(logs: Iterable[Path], record: Path) -> list[str]:
    """Write every piece where it belongs, and return sentences about pieces that never came.

    A frame says where its bytes go, so doubles do no harm and any number of clients may do this at once.
    """
    gaps = []
    for log in logs:
        seen: set[int] = set()
        for frame in _frames(log):
            if frame.seq not in seen and _is_safe(frame) and _place(record / frame.file, frame.offset, frame.data):
                seen.add(frame.seq)
        sent = max(seen, default=-1) + 1
        missing = sent - len(seen)
        if missing:
            gaps.append(f"{log.stem}: {missing} of {sent} pieces of the record are missing")
    return gaps


def _frames(log: Path) -> Iterator[Frame]:
    if not log.is_file():
        return
    with log.open("r", encoding="utf-8", errors="replace", newline="\n") as file:
        # A line of an image's own may be as long as it likes; no frame is longer than this.
        while line := file.readline(LINE_BYTES):
            frame = decode_frame(line)
            if frame:
                yield frame


def _is_safe(frame: Frame) -> bool:
    """Return whether a frame holds a piece of its own node's record.

    What comes out of a container decides nothing about our paths, and makes no file larger than a record can be.
    """
    folder, _, file = frame.file.partition("/")
    writer = parse_record_name(folder)
    if writer is None or writer[0] != frame.node:
        return False
    if file not in SHIPPED and parse_series_name(file) is None:
        return False
    return frame.offset + len(frame.data) <= MAX_BYTES


def _place(path: Path, offset: int, data: bytes) -> bool:
    """Write a piece; return False where something else lies in its place: then it counts as missing."""
    try:
        make_private(path.parent)
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)
    except OSError as error:
        if error.errno in IN_THE_WAY:
            return False
        raise
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            return False
        if os.pread(file, len(data), offset) != data:  # else it is there; a gap may be filled by a later reading
            os.pwrite(file, data, offset)
    finally:
        os.close(file)
    return True
