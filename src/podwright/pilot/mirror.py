"""The mirror role: gives a client elsewhere what has come of many runs since it last asked, in one answer.

It reads one JSON object from standard input: `folder` (where the runs lie), `runs` (id -> {file: [inode, bytes that
the client has]}), `trees` (id -> paths wanted whole) and `limit` (bytes of trees at most). It answers with a JSON line
for each piece, followed by its bytes; the last line is `{"end": true}`, so that a cut answer is known for one.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any, BinaryIO, Dict, Iterator, List, Tuple

from .protocol import record_folders

GROWING = ("events.jsonl", "metrics.jsonl", "merged.log")
PIECE_BYTES = 1 << 20
ANSWER_BYTES = 64 << 20
"""Of one answer: a client that was away for long asks again instead of waiting for all at once."""


class Giver:
    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self.given = 0

    def piece(self, head: Dict[str, Any], file: BinaryIO, size: int) -> None:
        """`size` bytes from where the file stands; what was cut off meanwhile is made up with nothing."""
        data = file.read(size)
        self._out.write(json.dumps({**head, "n": len(data)}).encode() + b"\n" + data)
        self.given += len(data)

    def word(self, **fields: Any) -> None:
        self._out.write(json.dumps({**fields, "n": 0}).encode() + b"\n")

    def growth(self, run: str, name: str, path: str, known: List[int]) -> None:
        """What was added to a file. A log that was turned over is found again by its inode under its older name."""
        try:
            with open(path, "rb") as file:
                inode = os.fstat(file.fileno()).st_ino
                offset = known[1] if known[0] in (0, inode) else 0
                if known[0] not in (0, inode):
                    self._older(run, name, path, known)
                    self.word(r=run, f=name, turn=True)
                self._rest(run, name, file, inode, offset)
        except OSError:
            return

    def _older(self, run: str, name: str, path: str, known: List[int]) -> None:
        try:
            with open(path + ".1", "rb") as file:
                if os.fstat(file.fileno()).st_ino == known[0]:
                    self._rest(run, name, file, known[0], known[1])
        except OSError:
            return

    def _rest(self, run: str, name: str, file: BinaryIO, inode: int, offset: int) -> None:
        end = os.fstat(file.fileno()).st_size
        file.seek(offset)
        while offset < end and self.given < ANSWER_BYTES:
            size = min(PIECE_BYTES, end - offset)
            self.piece({"r": run, "f": name, "o": offset, "i": inode}, file, size)
            offset += size

    def tree(self, run: str, root: str, name: str, limit: int) -> None:
        """A folder or file whole; one that would go over the limit is named instead."""
        for path, inner in walk(os.path.join(root, name), name):
            try:
                size = os.path.getsize(path)
                if limit and self.given + size > limit:
                    self.word(r=run, f=inner, left=size)
                    continue
                with open(path, "rb") as file:
                    self.whole(run, inner, file, size)
            except OSError:
                continue

    def whole(self, run: str, name: str, file: BinaryIO, size: int) -> None:
        offset = 0
        while offset < size or offset == 0:
            part = min(PIECE_BYTES, size - offset)
            self.piece({"r": run, "f": name, "o": offset, "of": size}, file, part)
            offset += max(part, 1)


def walk(path: str, name: str) -> Iterator[Tuple[str, str]]:
    """(path, name in the run's folder) of every plain file; links are not followed out of the run."""
    if os.path.isfile(path) and not os.path.islink(path):
        yield path, name
    for folder, _, files in os.walk(path):
        for one in sorted(files):
            inner = os.path.join(folder, one)
            if os.path.isfile(inner) and not os.path.islink(inner):
                yield inner, os.path.join(name, os.path.relpath(inner, path))


def answer(request: Dict[str, Any], out: BinaryIO) -> None:
    giver = Giver(out)
    for run, known in request.get("runs", {}).items():
        root = os.path.join(request["folder"], run)
        for _, _, path in record_folders(os.path.join(root, "record")):
            for file in GROWING:
                name = f"record/{os.path.basename(path)}/{file}"
                giver.growth(run, name, os.path.join(path, file), known.get(name, [0, 0]))
    for run, names in request.get("trees", {}).items():
        giver.given = 0  # the limit is each run's own
        for name in names:
            giver.tree(run, os.path.join(request["folder"], run), name, int(request.get("limit", 0)))
    giver.word(end=True)
    out.flush()


def main() -> int:
    answer(json.load(sys.stdin), sys.stdout.buffer)
    return 0
