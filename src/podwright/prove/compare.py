"""Comparing what a user names: two sides, or the cells of a suite that differ in one thing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

from podwright.analysis.bootstrap import median_interval
from podwright.analysis.causes import Cause, StepTime, causes_of, step_times
from podwright.analysis.comparison import PairComparison, compare
from podwright.launch import Session
from podwright.launch.again import start_again
from podwright.prove.sides import METRIC, Side, cell_traits, side_of
from podwright.prove.suite_file import load_suite
from podwright.prove.suite_folder import Cell, CellKey, SuiteFolder, suite_folder
from podwright.prove.suite_run import alone, plan_suite, run_trial
from podwright.spec.problems import refuse, short

_PERCENT = re.compile(r"(\d+(?:\.\d+)?)\s*%", re.ASCII)
BY = ("target", "runtime", "size", "image")


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
            "causes": [cause.as_json() for cause in self.causes],
            "steps": [{"name": step.name, "a": step.a, "b": step.b} for step in self.steps],
            "sides": [_side_json(self.a), _side_json(self.b)],
        }


def _side_json(side: Side) -> dict[str, Any]:
    interval = median_interval(side.samples)
    return {
        "name": side.name,
        "samples": list(side.samples),
        "median": median(side.samples),
        "interval": list(interval) if interval else None,
        "left_out": side.left_out or None,
        "added": list(side.added),
    }


def margin_of(text: str) -> float:
    """Return the share that `3%` means."""
    match = _PERCENT.fullmatch(text.strip())
    if match is None:
        hint = f"did you mean `{text.strip()}%`?" if text.strip().isdecimal() else "write it like `3%`"
        raise refuse(f'"{short(text)}" is not a margin', hint=hint, field="--margin")
    share = float(match[1]) / 100
    if not 0 < share < 1:
        raise refuse("must be more than 0% and less than 100%", hint="3% is usual", field="--margin")
    return share


def compare_sides(a: Side, b: Side, metric: str = METRIC, margin: float = 0.03) -> SidesCompared:
    """Hold two sides against each other."""
    causes, steps = causes_of(a.traits, b.traits), step_times(a.traits, b.traits)
    return SidesCompared(a, b, metric, compare(a.samples, b.samples, margin), tuple(causes), tuple(steps))


def compare_cells(session: Session, folder: SuiteFolder, by: str, metric: str, margin: float) -> list[SidesCompared]:
    """Compare all cells of a suite's newest round that differ in one thing; the first value is the measure."""
    sides = {cell.key: _side(session, cell, metric) for cell in folder.cells()}
    pairs = []
    for base, other in _pairs(list(sides), by):
        if sides[base].samples and sides[other].samples:
            pairs.append(compare_sides(sides[base], sides[other], metric, margin))
    if not pairs:
        hint = f"`{by}s:` of its file needs two or more, and runs of both must have succeeded"
        raise refuse(f"no two cells of {folder.name} differ in their {by} alone", hint=hint, field="--by")
    return pairs


def _side(session: Session, cell: Cell, metric: str) -> Side:
    samples = tuple(value for value in cell.values(metric) if value > 0)
    return Side(cell.name, samples, cell_traits(session, cell), cell=cell)


def _pairs(keys: list[CellKey], by: str) -> Iterator[tuple[CellKey, CellKey]]:
    blank: Any = {"size": 0}.get(by, "")
    groups: dict[CellKey, list[CellKey]] = {}
    for key in keys:
        groups.setdefault(replace(key, **{by: blank}), []).append(key)
    for base, *others in groups.values():
        yield from ((base, other) for other in others)


Tell = Callable[[str, str], None]
"""Told of each run that ended: whose it was, and how it ended."""


def until_proven(
    session: Session, refs: tuple[str, str], metric: str, margin: float, most: int, tell: Tell
) -> SidesCompared:
    """Run the two sides in turn until the rule decides, or each has `most` samples."""
    sides = [side_of(session, ref, metric) for ref in refs]
    for side in sides:
        if side.cell is None and side.run is None:
            hint = "name runs, or cells of a suite such as night/toy/bare"
            raise refuse(f"{side.name} is a file, and only runs and cells can be run again", hint=hint, field="--until")
    while True:
        compared = compare_sides(sides[0], sides[1], metric, margin)
        if compared.comparison.is_decided or min(compared.comparison.n) >= most:
            return compared
        behind = min(range(2), key=lambda index: len(sides[index].samples))
        side = sides[behind]
        sides[behind] = _once_more(session, refs[behind], side, metric, tell)
        if len(sides[behind].samples) == len(side.samples):
            raise refuse(f"{side.name} did not succeed", hint="`podwright ps` shows the run", exit_code=1)


def _once_more(session: Session, ref: str, side: Side, metric: str, tell: Tell) -> Side:
    """Return the side with one more sample, or as it is where the run did not succeed."""
    if side.cell is not None:
        tell(side.name, _run_cell(session, side.cell))
        return side_of(session, ref, metric)
    run = start_again(session, side.run or ref)
    state = run.wait().state
    tell(f"{side.name}  {run.id}", state)
    if state != "succeeded":
        return side
    more = side_of(session, run.id, metric)
    return replace(
        side,
        samples=side.samples + more.samples,
        traits=side.traits + more.traits,
        added=(*side.added, run.id),
    )


def _run_cell(session: Session, cell: Cell) -> str:
    folder = suite_folder(session.home, cell.suite)
    path = Path(folder.file)
    plan = plan_suite(load_suite(path), path)
    workload = plan.cells.get(cell.key)
    if workload is None:
        raise refuse(f"{path} has no cell {cell.key.name} any more", field="--until")
    with alone(folder):
        _, state = run_trial(session, folder, cell.key, workload, cell.round, warmup=False)
    return state
