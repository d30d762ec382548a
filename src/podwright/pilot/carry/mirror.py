"""The mirror role: gives a client elsewhere what has come of many runs since it last asked, in one answer.

It reads one JSON object from standard input: `folder` (where the runs lie), `runs` (id -> {file: [inode, bytes that
the client has]}), `trees` (id -> paths wanted whole), `but` (paths inside them that are not), `at` (id -> [file, bytes]
that the client has come to in its trees) and `limit` (bytes of a run's trees at most). It answers with a JSON line for
each piece, followed by its bytes. What is no plain file is named with what it is (`odd`), what is too large with its
size (`left`). After the trees of a run comes `{"whole": true}`. The last line is `{"end": true}`, so that a cut answer
is known for one; `more` in it says that there is more to ask for.
"""

from __future__ import annotations

import json
import os
import sys
from itertools import islice
from typing import Any, BinaryIO, Dict, Iterator, List, Sequence, Tuple

from ..protocol import CLOSED, GROWING_BYTES, SERIES_BYTES, parse_series_name, record_folders, series_files
from ..system.plain_files import odd_kind, open_to_read

GROWING = ("events.jsonl", "metrics.jsonl", "merged.log", CLOSED)
PIECE_BYTES = 1 << 20
ANSWER_BYTES = 32 << 20
"""Of one answer: a client that was away for long, or wants a large checkpoint, asks again and holds little at once."""


MAX_ODD = 100
"""Of a run, that are named: a program may make any number of them."""


class AnswerWriter:
    """Writes one answer and counts what it holds."""

    def __init__(self, out: BinaryIO, piece_bytes: int, answer_bytes: int, excluded: Sequence[str] = ()) -> None:
        self._out, self._excluded = out, excluded
        self._piece_bytes, self._answer_bytes = piece_bytes, answer_bytes
        self.sent_bytes = 0
        self.more = False

    @property
    def is_full(self) -> bool:
        """Return whether the answer is as large as it may be."""
        return self.sent_bytes >= self._answer_bytes

    def piece(self, head: Dict[str, Any], file: BinaryIO, size: int) -> None:
        """Give `size` bytes from where the file stands; what was cut off meanwhile is made up with nothing."""
        data = file.read(size)
        self._out.write(json.dumps({**head, "n": len(data)}).encode() + b"\n" + data)
        self.sent_bytes += len(data)

    def word(self, **fields: Any) -> None:
        """Give a line without bytes."""
        self._out.write(json.dumps({**fields, "n": 0}).encode() + b"\n")

    def growth(self, run: str, name: str, path: str, position: List[int]) -> None:
        """Give what was added to a file; a log that was turned over is found by its inode under its older name."""
        try:
            if os.path.islink(path):
                return
            with open_to_read(path) as file:
                inode, offset = os.fstat(file.fileno()).st_ino, position[1]
                if position[0] not in (0, inode):
                    self._older(run, name, path, position)
                    self.word(r=run, f=name, turn=True)
                    offset = 0
                self._send_rest(run, name, file, inode, offset)
        except OSError:
            return

    def _older(self, run: str, name: str, path: str, position: List[int]) -> None:
        try:
            with open_to_read(path + ".1") as file:
                if os.fstat(file.fileno()).st_ino == position[0]:
                    self._send_rest(run, name, file, position[0], position[1])
        except OSError:
            return

    def _send_rest(self, run: str, name: str, file: BinaryIO, inode: int, offset: int) -> None:
        """Give the rest of a file; what lies beyond a bound or a hole was not written by a pilot, and is said."""
        size = os.fstat(file.fileno()).st_size
        bound = GROWING_BYTES
        if parse_series_name(os.path.basename(name)) is not None:
            bound = SERIES_BYTES
        end = min(size, bound, _first_hole(file, offset, size))
        self._pieces({"r": run, "f": name, "i": inode}, file, offset, end)
        if end < size:
            self.word(r=run, f=name, left=size)

    def _pieces(self, head: Dict[str, Any], file: BinaryIO, offset: int, end: int) -> bool:
        """Give from an offset to the end, or as far as the answer may go; return whether it came to the end."""
        file.seek(offset)
        while offset < end and not self.is_full:
            size = min(self._piece_bytes, end - offset)
            self.piece({**head, "o": offset}, file, size)
            offset += size
        self.more = self.more or offset < end
        return offset >= end

    def trees(self, run: str, root: str, names: List[str], limit: int, at: List[Any]) -> bool:
        """Give folders and files whole, from where the client has come to; return whether all of them went.

        A file that would go over the limit is named instead, and so is what is no plain file.
        """
        used = 0
        file_at, offset_at = at or ["", 0]
        # The files before the one the client has come to are there already.
        reached = not at
        for path, inner in _files_of(root, names):
            if self._is_unwanted(inner):
                continue
            try:
                size = os.path.getsize(path)
                if limit and used + size > limit:
                    self.word(r=run, f=inner, left=size)
                    continue
                used += size
                offset = 0
                if at and inner == file_at:
                    reached, offset = True, int(offset_at)
                if reached and not self._send_file(run, path, inner, size, offset):
                    return False
            except OSError:
                continue
        if reached:
            odd = (pair for pair in _odd_ones(root, names) if not self._is_unwanted(pair[0]))
            for inner, kind in islice(odd, MAX_ODD):
                self.word(r=run, f=inner, odd=kind)
            self.word(r=run, f="", whole=True)
        return reached

    def _is_unwanted(self, name: str) -> bool:
        return any(name == unwanted or name.startswith(unwanted + "/") for unwanted in self._excluded)

    def _send_file(self, run: str, path: str, name: str, size: int, offset: int) -> bool:
        head = {"r": run, "f": name, "of": size}
        with open_to_read(path) as file:
            if size == 0:
                self.piece({**head, "o": 0}, file, 0)
            return self._pieces(head, file, offset, size)


