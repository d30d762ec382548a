"""How suites, their scaling and their gate are laid out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from podwright.cli.terminal import figures, output

if TYPE_CHECKING:
    from podwright.prove import ScalingCurve, SuiteResult

_BAR = 16


def suite_page(result: SuiteResult, width: int | None) -> Iterator[str]:
    """Lay the cells of the newest round out, each with a bar of its median."""
    cells = [cell.as_json() for cell in result.cells]
    top = max((cell["median_s"] or 0.0 for cell in cells), default=0.0) or 1.0
    rows = []
    for cell in cells:
        place = (cell["workload"], cell["target"], cell["runtime"], str(cell["size"]))
        filled, _ = figures.bar((cell["median_s"] or 0.0) / top, _BAR)
        rows.append([*place, str(cell["n"]), seconds(cell["median_s"]), between(cell["interval"]), filled])
    head = ("workload", "target", "runtime", "nodes", "n", "median", "95 % interval", "")
    yield from output.table(head, rows, width)
    failed = sum(cell["failed"] for cell in cells)
    if failed:
        verb = "does" if failed == 1 else "do"
        yield from output.aligned("failed", f"{figures.count(failed, 'run')} that {verb} not count", sys.stdout)


def seconds(value: float | None) -> str:
    """Return a time as it was measured, in words where it is long."""
    if value is None:
        return figures.NONE
    if value < 100:
        return f"{value:.2f} s"
    return figures.duration(value)


def between(interval: Sequence[float] | None, show: Callable[[float], str] = seconds) -> str:
    """Return an interval, where there is one."""
    if interval is None:
        return figures.NONE
    return f"{show(interval[0])} to {show(interval[1])}"


def scale_page(curve: ScalingCurve) -> Iterator[str]:
    """Lay a scaling curve out: the sentence first, then a row for each size with a bar of its efficiency."""
    last = curve.sizes[-1]
    nodes = figures.count(last.size, "node")
    sentence = f"{curve.workload} uses {nodes} to {last.efficiency:.0%}, {curve.kind} scaling on {curve.target}"
    yield from output.aligned("scales", sentence, sys.stdout)
    yield ""
    rows = []
    for size in curve.sizes:
        predicted = f"{seconds(size.predicted.expected)} ({between((size.predicted.low, size.predicted.high))})"
        share = between(size.interval, "{:.0%}".format)
        filled, rest = figures.bar(size.efficiency, _BAR - 4)
        times = [seconds(size.median_s), seconds(size.fitted_s), predicted]
        rows.append([str(size.size), str(len(size.samples)), *times, f"{size.efficiency:.0%}", share, filled + rest])
    head = ("nodes", "n", "median", "fitted", "predicted", "used", "95 %", "")
    yield from output.table(head, rows)
    yield ""
    text = "fitted to the smallest and the largest size; predicted from the smallest alone"
    yield from output.aligned("law", text, sys.stdout)
    if curve.contradicted is not None:
        before, after = curve.contradicted
        told = between((after.predicted.low, after.predicted.high))
        smallest = figures.count(curve.sizes[0].size, "node")
        text = f"{figures.count(after.size, 'node')} took {seconds(after.median_s)}, and {smallest} had told {told}:"
        text += f"\nno prediction beyond {figures.count(before.size, 'node')}"
        yield from output.aligned("refused", text, sys.stdout)
