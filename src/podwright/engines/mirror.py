"""Brings what pilots wrote on a cluster into the runs' folders on this machine: one question for any number of runs."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from podwright.engines.frames import IN_THE_WAY
from podwright.files.locks import try_lock
from podwright.files.untrusted import KINDS, read_untrusted
from podwright.files.whole import make_private, write_whole
from podwright.pilot.protocol import (
    CLOSED,
    GROWING_BYTES,
    SERIES_BYTES,
    parse_line,
    parse_record_name,
    parse_series_name,
)
from podwright.runs import RunFolder, fields
from podwright.runs.copies import LeftOut
from podwright.runs.metrics import METRICS_FILE
from podwright.runs.series import SERIES_FILE

GROWING = frozenset({"events.jsonl", "metrics.jsonl", "merged.log", CLOSED})
STATE = "mirror.json"
OWN = frozenset(
    [
        *("job", "spec", "run.json", "token", "client.jsonl", "record.json"),
        *("cancelled", "report.html", METRICS_FILE, SERIES_FILE),
    ]
)
"""What only this side writes, whatever is asked for: with `mirror.json` and all locks."""
TOO_LARGE = "too large to come by itself"
CUT = "{name} did not come whole: it is larger than a pilot makes it, or has holes"
MAX_LEFT_OUT = 1000
"""Of a run, that are named."""
HEAD_BYTES = 64 * 1024
"""More than a line before a piece may have."""
Ask = Callable[[dict[str, Any]], bytes]
"""Gives a question to the mirror role over there, and its answer back."""


@dataclass(frozen=True)
class Trees:
    """Parts of the runs' folders that are wanted whole, `but` those inside them."""

    names: Sequence[str] = ()
    limit_bytes: int | None = None
    """Of each run; None: as much as there is."""
    but: Sequence[str] = ()
    alone: bool = False
    """Whether they come without what is new of the records."""


RECORD_ONLY = Trees()


class Mirror:
    """The runs that are mirrored in one exchange; a run that another client mirrors just now is left to that client."""

    def __init__(self, folders: Sequence[RunFolder]) -> None:
        self._stack = ExitStack()
        self._folders = {folder.id: folder for folder in folders}
        self._known: dict[str, dict[str, list[int]]] = {}
        self._at: dict[str, list[Any]] = {}
        self._left: dict[str, dict[str, LeftOut]] = {}
        self.gaps: dict[str, list[str]] = {}
        """What is missing of the records, in sentences, by run."""
        self._trees = RECORD_ONLY
        self._room: dict[str, int] = {}
        self._whole: set[str] = set()

    def __enter__(self) -> Mirror:
        self._folders = {name: folder for name, folder in self._folders.items() if self._lock(folder)}
        self._known = {name: _read_state(folder) for name, folder in self._folders.items()}
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _lock(self, folder: RunFolder) -> bool:
        return self._stack.enter_context(try_lock(folder.path / "mirror.lock"))

    def bring(self, ask: Ask, root: str, trees: Trees = RECORD_ONLY) -> dict[str, list[LeftOut]]:
        """Bring what is new of the records, and these trees whole, in as many answers of bounded size as it takes.

        Return the runs whose trees are here now, each with what was over the limit, or is no plain file.
        """
        while self._folders:
            before = self._progress()
            more = self.take(ask(self.question(root, trees)))
            if not more or before == self._progress():
                break  # all is here, or nothing comes
        return {run: list(self._left.get(run, {}).values()) for run in sorted(self._whole)}

    def _progress(self) -> tuple[str, int]:
        return json.dumps((self._known, self._at)), len(self._whole)

    def question(self, root: str, trees: Trees = RECORD_ONLY) -> dict[str, Any]:
        """Return what to ask for; trees come after the last of the record."""
        self._trees = trees
        question: dict[str, Any] = {"folder": root, "runs": {} if trees.alone else self._known}
        wanted = {run: list(trees.names) for run in self._folders if trees.names and run not in self._whole}
        if wanted:
            question |= {"trees": wanted, "at": self._at, "limit": trees.limit_bytes or 0, "but": list(trees.but)}
        return question

    def take(self, answer: bytes) -> bool:
        """Put every piece where it belongs, and return whether there is more to ask for.

        A cut answer is taken as far as it goes.
        """
        changed: set[str] = set()
        more = False
        for head, data in _pieces(answer):
            folder = self._folders.get(str(head.get("r")))
            if head.get("end"):
                more = bool(head.get("more"))
            elif folder is None:
                continue
            elif head.get("whole"):
                self._whole.add(folder.id)
            elif (piece := read_piece(head, self._trees.names)) is None:
                continue
            elif piece.left_out and is_of_record(piece.name):
                self._say(folder, CUT.format(name=piece.name))
            elif piece.left_out:
                self._leave_out(folder, LeftOut(piece.name, piece.left_out))
            elif self._place(folder, piece, data) and is_of_record(piece.name):
                changed.add(folder.id)
        for run in changed:
            write_whole(self._folders[run].path / STATE, json.dumps(self._known[run]).encode())
        return more

    def _say(self, folder: RunFolder, sentence: str) -> None:
        sentences = self.gaps.setdefault(folder.id, [])
        if sentence not in sentences and len(sentences) < MAX_LEFT_OUT:
            sentences.append(sentence)

    def _leave_out(self, folder: RunFolder, gap: LeftOut) -> None:
        gaps = self._left.setdefault(folder.id, {})
        if len(gaps) < MAX_LEFT_OUT:
            gaps[gap.path] = gap

    def _place(self, folder: RunFolder, piece: Piece, data: bytes) -> bool:
        """Write a piece; return False where it does not go on from what is here, or something else is in its place."""
        path = folder.path / piece.name
        if not _is_of_run(folder, piece, len(data)):
            return False
        if piece.is_turn:
            with suppress(OSError):
                path.replace(path.with_name(path.name + ".1"))
            self._known[folder.id].pop(piece.name, None)
            return True
        if piece.inode is None and not self._has_room(folder.id, len(data)):
            return False
        try:
            _write(path, piece, data)
        except OSError as error:
            if error.errno in IN_THE_WAY:
                return False
            raise
        end = piece.offset + len(data)
        if piece.inode is not None:
            self._known[folder.id][piece.name] = [piece.inode, end]
        else:
            self._at[folder.id] = [piece.name, end]
        return True

    def _has_room(self, run: str, size: int) -> bool:
        """Return whether so much more of a run's trees may come: the other side was told, and need not obey."""
        limit_bytes = self._trees.limit_bytes
        if not limit_bytes:
            return True
        room = self._room.get(run, limit_bytes)
        self._room[run] = room - size
        return size <= room


