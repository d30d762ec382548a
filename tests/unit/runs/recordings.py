"""Outputs of programs as they came, chunk by chunk, through what reads them in a pilot and what sums them up."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from podwright.pilot.masking import Masker
from podwright.pilot.protocol import rows_of
from podwright.pilot.ranks.guesses import Recogniser
from podwright.pilot.ranks.logs import NodeLog
from podwright.pilot.ranks.results import Results
from podwright.pilot.system.journal import Journal
from podwright.runs import Fold
from podwright.runs.record import Record
from tests.unit.runs.made import START, asked, event, parsed

TURN_S = 0.25
READY = event("ready", 0.0, world_size=1)
GO = event("go", 0.0, world_size=1, attempt=1, hosts=["vm"])


class Recording:
    """One output: `about` says what it is of, and what is true of it; its chunks are (seconds, stream, text)."""

    def __init__(self, path: Path) -> None:
        lines = path.read_text(encoding="utf-8").splitlines()
        self.about: dict[str, Any] = json.loads(lines[0])
        self._chunks: list[tuple[float, str, str]] = [tuple(json.loads(line)) for line in lines[1:]]

    @property
    def lasts_s(self) -> float:
        """Return how long the training went on."""
        return float(self.about["end"] - self.about["begin"])

    def truth(self, at_s: float) -> float | None:
        """Return the seconds that were left of what has a total; None where nothing has."""
        ends = {"run": [self.about["end"]], "epoch": self.about["epochs"], None: []}[self.about["total"]]
        return next((end - at_s for end in ends if end > at_s), None)

    def records(self, folder: Path, moments: list[float]) -> Iterator[Record]:
        """Yield the record of its run at each of these moments."""
        replay, moments, turn = Replay(folder), [*moments], 0.0
        for t, stream, text in [*self._chunks, (1e9, "o", "")]:
            while turn < t and moments:
                if turn >= moments[0]:
                    yield replay.record(moments.pop(0))
                replay.turn(turn)
                turn += TURN_S
            replay.hear(t, stream, text)


class Replay:
    """A node's log and results under a clock that the recording sets."""

    def __init__(self, folder: Path) -> None:
        self._t, self._folder, self._read = 0.0, folder, 0
        self._journal = Journal(str(folder / "events.jsonl"), 0, self)
        recogniser = Recogniser({}, guesses=True, monotonic=lambda: self._t)
        self._results = Results(str(folder), None, self._journal, recogniser)
        self._log = NodeLog(str(folder), 1 << 24, Masker(()), self.now).rank("0")
        self._fold = Fold(asked(), str(folder))
        self._fold.take(parsed(GO, READY))

    def now(self) -> float:
        return START + self._t

    def hear(self, t: float, stream: str, text: str) -> None:
        self._t = t
        for line in self._log.feed(stream, text.encode()):
            self._results.hear(0, line)

    def turn(self, t: float) -> None:
        self._t = t
        self._results.tick()

    def record(self, t: float) -> Record:
        rows = list(rows_of(str(self._folder / "events.jsonl")))
        self._fold.take(parsed(*rows[self._read :]))
        self._read = len(rows)
        return self._fold.record(START + t)
