"""All that is known of one run, as it is looked at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from podwright.analysis.failure_groups import FAILED, FailureGroup, group_failures
from podwright.launch.failures import last_stack
from podwright.runs.events import RankFailed, RankStack

if TYPE_CHECKING:
    from podwright.launch.records import RunRecords
    from podwright.launch.run import Run
    from podwright.runs import RunFolder
    from podwright.runs.replacements import Replacement


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

    @property
    def stack(self) -> list[str]:
        """Return where the rank was that hung last, unless the reasons say it."""
        return [] if self.reasons else last_stack(self.folder.events_of(RankStack))

    def as_json(self) -> dict[str, Any]:
        """Return it as `--json` has it."""
        failures = {"failures": [group.as_json() for group in self.failures]} if self.records.points else {}
        return {
            **self.records.as_json(),
            **failures,
            "bytes": self.size_bytes,
            "replaced": [row.as_json() for row in self.replaced],
            "versions": [{"node": node, **row} for node, row in self.folder.versions().items()],
        }


def overview_of(run: Run) -> RunOverview:
    """Ask what is known of a run now; a target that does not answer is no fault of it."""
    records = run.records_anyway()
    record, points = records
    size = sum(part.folder.size_bytes() for part in run.parts())
    reasons = run.explain(record) if record.state in ("failed", "lost") and not points else []
    parts = {part.id: part.folder for part in run.parts()}
    failed = [point for point in points if point.state in FAILED and point.id in parts]
    groups = group_failures((point, parts[point.id].events_of(RankFailed)) for point in failed)
    return RunOverview(run.folder, records, size, [] if points else run.replacements(), reasons, groups)
