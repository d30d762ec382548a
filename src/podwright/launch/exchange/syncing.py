"""`sync`: what runs told, written for trackers of experiments; again it adds only what came since."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from podwright.launch.exchange.tracked import Tracked
from podwright.launch.exchange.trackers import tracker_of, whole_place
from podwright.launch.run import Run, is_over
from podwright.launch.session import Session

LOOK_S = 2.0


@dataclass(frozen=True)
class RunsSynced:
    """Runs with how many values of them were written."""

    runs: tuple[str, ...]
    to: str
    written: int
    open: tuple[str, ...] = ()
    """Those that go on: what comes of them is written by whoever looks at them next."""

    def as_json(self) -> dict[str, Any]:
        """Return the document of `sync`."""
        return {"runs": list(self.runs), "to": self.to, "written": self.written, "open": list(self.open)}


def sync_runs(session: Session, runs: Sequence[Run], to: str, follow: bool = False) -> Iterator[RunsSynced]:
    """Write what runs told; with `follow` go on until they are over. Yield at each look what was written by it."""
    tracker, place = tracker_of(to), whole_place(to)
    left = list(chain.from_iterable(run.parts() for run in runs))
    ids = tuple(run.id for run in left)
    while left:
        written, at_work = 0, []
        for run in left:
            record = run.record()
            written += tracker.write(Tracked.of(record, run.folder))
            if is_over(run, record):
                session.syncs.end(run.id, place)
            else:
                session.syncs.begin(run.id, place)
                at_work.append(run)
        yield RunsSynced(ids, to, written, tuple(run.id for run in at_work))
        left = at_work if follow else []
        if left:
            session.clock.sleep(LOOK_S)
