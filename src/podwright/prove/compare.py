"""Comparing what a user names: two sides, or the cells of a suite that differ in one thing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any, Literal

from podwright.analysis.bootstrap import median_interval
from podwright.analysis.causes import Cause, StepTime, causes_of, step_times
from podwright.analysis.comparison import PairComparison, compare
from podwright.launch import Session
from podwright.launch.again import start_again
from podwright.prove.sides import DURATION, Measure, Side, cell_traits, side_of
from podwright.prove.suite_folder import Cell, CellKey, SuiteFolder, suite_folder
from podwright.prove.suites import Progress, TrialEnded, alone, ignore, plan_suite, run_trial
from podwright.spec.problems import refuse

By = Literal["target", "runtime", "size", "image"]


@dataclass(frozen=True)
class SidesCompared:
    """Two sides with what the rule says of them, what differs, and where the time of their steps went."""

    a: Side
    b: Side
    metric: str
    comparison: PairComparison
    causes: tuple[Cause, ...]
    steps: tuple[StepTime, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the document of `compare`."""
        return {
            **self.comparison.as_json(),
            "metric": self.metric,
            "causes": [asdict(cause) for cause in self.causes],
            "steps": [asdict(step) for step in self.steps],
            "sides": [_side_json(self.a), _side_json(self.b)],
        }


@dataclass(frozen=True)
class CellsCompared:
    """The cells of a suite's newest round that differ in one thing, pair by pair; the first value is the measure."""

    suite: str
    by: By
    pairs: tuple[SidesCompared, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the document of `compare --by`."""
        return {"suite": self.suite, "by": self.by, "pairs": [pair.as_json() for pair in self.pairs]}


def _side_json(side: Side) -> dict[str, Any]:
    return {
        "name": side.name,
        "samples": list(side.samples),
        "median": median(side.samples),
        "interval": median_interval(side.samples),
        "left_out": side.left_out or None,
        "added": list(side.added),
    }


def compare_refs(session: Session, refs: Sequence[str], measure: Measure = DURATION) -> list[SidesCompared]:
    """Compare runs, cells or files with samples: each with the first."""
    _check_two(refs)
    base, *others = (side_of(session, ref, measure.metric) for ref in refs)
    return [compare_sides(base, other, measure) for other in others]


def _check_two(refs: Sequence[str]) -> None:
    if len(refs) < 2:
        raise refuse("there is nothing to compare it with", hint="name two, or one suite with --by target", field="B")


def compare_sides(a: Side, b: Side, measure: Measure = DURATION) -> SidesCompared:
    """Hold two sides against each other."""
    causes, steps = causes_of(a.traits, b.traits), step_times(a.traits, b.traits)
    comparison = compare(a.samples, b.samples, measure.margin)
    return SidesCompared(a, b, measure.metric, comparison, tuple(causes), tuple(steps))


def compare_cells(session: Session, folder: SuiteFolder, by: By, measure: Measure = DURATION) -> CellsCompared:
    """Compare all cells of a suite's newest round that differ in one thing."""
    sides = {cell.key: _side(session, cell, measure.metric) for cell in folder.cells()}
    pairs = []
    for base, other in _pairs(sides, by):
        if sides[base].samples and sides[other].samples:
            pairs.append(compare_sides(sides[base], sides[other], measure))
    if not pairs:
        hint = f"`{by}s:` of its file needs two or more, and runs of both must have succeeded"
        raise refuse(f"no two cells of {folder.name} differ in their {by} alone", hint=hint, field="--by")
    return CellsCompared(folder.name, by, tuple(pairs))


def _side(session: Session, cell: Cell, metric: str) -> Side:
    samples = tuple(value for value in cell.values(metric) if value > 0)
    return Side(cell.name, samples, cell_traits(session, cell), cell=cell)


def _pairs(keys: Iterable[CellKey], by: By) -> Iterator[tuple[CellKey, CellKey]]:
    blank: Any = {"size": 0}.get(by, "")
    groups: dict[CellKey, list[CellKey]] = {}
    for key in keys:
        groups.setdefault(replace(key, **{by: blank}), []).append(key)
    for base, *others in groups.values():
        yield from ((base, other) for other in others)


def compare_until_proven(
    session: Session, refs: Sequence[str], measure: Measure = DURATION, limit: int = 30, progress: Progress = ignore
) -> SidesCompared:
    """Run the two sides in turn until the rule decides, or each has as many samples as the limit."""
    _check_two(refs)
    sides = [side_of(session, ref, measure.metric) for ref in refs[:2]]
    for side in sides:
        if side.cell is None and side.run is None:
            hint = "name runs, or cells of a suite such as night/toy/bare"
            raise refuse(f"{side.name} is a file, and only runs and cells can be run again", hint=hint, field="--until")
    while True:
        compared = compare_sides(sides[0], sides[1], measure)
        if compared.comparison.is_decided or min(compared.comparison.n) >= limit:
            return compared
        index = min(range(2), key=lambda index: len(sides[index].samples))
        side, sides[index] = sides[index], _once_more(session, refs[index], sides[index], measure.metric, progress)
        if len(sides[index].samples) == len(side.samples):
            raise refuse(f"{side.name} did not succeed", hint="`podwright ps` shows the run", exit_code=1)


def _once_more(session: Session, ref: str, side: Side, metric: str, progress: Progress) -> Side:
    """Return the side with one more sample, or as it is where the run did not succeed."""
    if side.cell is not None:
        run_id, state = _run_cell(session, side.cell)
        progress(TrialEnded(side.name, run_id, state))
        return side_of(session, ref, metric)
    run = start_again(session, side.run or ref)
    state = run.wait().state
    progress(TrialEnded(side.name, run.id, state))
    if state != "succeeded":
        return side
    more = side_of(session, run.id, metric)
    samples, traits = side.samples + more.samples, side.traits + more.traits
    return replace(side, samples=samples, traits=traits, added=(*side.added, run.id))


def _run_cell(session: Session, cell: Cell) -> tuple[str, str]:
    folder = suite_folder(session.home, cell.suite)
    plan = plan_suite(Path(folder.file))
    workload = plan.cells.get(cell.key)
    if workload is None:
        raise refuse(f"{plan.path} has no cell {cell.key.name} any more", field="--until")
    with alone(folder):
        return run_trial(session, folder, workload, cell.key, cell.round)
