"""The report of a suite: times of its cells, what may be concluded from them, and what else was measured."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any, get_args

from podwright.analysis.bootstrap import median_interval
from podwright.analysis.causes import middle_of, step_shares
from podwright.analysis.traits import CPU_CORES, STEPS, Traits
from podwright.costs import cost_of_run
from podwright.launch import Session
from podwright.prove import SidesCompared, compare_cells
from podwright.prove.compare import By
from podwright.prove.scale import ScalingCurve
from podwright.prove.sides import cell_traits
from podwright.prove.suite_folder import Cell, SuiteFolder
from podwright.report.page import RunView, page
from podwright.report.scaling import drawing_of
from podwright.report.strips import LOOKS, MARGIN, StripAxis, verdict_rows
from podwright.report.write import write_page
from podwright.spec import Pod
from podwright.spec.problems import Refusal
from podwright.theme import words

_METRIC = "duration_s"
_SENSED = ("GPU utilisation", "GPU power", CPU_CORES)
_PARTS = {name: name.removesuffix("_s") for name in STEPS}


def write_suite_report(
    session: Session, folder: SuiteFolder, curve: ScalingCurve | None = None, prices: Pod | None = None
) -> Path:
    """Write the report of the newest round into the suite's folder, and return its path."""
    path = folder.path / "report.html"
    write_page(path, render_suite(session, folder, curve, prices))
    return path


def render_suite(
    session: Session, folder: SuiteFolder, curve: ScalingCurve | None = None, prices: Pod | None = None
) -> str:
    """Return the page; of a suite that measured how a workload scales, the curve too."""
    shown = view_of_suite(session, folder, curve, prices)
    return page("suite.html.j2", shown.view, shown.payload)


def view_of_suite(
    session: Session, folder: SuiteFolder, curve: ScalingCurve | None = None, prices: Pod | None = None
) -> RunView:
    """Return what pages show of a suite's newest round.

    Runs on a machine without prices are computed with those of the pod that is given.
    """
    cells = folder.cells()
    compared = {by: pairs for by in get_args(By) if (pairs := _pairs(session, folder, by))}
    axis = _axis(cells)
    groups = [_group(session, name, group, (axis, prices)) for name, group in _by_workload(cells)]
    shares = _shares(session, cells)
    view = {
        "title": folder.name,
        "sentence": _scaling_sentence(curve) if curve else _sentence(cells, compared),
        "round": folder.round(),
        "groups": groups,
        "ends": [words.duration(axis.low), words.duration(axis.high)],
        "columns": _columns(groups),
        "shares": shares,
        "part_names": list(_PARTS.values()),
        "verdicts": [{"by": by, "rows": verdict_rows(pairs)} for by, pairs in compared.items()],
        "margin": words.percent(MARGIN),
        "scaling": drawing_of(curve) if curve else None,
        "sections": _sections(curve, bool(shares)),
        "read_at": words.date_and_clock(time.time()),
    }
    return RunView(view, {"from": 0, "to": 1, "attempts": [], "charts": [], "curves": []})


def _shares(session: Session, cells: Sequence[Cell]) -> list[dict[str, Any]]:
    """Return where the time of each cell's steps went, of those whose program says so; widths are in per cent."""
    rows = []
    for cell in cells:
        shares = step_shares(cell_traits(session, cell))
        if shares:
            rows.append({"name": cell.key.name, "parts": list(_stacked(shares))})
    return rows


def _stacked(shares: dict[str, float]) -> Iterator[tuple[str, str, float, float, int]]:
    """Yield each part with its text, where it begins, how wide it is, and the number of its colour."""
    start = 0.0
    for number, (name, part) in enumerate(_PARTS.items(), start=1):
        share = shares.get(name)
        width = 100 * (share or 0.0)
        yield part, words.NONE if share is None else f"{share:.1%}", round(start, 2), round(width, 2), number
        start += width


def _sections(curve: ScalingCurve | None, has_shares: bool) -> list[tuple[str, str]]:
    sections = [("verdict", "Verdict"), ("times", "Times"), ("verdicts", "Comparisons")]
    if has_shares:
        sections.insert(2, ("shares", "Where the time went"))
    if curve is not None:
        sections.insert(1, ("scaling", "Scaling"))
    return sections


def _pairs(session: Session, folder: SuiteFolder, by: By) -> Sequence[SidesCompared]:
    try:
        return compare_cells(session, folder, by).pairs
    except Refusal:
        return ()