@dataclass(frozen=True)
class Piece:
    """What the line before a piece says of it, once all of it was checked."""

    name: str
    offset: int = 0
    inode: int | None = None
    """Of a file of the record; a file of a tree has none."""
    is_turn: bool = False
    left_out: str = ""
    """Why the file does not come."""


def read_piece(head: Mapping[str, Any], names: Sequence[str]) -> Piece | None:
    """Return what a line says, or None when it is of another type, or names a file that was not asked for."""
    name = fields.text(head.get("f"))
    if name is None or not is_wanted(name, names):
        return None
    if head.get("turn") or "left" in head:
        return Piece(name, is_turn=bool(head.get("turn")), left_out=TOO_LARGE if "left" in head else "")
    if "odd" in head:
        kind = head["odd"] if head["odd"] in list(KINDS.values()) else "something odd"
        return Piece(name, left_out=f"{kind}, no plain file")
    offset, inode = fields.whole(head.get("o")), fields.whole(head.get("i"))
    if offset is None or offset < 0 or ("i" in head and inode is None):
        return None
    return Piece(name, offset, inode)


def _is_of_run(folder: RunFolder, piece: Piece, size: int) -> bool:
    """Return whether a file of the record is no longer than any, and a series that of a rank of the run.

    See `is_wanted` for all else.
    """
    rank = parse_series_name(PurePosixPath(piece.name).name)
    if piece.inode is None:
        return True
    if rank is None:
        return piece.offset + size <= GROWING_BYTES
    if not folder.is_readable:
        return False
    return rank < folder.asked.nodes * folder.asked.ranks_per_node and piece.offset + size <= SERIES_BYTES


def _write(path: Path, piece: Piece, data: bytes) -> None:
    make_private(path.parent)
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
    if piece.inode is None and piece.offset == 0:  # a file of a tree begins: an older one of this name may be longer
        flags |= os.O_TRUNC
    file = os.open(path, flags, 0o600)
    try:
        status = os.fstat(file)
        # Pieces follow each other: one that leaves a hole would make a file of any size out of nothing.
        if not stat.S_ISREG(status.st_mode) or piece.offset > status.st_size:
            raise OSError(errno.ENXIO, "it does not go on from what is here")
        os.pwrite(file, data, piece.offset)
    finally:
        os.close(file)


def _pieces(answer: bytes) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yield the pieces of an answer, each a line that says what it is and its bytes; stop where it is cut."""
    place = 0
    while place < len(answer):
        end = answer.find(b"\n", place, place + HEAD_BYTES)
        if end < 0:
            return
        head = parse_line(answer[place:end])
        if head is None:
            return
        if head.get("end"):
            yield head, b""
            return
        size = fields.whole(head.get("n"))
        if size is None or size < 0:
            return
        place = end + 1 + size
        data = answer[end + 1 : place]
        if len(data) == size:
            yield head, data


def _read_state(folder: RunFolder) -> dict[str, list[int]]:
    """Return what this machine has of each file; one that is shorter than that was lost here and is asked for again."""
    try:
        known = json.loads(read_untrusted(folder.path, STATE))
    except (OSError, ValueError, RecursionError):
        return {}
    if not isinstance(known, dict):
        return {}
    state = {}
    for name, row in known.items():
        numbers = fields.every(fields.whole)(row)
        if numbers is None or len(numbers) != 2 or not is_wanted(name, ()):
            continue
        inode, size = numbers
        if 0 <= size <= _size(folder.path / name):
            state[name] = [inode, size]
    return state


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


def is_wanted(name: str, names: Sequence[str]) -> bool:
    """Return whether a file may be written: a growing file of a record, or one of the trees that were asked for.

    What comes from elsewhere decides nothing about our paths.
    """
    path = PurePosixPath(name)
    parts = path.parts
    if not parts or path.is_absolute() or ".." in parts or "\0" in name or parts[0] in (*OWN, STATE):
        return False
    if parts[-1].endswith((".lock", ".part")) and len(parts) == 1:
        return False
    is_asked = any(path.is_relative_to(asked) for asked in names)
    if parts[0] != "record":
        return is_asked
    if len(parts) != 3 or parse_record_name(parts[1]) is None:
        return False
    return is_asked or is_of_record(name)


def is_of_record(name: str) -> bool:
    """Return whether a file is one of those of a record that grow."""
    path = PurePosixPath(name)
    return path.parts[0] == "record" and (path.name in GROWING or parse_series_name(path.name) is not None)
