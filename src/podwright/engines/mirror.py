"""Brings what pilots wrote on a cluster into the runs' folders on this machine: one question for any number of runs."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from podwright.pilot.protocol import parse_line, parse_record_name
from podwright.runs import RunFolder
from podwright.runs.files import make_private, write_whole
from podwright.runs.locks import try_lock

GROWING = frozenset({"events.jsonl", "metrics.jsonl", "merged.log"})
STATE = "mirror.json"
Ask = Callable[[dict[str, Any]], bytes]
"""Gives a question to the mirror role over there, and its answer back."""


class Mirror:
    """The runs that are mirrored in one exchange; a run that another client mirrors just now is left to that client."""

    def __init__(self, folders: Sequence[RunFolder]) -> None:
        self._stack = ExitStack()
        self._folders = {folder.id: folder for folder in folders}
        self._known: dict[str, dict[str, list[int]]] = {}
        self._at: dict[str, list[Any]] = {}
        self._left: dict[str, list[str]] = {}
        self._whole: set[str] = set()

    def __enter__(self) -> Mirror:
        self._folders = {name: folder for name, folder in self._folders.items() if self._lock(folder)}
        self._known = {name: _read_state(folder) for name, folder in self._folders.items()}
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _lock(self, folder: RunFolder) -> bool:
        return self._stack.enter_context(try_lock(folder.path / "mirror.lock"))

    def bring(
        self, ask: Ask, root: str, names: Sequence[str] = (), limit_bytes: int | None = None
    ) -> dict[str, list[str]]:
        """Bring what is new of the records, and these trees whole, in as many answers of bounded size as it takes.

        Return the runs whose trees are here now, each with the names of what was over the limit.
        """
        while self._folders:
            before = self._progress()
            more = self.take(ask(self.question(root, names, limit_bytes)))
            if not more or before == self._progress():
                break  # all is here, or nothing comes
        return {run: list(dict.fromkeys(self._left.get(run, []))) for run in sorted(self._whole)}

    def _progress(self) -> tuple[str, int]:
        return json.dumps((self._known, self._at)), len(self._whole)

    def question(self, root: str, names: Sequence[str] = (), limit_bytes: int | None = None) -> dict[str, Any]:
        """Return what to ask for; trees come after the last of the record."""
        question: dict[str, Any] = {"folder": root, "runs": self._known}
        wanted = {run: list(names) for run in self._folders if names and run not in self._whole}
        if wanted:
            question |= {"trees": wanted, "at": self._at, "limit": limit_bytes or 0}
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
            elif "left" in head:
                self._left.setdefault(folder.id, []).append(str(head["f"]))
            elif _is_safe(str(head.get("f"))):
                self._place(folder, head, data)
                changed.add(folder.id)
        for run in changed:
            write_whole(self._folders[run].path / STATE, json.dumps(self._known[run]).encode())
        return more

    def _place(self, folder: RunFolder, head: Mapping[str, Any], data: bytes) -> None:
        path = folder.path / head["f"]
        if head.get("turn"):
            with suppress(FileNotFoundError):
                path.replace(path.with_name(path.name + ".1"))
            self._known[folder.id].pop(head["f"], None)
            return
        make_private(path.parent)
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        if "of" in head and head["o"] == 0:  # a file of a tree begins: an older one of this name may be longer
            flags |= os.O_TRUNC
        file = os.open(path, flags, 0o600)
        try:
            os.pwrite(file, data, head["o"])
        finally:
            os.close(file)
        if "i" in head:
            self._known[folder.id][head["f"]] = [head["i"], head["o"] + len(data)]
        else:
            self._at[folder.id] = [head["f"], head["o"] + len(data)]


def _pieces(answer: bytes) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yield the pieces of an answer, each a line that says what it is and its bytes; stop where it is cut."""
    place = 0
    while place < len(answer):
        end = answer.find(b"\n", place)
        if end < 0:
            return
        head = parse_line(answer[place:end])
        if head is None:
            return
        if head.get("end"):
            yield head, b""
            return
        place = end + 1 + int(head["n"])
        data = answer[end + 1 : place]
        if len(data) == int(head["n"]):
            yield head, data


def _read_state(folder: RunFolder) -> dict[str, list[int]]:
    """Return what this machine has of each file; one that is shorter than that was lost here and is asked for again."""
    try:
        known: dict[str, list[int]] = json.loads((folder.path / STATE).read_text())
    except (OSError, ValueError):
        return {}
    return {name: row for name, row in known.items() if _size(folder.path / name) >= row[1]}


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return -1


def _is_safe(name: str) -> bool:
    """Return whether a file may be written: what comes from elsewhere decides nothing about our paths."""
    parts = Path(name).parts
    if not parts or Path(name).is_absolute() or ".." in parts:
        return False
    if parts[0] == "record":
        return len(parts) == 3 and parse_record_name(parts[1]) is not None
    return parts[0] not in ("job", "spec", "run.json", "token", "client.jsonl", "record.json", STATE)