def _sentence(cells: Sequence[Cell], compared: dict[By, Sequence[SidesCompared]]) -> str:
    """Say the verdict first: what differs most, then how many are the same, differ, or are not proven."""
    pairs: list[SidesCompared] = []
    for by, rows in compared.items():
        if by != "size":
            pairs += rows
    runs = sum(len(cell.values(_METRIC)) for cell in cells)
    count = f"{words.count(len(cells), 'cell')}, {words.count(runs, 'run')} that {'counts' if runs == 1 else 'count'}"
    failed = sum(cell.failed for cell in cells)
    if failed:
        count += f", {failed} that failed"
    if not pairs:
        return f"{count}."
    verdicts = [pair.comparison.verdict for pair in pairs]
    parts = [f"{verdicts.count(name)} {name}" for name in LOOKS if name in verdicts]
    return f"{_greatest(pairs)} Of {words.count(len(pairs), 'comparison')} {', '.join(parts)}; {count}."


def _greatest(pairs: Sequence[SidesCompared]) -> str:
    """Name the two cells that are proven to lie furthest apart, or say that none are."""
    different = [pair for pair in pairs if pair.comparison.verdict == "different" and pair.comparison.ratio]
    if not different:
        all_same = all(pair.comparison.verdict == "same" for pair in pairs)
        return "All cells are the same within the margin." if all_same else "No cell is shown to differ."
    pair = max(different, key=lambda pair: abs(math.log(pair.comparison.ratio or 1.0)))
    ratio = pair.comparison.ratio or 1.0
    names = [side.name.partition("/")[2] for side in (pair.b, pair.a)]
    return f"{names[0]} takes {abs(ratio - 1):.1%} {'longer' if ratio > 1 else 'less time'} than {names[1]}."


def _scaling_sentence(curve: ScalingCurve) -> str:
    last = curve.sizes[-1]
    return f"{curve.workload} uses {words.count(last.size, 'node')} to {words.percent(last.efficiency)}."


def _by_workload(cells: Iterable[Cell]) -> Iterator[tuple[str, list[Cell]]]:
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(cell.key.workload, []).append(cell)
    yield from groups.items()


def _axis(cells: Sequence[Cell]) -> StripAxis:
    """Return the one axis on which all cells are drawn: on axes of their own the slowest would look like the base."""
    values: list[float] = []
    for cell in cells:
        values += cell.values(_METRIC)
    return StripAxis(min(values, default=0.0), max(values, default=1.0))


def _group(session: Session, name: str, cells: Sequence[Cell], drawn: tuple[StripAxis, Pod | None]) -> dict[str, Any]:
    axis, prices = drawn
    return {"name": name, "rows": [_row(session, cell, axis, prices) for cell in cells]}


def _columns(groups: Sequence[dict[str, Any]]) -> list[str]:
    """Return the further columns of which any cell has a value."""
    columns: dict[str, None] = {}
    for group in groups:
        for row in group["rows"]:
            columns |= dict.fromkeys(name for name, text in row["more"].items() if text != words.NONE)
    return list(columns)


def _row(session: Session, cell: Cell, axis: StripAxis, prices: Pod | None) -> dict[str, Any]:
    samples, traits = cell.values(_METRIC), cell_traits(session, cell)
    interval = median_interval(samples)
    row: dict[str, Any] = {
        "target": cell.key.target,
        "runtime": cell.key.runtime,
        "size": cell.key.size,
        "image": cell.key.image,
        "n": len(samples),
        "failed": cell.failed,
        "median": words.duration(median(samples)) if samples else words.NONE,
        "interval": words.NONE,
        "dots": [(axis.at(sample), words.duration(sample)) for sample in samples],
        "middle": axis.at(median(samples)) if samples else None,
        "bar": None,
        "more": {name: _sensed(traits, name) for name in _SENSED} | {"Cost a run": _cost(session, cell, prices)},
    }
    if interval:
        row["interval"] = f"{words.duration(interval[0])} to {words.duration(interval[1])}"
        row["bar"] = axis.at(interval[0]), axis.at(interval[1])
    return row


def _sensed(traits: Sequence[Traits], name: str) -> str:
    readings = [trait.measured[name] for trait in traits if name in trait.measured]
    return middle_of(readings).text if readings else words.NONE


def _cost(session: Session, cell: Cell, prices: Pod | None) -> str:
    """Return what a run of the cell cost in the middle; a dash where no prices are given."""
    costs = [_run_cost(session, run, prices) for run in cell.runs if session.home.has(run)]
    priced = [cost for cost in costs if cost and isinstance(cost.get("amount"), int | float)]
    if not priced:
        return words.NONE
    return f"{median(cost['amount'] for cost in priced):,.4g} {priced[0].get('currency') or ''}".strip()


def _run_cost(session: Session, run: str, prices: Pod | None) -> dict[str, Any] | None:
    record = session.home.read_anyway(run)
    if record.cost or prices is None:
        return record.cost
    return cost_of_run(session.home.folder(run), record, prices).as_cost()