def _first_hole(file: BinaryIO, offset: int, size: int) -> int:
    """Return where a file begins to be made out of nothing; its end where there is no hole, or none can be seen."""
    position = os.lseek(file.fileno(), 0, os.SEEK_CUR)
    try:
        return os.lseek(file.fileno(), offset, os.SEEK_HOLE)
    except OSError:  # nothing is left from there on, or the file system does not know
        return size
    finally:
        os.lseek(file.fileno(), position, os.SEEK_SET)


def _files_of(root: str, names: List[str]) -> Iterator[Tuple[str, str]]:
    inside = os.path.join(os.path.realpath(root), "")
    for name in names:
        path = os.path.join(root, name)
        # A whole folder may be a link: it is not walked where it leads out of the run.
        if os.path.realpath(path).startswith(inside):
            yield from walk(path, name)


def walk(path: str, name: str) -> Iterator[Tuple[str, str]]:
    """Yield (path, name in the run's folder) of every plain file; links are not followed out of the run."""
    if os.path.isfile(path) and not os.path.islink(path):
        yield path, name
    for folder, folders, files in os.walk(path):
        folders.sort()
        for file in sorted(files):
            inner = os.path.join(folder, file)
            if os.path.isfile(inner) and not os.path.islink(inner):
                yield inner, os.path.join(name, os.path.relpath(inner, path))


def _odd_ones(root: str, names: List[str]) -> Iterator[Tuple[str, str]]:
    """Yield (name, what it is) of links, pipes and devices, which are not given."""
    for name in names:
        top = os.path.join(root, name)
        if os.path.isabs(name) or os.path.normpath(name).startswith(os.pardir):
            continue
        if odd_kind(top):
            yield name, odd_kind(top)
            continue
        for folder, folders, files in os.walk(top):
            for inner in sorted([*folders, *files]):
                path = os.path.join(folder, inner)
                if odd_kind(path):
                    yield os.path.relpath(path, root), odd_kind(path)


def answer(
    request: Dict[str, Any], out: BinaryIO, piece_bytes: int = PIECE_BYTES, answer_bytes: int = ANSWER_BYTES
) -> None:
    """Write the answer to one request."""
    writer = AnswerWriter(out, piece_bytes, answer_bytes, request.get("but", []))
    for run, positions in request.get("runs", {}).items():
        root = os.path.join(request["folder"], run)
        for _, _, path in record_folders(os.path.join(root, "record")):
            series = [os.path.basename(file) for _, file in series_files(path)]
            for file in (*GROWING, *series):
                name = f"record/{os.path.basename(path)}/{file}"
                writer.growth(run, name, os.path.join(path, file), positions.get(name, [0, 0]))
    for run, names in request.get("trees", {}).items():
        writer.more = writer.more or writer.is_full
        at = request.get("at", {}).get(run, [])
        root = os.path.join(request["folder"], run)
        if writer.more or not writer.trees(run, root, names, int(request.get("limit", 0)), at):
            break
    writer.word(end=True, more=writer.more)
    out.flush()


def main(argv: List[str]) -> int:
    answer(json.load(sys.stdin), sys.stdout.buffer)
    return 0
