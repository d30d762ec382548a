"""The gate of a suite: what became slower over its latest rounds, since which image, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from podwright.analysis.causes import Cause, causes_of
from podwright.analysis.comparison import PairComparison
from podwright.analysis.history import slowdowns
from podwright.launch import Session
from podwright.prove.sides import DURATION, Measure, cell_traits
from podwright.prove.suite_folder import Cell, histories, known_suite
from podwright.prove.suites import Progress, ignore, plan_suite, run_suite


@dataclass(frozen=True)
class GateFinding:
    """A cell that became slower: the last good round, the first slow one, and the first that was good again."""

    before: Cell
    since: Cell
    until: Cell | None
    comparison: PairComparison
    causes: tuple[Cause, ...]

    @property
    def same_version(self) -> bool:
        """Tell whether the image, or the code, is the one that was good: then it is not to blame."""
        return bool(self.since.version) and self.since.version == self.before.version

    def as_json(self) -> dict[str, Any]:
        """Return it as `bench gate` lists it."""
        row = self.comparison.as_json()
        return {
            "cell": self.since.name,
            **{name: row[name] for name in ("ratio", "interval", "p", "n")},
            "since": self.since.version or None,
            "round": self.since.round,
            "until": self.until.version if self.until else None,
            "same_version": self.same_version,
            "causes": [asdict(cause) for cause in self.causes],
        }


@dataclass(frozen=True)
class GateVerdict:
    """What the gate says of a suite."""

    suite: str
    rounds: int
    cells: int
    findings: tuple[GateFinding, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the document of `bench gate`."""
        verdict = "slower" if self.findings else "clean"
        rows = [finding.as_json() for finding in self.findings]
        return {"verdict": verdict, "findings": rows, "suite": self.suite, "rounds": self.rounds}


def judge_suite(
    session: Session, suite: str, measure: Measure = DURATION, rounds: int = 6, progress: Progress = ignore
) -> GateVerdict:
    """Judge the latest rounds of a suite, cell by cell; of a suite's file, not its name, a new round is run first.

    A round in which a cell has no samples is passed over.
    """
    if suite.endswith((".yaml", ".yml")):
        folder = run_suite(session, plan_suite(Path(suite)), again=True, progress=progress).folder
    else:
        folder = known_suite(session.home, suite)
    cells = histories(folder, rounds)
    findings: list[GateFinding] = []
    for history in cells.values():
        measured = [cell for cell in history if cell.values(measure.metric)]
        findings += _findings(session, measured, len(cells), measure)
    # Several images in one round are a history too.
    longest = max(map(len, cells.values()), default=0)
    return GateVerdict(folder.name, longest, len(cells), tuple(findings))


def _findings(session: Session, history: Sequence[Cell], cells: int, measure: Measure) -> Iterator[GateFinding]:
    for change in slowdowns([cell.values(measure.metric) for cell in history], cells, measure.margin):
        before, since = history[change.since - 1], history[change.since]
        until = None if change.until is None else history[change.until]
        causes = causes_of(cell_traits(session, before), cell_traits(session, since))
        yield GateFinding(before, since, until, change.comparison, tuple(causes))
