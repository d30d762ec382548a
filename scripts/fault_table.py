"""The table of the fault campaign: a line for each kind of fault on each engine, towards a thousand each. Pure."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from scripts.fault_plan import failures

GOAL, MAX_WORDS = 1000, 160
HEAD = """
| struck | faults | not there | ended once | ended again | lost, all killed | wrong | went on: median | 95 % | worst |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""
INTRODUCTION = """\
# Faults in mixes

`python -m scripts.faults ENGINE` plays rounds of two runs, of one or two nodes, some with a spare, and strikes them up
to three times at once; each round follows from its seed. After it every run must have ended once by the ledger that its
ranks write, with the right state, whole checkpoints, the values of an undisturbed run, a reason for each further
attempt, and nothing left behind. "not there" counts faults whose victim was not alive then. "went on" is the time from
the fault to the next start of all ranks, of runs that one fault alone stopped; machines that were switched off or cut
off stay away for 4 to 45 s of it. `lost` is right only where all that held a run was killed at once. "ended again": all
ranks had ended, and their node could not say so before it was taken for lost; the attempt that followed began at the
last checkpoint and had nothing left to do. A round that failed is played again by newer code.
"""


def page(rows: Sequence[dict[str, Any]], findings: str = "") -> str:
    """Return the page: a table for each engine, what failed, and what was found by it, as people wrote it."""
    newest = {(row["engine"], row["seed"]): row for row in rows}
    engines = sorted({row["engine"] for row in rows})
    parts = [_part(engine, [row for row in newest.values() if row["engine"] == engine]) for engine in engines]
    found = [_finding(row, newest[row["engine"], row["seed"]]) for row in rows if failures(row)]
    return "\n".join([INTRODUCTION, *parts, *(["## What failed", "", *found, ""] if found else []), findings])


def _finding(row: dict[str, Any], newest: dict[str, Any]) -> str:
    """Return a round that failed, and whether it did when it was played last."""
    words = "; ".join(short(text) for text in failures(row))
    since = f"; played again at {newest['commit']}, it went well" if not failures(newest) else ""
    return f"- {row['engine']} {row['seed']} at {row['commit']}: {words}{since}"


def short(text: str) -> str:
    """Return the beginning of a failure's words."""
    return text if len(text) <= MAX_WORDS else text[:MAX_WORDS] + " ..."


def _part(engine: str, rows: Sequence[dict[str, Any]]) -> str:
    faults = [fault for row in rows for fault in row["faults"]]
    kinds = sorted({fault["kind"] for fault in faults})
    groups = {kind: [fault for fault in faults if fault["kind"] == kind] for kind in kinds}
    lines = [_line(kind, group) for kind, group in groups.items()]
    commits = ", ".join(sorted({row["commit"] for row in rows}))
    struck = sum(fault["hit"] for fault in faults)
    words = f"{len(rows)} rounds, {struck} faults that struck, of {GOAL} in the end; commits {commits}."
    return f"## {engine}\n\n{words}\n{HEAD}" + "\n".join([*lines, _line("all", faults)]) + "\n\n" + _spared(faults)


def _spared(faults: Sequence[dict[str, Any]]) -> str:
    """Return what a spare changes for runs of two nodes that lost one."""
    lost = [fault for fault in faults if fault["kind"] in ("power", "cut") and fault["nodes"] > 1]
    times = {word: _times(fault for fault in lost if bool(fault["spares"]) is spared) for word, spared in _SPARED}
    if not all(times.values()):
        return ""
    each = [f"{word} {statistics.median(found):.0f} s ({len(found)} times)" for word, found in times.items()]
    return f"A node of two that was switched off or cut off, median until all ranks ran again: {', '.join(each)}.\n"


_SPARED = (("with a spare", True), ("without", False))


def _line(kind: str, faults: Sequence[dict[str, Any]]) -> str:
    struck = [fault for fault in faults if fault["hit"]]
    lost = sum(fault["state"] == "lost" and not fault["wrong"] for fault in struck)
    wrong = sum(bool(fault["wrong"]) for fault in struck)
    again = sum(fault.get("again", False) and not fault["wrong"] for fault in struck)
    counts = [len(faults), len(faults) - len(struck), len(struck) - again - lost - wrong, again, lost, wrong]
    return "| " + " | ".join([kind, *map(str, counts), *_pace(_times(struck))]) + " |"


def _times(faults: Iterable[dict[str, Any]]) -> list[float]:
    return sorted(fault["went_on_s"] for fault in faults if fault["went_on_s"] is not None)


def _pace(times: Sequence[float]) -> list[str]:
    if not times:
        return ["", "", ""]
    late = times[math.ceil(0.95 * len(times)) - 1]
    return [f"{value:.0f} s" for value in (statistics.median(times), late, times[-1])]
