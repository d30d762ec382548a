"""All that is known of one run, as it is looked at."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podwright.analysis.failure_groups import FAILED, FailureGroup, group_failures
from podwright.analysis.goodput import sentences
from podwright.analysis.settings import environment_of
from podwright.analysis.straggler import RankWatch, Straggler
from podwright.launch.failures import last_stack
from podwright.launch.run import records_anyway
from podwright.runs.events import (
    EventFilesRead,
    FilesKept,
    PilotStarted,
    RankFailed,
    RankStack,
    Recognised,
    Retry,
    SoftwareFound,
)
from podwright.runs.goodput.account import from_json
from podwright.runs.parquet import Unreadable
from podwright.runs.replacements import replacements

if TYPE_CHECKING:
    from podwright.launch.records import RunRecords
    from podwright.launch.run import Run
    from podwright.runs import RunFolder
    from podwright.runs.replacements import Replacement

SHOWN = (PilotStarted, SoftwareFound, Recognised, EventFilesRead, Retry, RankStack, FilesKept)
"""Kinds of events that an overview has; of others, which may be very many, none is held."""
REPORTS = ("report.html", "comparison.html")
"""Of a run, and of several points."""


@dataclass(frozen=True)
class RunOverview:
    """A run with its points, what it takes on this machine, and what happened on the way."""

    folder: RunFolder
    records: RunRecords
    size_bytes: int
    replaced: list[Replacement]
    reasons: list[str]
    """Why it failed, if it did."""
    failures: list[FailureGroup]
    """Of a parent: what its points failed of."""

    straggler: Straggler | None = None
    """The rank that all others wait for, if one is known."""

    @property
    def goodput(self) -> list[str]:
        """Return what became of the time that the run was given, in lines."""
        told = from_json(self.records.record.goodput)
        return [] if told is None else list(sentences(told))

    @property
    def stack(self) -> list[str]:
        """Return where the rank was that hung last, unless the reasons say it."""
        return [] if self.reasons else last_stack(self.folder.events_of(RankStack))

    @property
    def report(self) -> Path | None:
        """Return where its report is; None before one was written."""
        return next((path for name in REPORTS if (path := self.folder.path / name).is_file()), None)

    def _asked(self) -> dict[str, Any]:
        """Return what was started, of what commit, and where its report is, if there is one."""
        asked = self.folder.asked if self.folder.is_readable else None
        return {
            "command": asked.workload.get("command") if asked else None,
            "commit": (asked.code or {}).get("commit") if asked else None,
            "report": str(self.report) if self.report else None,
        }

    @property
    def environment(self) -> dict[str, Any] | None:
        """Return what was below the program; None where nobody can say what was asked."""
        if not self.folder.is_readable:
            return None
        return environment_of(self.folder.asked, self.folder.events_of(PilotStarted, SoftwareFound))

    def as_json(self) -> dict[str, Any]:
        """Return it as `--json` has it."""
        failures = {"failures": [group.as_json() for group in self.failures]} if self.records.points else {}
        return {
            **self.records.as_json(),
            **failures,
            "straggler": None if self.straggler is None else self.straggler.as_json(),
            **self._asked(),
            "bytes": self.size_bytes,
            "replaced": [row.as_json() for row in self.replaced],
            "versions": [{"node": node, **row} for node, row in self.folder.versions().items()],
            "environment": self.environment,
            "retries": [_retry(event) for event in self.folder.events_of(Retry)],
        }


def _retry(event: Retry) -> dict[str, Any]:
    exception, rank, host = event.exception or None, event.rank, event.host or None
    return {"attempt": event.attempt, "rank": rank, "host": host, "reason": event.why, "exception": exception}


def overview_of(run: Run) -> RunOverview:
    """Ask what is known of a run now; a target that does not answer is no fault of it."""
    records = records_anyway(run)
    record, points = records
    size = sum(part.folder.size_bytes() for part in run.parts())
    reasons = run.explain(record) if record.state in ("failed", "lost") and not points else []
    parts = {part.id: part.folder for part in run.parts()}
    failed = [point for point in points if point.state in FAILED and point.id in parts]
    groups = group_failures((point, parts[point.id].events_of(RankFailed)) for point in failed)
    folder, watch = _read_once(run.folder)
    replaced = [] if points else replacements(folder.events())
    slow = None if points else _straggler(watch, folder)
    return RunOverview(folder, records, size, replaced, reasons, groups, slow)


def _read_once(folder: RunFolder) -> tuple[RunFolder, RankWatch]:
    """Read all events in one go: a run of many nodes has very many, and each kind is asked for by itself."""
    watch, kept = RankWatch(), []
    for event in folder.events():
        watch.take(event)
        if isinstance(event, SHOWN):
            kept.append(event)
    return folder.holding(kept), watch


def _straggler(watch: RankWatch, folder: RunFolder) -> Straggler | None:
    try:
        return watch.straggler(folder.samples)
    except Unreadable:  # its clocks are not known, which is no reason to show nothing
        return None
