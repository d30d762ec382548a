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


def until_proven(
    session: Session, refs: tuple[str, str], metric: str, margin: float, most: int, tell: Callable[[Cell, str], None]
) -> SidesCompared:
    """Run the two cells in turn until the rule decides, or each has `most` samples."""
    sides = [side_of(session, ref, metric) for ref in refs]
    cells = [side.cell for side in sides if side.cell is not None]
    if len(cells) < 2:
        hint = "name two cells of a suite, such as night/toy/bare and night/toy/container"
        raise refuse("only cells of a suite can be run again", hint=hint, field="--until")
    while True:
        compared = compare_sides(sides[0], sides[1], metric, margin)
        if compared.comparison.is_decided or min(compared.comparison.n) >= most:
            return compared
        behind = min(range(2), key=lambda index: len(sides[index].samples))
        before = len(sides[behind].samples)
        _once_more(session, cells[behind], tell)
        sides[behind] = side_of(session, refs[behind], metric)
        if len(sides[behind].samples) == before:
            raise refuse(f"{cells[behind].name} did not succeed", hint="`podwright ps` shows the run", exit_code=1)


def _once_more(session: Session, cell: Cell, tell: Callable[[Cell, str], None]) -> None:
    folder = suite_folder(session.home, cell.suite)
    path = Path(folder.file)
    plan = plan_suite(load_suite(path), path)
    workload = plan.cells.get(cell.key)
    if workload is None:
        raise refuse(f"{path} has no cell {cell.key.name} any more", field="--until")
    with alone(folder):
        _, state = run_trial(session, folder, cell.key, workload, cell.round, warmup=False)
    tell(cell, state)
