"""How suites, their scaling and their gate are laid out."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from podwright.cli.terminal import figures, output

if TYPE_CHECKING:
    from podwright.prove import GateFinding, GateVerdict, ScalingCurve, SuiteResult

_BAR = 16
_MAX_CAUSES = 4


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
        yield from output.aligned("failed", f"{figures.count(failed, 'run')} that do not count", sys.stdout)


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


def gate_page(verdict: GateVerdict, width: int | None) -> Iterator[str]:
    """Lay out what became slower, the sentence first."""
    place = f"{figures.count(verdict.cells, 'cell')} over {figures.count(verdict.rounds, 'round')} of {verdict.suite}"
    if not verdict.findings:
        sentence = f"nothing became slower: {place}"
        if verdict.rounds < 2:
            sentence = f"there is no history yet: {place}"
        yield from output.aligned("clean", sentence, sys.stdout)
        return
    yield from output.aligned("slower", f"{len(verdict.findings)} of {place}", sys.stdout)
    for finding in verdict.findings:
        yield ""
        yield from _finding(finding, width)


def _finding(finding: GateFinding, width: int | None) -> Iterator[str]:
    comparison = finding.comparison
    low, high = comparison.interval or (0.0, 0.0)
    ratio = f"{comparison.ratio:.3f} ({low:.3f} to {high:.3f}), p {comparison.p:.2g}"
    lines = {
        "cell": finding.since.key.name,
        "ratio": ratio,
        "since": f"round {finding.since.round}, {finding.since.version or 'of unknown version'}",
    }
    if finding.same_version:
        lines["since"] += "\nwhich was good in the round before: look at the machines"
    if finding.until is not None:
        lines["until"] = f"round {finding.until.round}, {finding.until.version}"
    if finding.causes:
        texts = [output.clip(cause.text, (width or 80) - output.WORD_WIDTH) for cause in finding.causes[:_MAX_CAUSES]]
        lines["differs"] = "\n".join(texts)
    for word, text in lines.items():
        yield from output.aligned(word, text, sys.stdout)


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
