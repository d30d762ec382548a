"""How the verdict of a gate is laid out."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from podwright import prove
from podwright.cli.terminal import figures, output

if TYPE_CHECKING:
    from podwright.prove import CellVerdict, GateVerdict, ProofPrice

_MOST = 4
"""Causes, commits or cells that are listed before `and so many more`."""


def gate_page(verdict: GateVerdict, width: int | None) -> Iterator[str]:
    """Lay the verdict out: the sentence first, then what is broken, slower or open, cell by cell."""
    yield from output.aligned(verdict.verdict, prove.gate_sentence(verdict), sys.stdout)
    if verdict.smallest_seen is not None:
        yield from output.aligned("seen", f"a change of {verdict.smallest_seen:.1%} would have been found", sys.stdout)
    for change in verdict.accepted:
        text = f"{change.key.name} from round {change.round} on: {change.reason}"
        yield from output.aligned("accepted", text, sys.stdout)
    broken = [f"{cell.key.name}: {cell.count} {cell.state}" for cell in verdict.broken]
    if broken:
        yield from output.aligned("broken", "\n".join(_first(broken)), sys.stdout)
    for finding in verdict.findings:
        yield ""
        yield from _finding(finding, verdict.metric, width)
    open_cells = [_open(cell) for cell in verdict.undecided]
    if open_cells:
        yield ""
        yield from output.table(["not proven", "runs", "ratio", "clean with"], open_cells, width)


def _finding(finding: CellVerdict, metric: str, width: int | None) -> Iterator[str]:
    judged, since = finding.judged, finding.since
    if since is None or judged.p is None:
        return
    low, high = judged.interval or (0.0, 0.0)
    lines = {
        "cell": finding.name.partition("/")[2],
        "ratio": f"{judged.ratio:.3f} ({low:.3f} to {high:.3f}) of {metric}, p {judged.p:.2g}",
        "since": f"round {since.round}, {since.version or 'of unknown version'}",
    }
    first, last = (finding.history[at].round for at in judged.between)
    if first != last:
        lines["since"] += f"\nit may be any of rounds {first} to {last}"
    if finding.same_version:
        lines["since"] += "\nwhich was good in the round before: look at the machines"
    if finding.commits:
        lines["commits"] = "\n".join(_clipped(finding.commits, width))
    if finding.causes:
        lines["differs"] = "\n".join(_clipped([cause.text for cause in finding.causes], width))
    lines["next"] = f"podwright bench accept {finding.name.replace('/', ' ', 1)} --reason '...'"
    for word, text in lines.items():
        yield from output.aligned(word, text, sys.stdout)


def _clipped(texts: tuple[str, ...] | list[str], width: int | None) -> list[str]:
    return [output.clip(text, (width or 80) - output.WORD_WIDTH) for text in _first(list(texts))]


def _first(texts: list[str]) -> list[str]:
    more = len(texts) - _MOST
    return texts if more <= 0 else [*texts[:_MOST], f"and {more} more: --json has all"]


def _open(cell: CellVerdict) -> list[str]:
    judged = cell.judged
    ratio = figures.NONE
    if judged.ratio is not None:
        ratio = f"{judged.ratio:.3f}"
        if judged.interval is not None:
            ratio += f" ({judged.interval[0]:.3f} to {judged.interval[1]:.3f})"
    needed = f"{judged.needed} repeats" if judged.needed else "no number of repeats"
    if judged.needed is None and max(judged.n) < 2:
        needed = figures.NONE
    return [cell.name.partition("/")[2], f"{judged.n[0]}/{judged.n[1]}", ratio, needed]


def price_text(price: ProofPrice) -> str:
    """Say what more proof takes at most."""
    text = f"up to {figures.count(price.runs, 'more run')}, {figures.duration(price.seconds)} one after the other"
    if price.amount is None:
        return f"{text}; they have no price"
    return f"{text}, {price.amount:,.2f} {price.currency}"
