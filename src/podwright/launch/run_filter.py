"""Which of all runs are meant."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from podwright.runs.query import RunCondition, both
from podwright.runs.states import STATES
from podwright.spec.nearest import one_of
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.runs import Record


EVERY_RUN = RunCondition()
OF_RUN = "EXISTS (SELECT 1 FROM facts WHERE run = id AND facts.name ="


@dataclass(frozen=True)
class RunChoice:
    """What chosen runs have in common; what is left out holds for any run."""

    state: str | None = None
    name: str | None = None
    """A workload's name, or a pattern such as `seg*`."""
    on: str | None = None
    """A target, or a pod with all its schedulers."""
    since: float | None = None
    """When they were created at the earliest."""
    user: str | None = None
    """Whose: a user's who shares runs, or `all`; one's own if not said."""

    def __post_init__(self) -> None:
        if self.state is not None and self.state not in STATES:
            raise refuse(f'"{self.state}" is not a state', one_of(self.state, "a state", STATES), field="--state")

    @property
    def is_any(self) -> bool:
        """Return whether every run is meant."""
        return self == ANY

    def condition(self) -> RunCondition:
        """Return the same, whoever's the run is, as a condition of the index."""
        conditions = [EVERY_RUN]
        if self.state is not None:
            conditions.append(RunCondition("state = ?", (self.state,)))
        if self.name is not None:
            pattern = self.name.replace("[!", "[^")
            conditions.append(RunCondition(f"{OF_RUN} 'name' AND value GLOB ?)", (pattern,)))
        if self.on is not None:
            scheduler = f"substr(value, 1, {len(self.on) + 1}) = ?"
            target = f"{OF_RUN} 'target' AND (value = ? OR {scheduler}))"
            conditions.append(RunCondition(target, (self.on, f"{self.on}:")))
        if self.since is not None:
            conditions.append(RunCondition("created_at >= ?", (self.since,)))
        return both(*conditions)

    def fits(self, record: Record) -> bool:
        """Return whether a run is meant."""
        return (
            self.state in (None, record.state)
            and (self.name is None or fnmatchcase(record.name, self.name))
            and (self.on is None or self.on in (record.target, record.target.partition(":")[0]))
            and (self.since is None or record.created_at >= self.since)
        )


ANY = RunChoice()
