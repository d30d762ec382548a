"""Comparing what a user names: two sides, or the cells of a suite that differ in one thing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import fmean, median
from typing import Any, Literal

from podwright.analysis.bootstrap import median_interval
from podwright.analysis.causes import Cause, StepTime, causes_of, step_times
from podwright.analysis.comparison import PAIRED, PairComparison, compare, compare_pairs, looks, outliers
from podwright.analysis.turns import in_blocks, pairs_in_turn
from podwright.launch import Session
from podwright.launch.again import start_again
from podwright.prove.price import ProofPrice, RunCost, cost_of_record, no_price, priced
from podwright.prove.sides import DURATION, Measure, Side, side_of, side_of_cell
from podwright.prove.suite_folder import Cell, CellKey, SuiteFolder, suite_folder
from podwright.prove.suites import Progress, TrialEnded, alone, ignore, plan_suite, run_trial
from podwright.spec.problems import refuse

By = Literal["target", "runtime", "size", "image", "workload"]


@dataclass(frozen=True)
class SidesCompared:
    """Two sides with what the rule says of them, what differs, and where the time of their steps went."""

    a: Side
    b: Side
    metric: str
    comparison: PairComparison
    causes: tuple[Cause, ...]
    steps: tuple[StepTime, ...]

    @property
    def in_blocks(self) -> bool:
        """Tell whether one side was made before the other: then whatever drifted looks like a difference."""
        return in_blocks(self.a.began, self.b.began)

    def as_json(self) -> dict[str, Any]:
        """Return the document of `compare`."""
        return {
            **self.comparison.as_json(),
            "metric": self.metric,
            "order": "turns" if self.comparison.method == PAIRED else "blocks" if self.in_blocks else None,
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
        "outliers": outliers(side.samples),
        "added": list(side.added),
    }


def compare_refs(
    session: Session, refs: Sequence[str], measure: Measure = DURATION, files: bool = True
) -> list[SidesCompared]:
    """Compare runs, cells or, where they may be opened, files with samples: each with the first."""
    _check_two(refs)
    base, *others = (side_of(session, ref, measure.metric, files) for ref in refs)
    return [compare_sides(base, other, measure, len(others)) for other in others]


def _check_two(refs: Sequence[str]) -> None:
    if len(refs) < 2:
        raise refuse("there is nothing to compare it with", hint="name two, or one suite with --by target", field="B")


def compare_sides(a: Side, b: Side, measure: Measure = DURATION, tests: int = 1) -> SidesCompared:
    """Hold two sides against each other, pair by pair where they were made in turns; of several tests each is surer."""
    causes, steps = causes_of(a.traits, b.traits), step_times(a.traits, b.traits)
    pairs = pairs_in_turn(a.began, b.began) if a.name != b.name else None
    if pairs is not None:
        comparison = compare_pairs([(a.samples[i], b.samples[j]) for i, j in pairs], measure.margin, tests)
    else:
        comparison = compare(a.samples, b.samples, measure.margin, tests)
    return SidesCompared(a, b, measure.metric, comparison, tuple(causes), tuple(steps))


def compare_cells(session: Session, folder: SuiteFolder, by: By, measure: Measure = DURATION) -> CellsCompared:
    """Compare all cells of a suite's newest round that differ in one thing."""
    sides = {cell.key: _side(session, cell, measure.metric) for cell in folder.cells()}
    pairs = []
    for base, other in _pairs(sides, by):
        if sides[base].samples and sides[other].samples:
            pairs.append((sides[base], sides[other]))
    if not pairs:
        hint = f"`{by}s:` of its file needs two or more, and runs of both must have succeeded"
        raise refuse(f"no two cells of {folder.name} differ in their {by} alone", hint=hint, field="--by")
    return CellsCompared(folder.name, by, tuple(compare_sides(a, b, measure) for a, b in pairs))


def _side(session: Session, cell: Cell, metric: str) -> Side:
    if not cell.values(metric):
        return Side(cell.name, ())
    return side_of_cell(session, cell, metric)


def _pairs(keys: Iterable[CellKey], by: By) -> Iterator[tuple[CellKey, CellKey]]:
    blank: Any = 0 if by == "size" else ""
    groups: dict[CellKey, list[CellKey]] = {}
    for key in keys:
        groups.setdefault(replace(key, **{by: blank}), []).append(key)
    for base, *others in groups.values():
        yield from ((base, other) for other in others)


@dataclass(frozen=True)
class Effort:
    """What may be spent until two sides are decided, and what is said on the way."""

    limit: int = 30
    progress: Progress = ignore
    priced: Callable[[ProofPrice], None] = no_price


def compare_until_proven(
    session: Session, refs: Sequence[str], measure: Measure = DURATION, effort: Effort | None = None
) -> SidesCompared:
    """Run the two sides in turn until the rule decides, or each has as many samples as the limit.

    How often they are looked at is fixed before the first run: looking after each one would call equal sides different
    in one case of six.
    """
    _check_two(refs)
    effort = effort or Effort()
    sides = [side_of(session, ref, measure.metric) for ref in refs[:2]]
    for side in sides:
        if side.cell is None and side.run is None:
            hint = "name runs, or cells of a suite such as night/toy/bare"
            raise refuse(f"{side.name} is a file, and only runs and cells can be run again", hint=hint, field="--until")
    counts = looks(min(len(side.samples) for side in sides), effort.limit)
    effort.priced(_price(session, sides, counts[-1]))
    for count in counts:
        while min(len(side.samples) for side in sides) < count:
            _add_one(session, refs, sides, measure.metric, effort.progress)
        compared = compare_sides(sides[0], sides[1], measure, len(counts))
        if compared.comparison.is_decided:
            break
    return compared


def _price(session: Session, sides: Sequence[Side], count: int) -> ProofPrice:
    """Return what it takes until each side has so many samples, by the runs that there are."""
    runs, seconds = 0, 0.0
    costs: list[RunCost] = []
    for side in sides:
        known = [session.home.read_anyway(run) for run in side.runs if session.home.has(run)]
        more = max(0, count - len(side.samples))
        runs += more
        seconds += more * fmean([record.duration_s or 0.0 for record in known] or [0.0])
        costs += [cost_of_record(record) for record in known] * bool(more)
    return priced(runs, seconds, costs)


def _add_one(session: Session, refs: Sequence[str], sides: list[Side], metric: str, progress: Progress) -> None:
    """Run the side that has fewer samples; of equal ones now the first and now the second begins (ABBA)."""
    counts = [len(side.samples) for side in sides]
    index = counts[0] % 2 if counts[0] == counts[1] else counts.index(min(counts))
    sides[index] = _once_more(session, refs[index], sides[index], metric, progress)
    if len(sides[index].samples) == counts[index]:
        raise refuse(f"{sides[index].name} did not succeed", hint="`podwright ps` shows the run", exit_code=1)


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
    began = side.began + more.began
    return replace(side, samples=samples, traits=traits, added=(*side.added, run.id), began=began)


def _run_cell(session: Session, cell: Cell) -> tuple[str, str]:
    folder = suite_folder(session.home, cell.suite)
    plan = plan_suite(Path(folder.file))
    workload = plan.cells.get(cell.key)
    if workload is None:
        raise refuse(f"{plan.path} has no cell {cell.key.name} any more", field="--until")
    with alone(folder):
        return run_trial(session, folder, workload, cell.key, cell.round)
