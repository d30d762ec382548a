"""Runs that a tracker has a part of: whoever looks at them next writes what came since, until they are over."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from podwright.files.journal import JournalFile
from podwright.files.locks import try_lock
from podwright.runs import Home, Record, RunFolder
from podwright.spec.problems import Refusal

FILE, LOCK = "syncs.jsonl", "syncs.lock"
EACH_S = 10.0
"""Between two writes of a run that somebody follows."""
AGAIN_S = 60.0
"""After a tracker could not be written, before any command tries it again."""


class UnfinishedSyncs:
    """The syncs of a home that are to go on: lines that say what was begun, what failed last and what is done."""

    def __init__(self, home: Path, now: Callable[[], float]) -> None:
        self._home, self._now = home, now
        self._journal = JournalFile(home / FILE)
        self._written_at: dict[tuple[str, str], float] = {}

    def begin(self, run_id: str, to: str) -> None:
        """Note that a tracker is to get what comes of a run."""
        if (run_id, to) not in self._open():
            self._journal.append({"run": run_id, "to": to})

    def end(self, run_id: str, to: str) -> None:
        """Note that a tracker has all of a run."""
        if (run_id, to) in self._open():
            self._journal.append({"run": run_id, "to": to, "done": True})

    def write(self, home: Home, records: Iterable[Record]) -> None:
        """Write what came of these runs since they were written; what cannot be written now is left to a later look."""
        if not self._journal.path.exists():
            return
        unfinished, by_id = self._open(), {record.id: record for record in records}
        due = [place for place, failed_at in unfinished.items() if self._is_due(place, failed_at, by_id.get(place[0]))]
        if not due:
            return
        with try_lock(self._home / LOCK) as is_alone:
            for run_id, to in due if is_alone else []:
                self._write(home.folder(run_id), by_id[run_id], to)

    def _open(self) -> dict[tuple[str, str], float]:
        """Return what is to go on, each with when it failed last."""
        found: dict[tuple[str, str], float] = {}
        for row in self._journal.rows():
            place = (str(row.get("run")), str(row.get("to")))
            if row.get("done"):
                found.pop(place, None)
            else:
                found[place] = _number(row.get("failed_at"))
        return found

    def _is_due(self, place: tuple[str, str], failed_at: float, record: Record | None) -> bool:
        now = self._now()
        if record is None or now - failed_at < AGAIN_S:
            return False
        return record.is_final or now - self._written_at.get(place, now - EACH_S) >= EACH_S

    def _write(self, folder: RunFolder, record: Record, to: str) -> None:
        from podwright.launch.exchange.tracked import Tracked
        from podwright.launch.exchange.trackers import tracker_of

        self._written_at[record.id, to] = self._now()
        try:
            tracker_of(to).write(Tracked.of(record, folder))
        except (Refusal, OSError) as error:
            why = error.problems[0].message if isinstance(error, Refusal) else error.strerror or str(error)
            logging.getLogger("podwright").warning("%s is not written to %s: %s", record.id, to, why)
            self._journal.append({"run": record.id, "to": to, "failed_at": round(self._now(), 3)})
            return
        if folder.is_sealed or record.state == "lost":
            self.end(record.id, to)


def _number(value: Any) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
