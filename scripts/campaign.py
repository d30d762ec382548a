"""Sums up the long campaigns: what was struck, how often, what became of the runs, and how soon they went on.

    python scripts/campaign.py LOG OUT

The log has a line for each run; waves that are run one by one add to it.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

LOCAL = """\
## Runs on this machine, killed at random

One line per victim of kill -9. A run may be lost only when everything of it was killed at once. "not there" counts
kills that came before the victim was born or after it had ended. Attempts beyond the first start from a checkpoint.
"""
SLURM = """\
## Faults on a real Slurm, at random

One line per fault: a node powered off, a node cut off while its run is requeued elsewhere, the controller or the client
killed during submit, a slice of time that ends. Every run must succeed, as one job, from its checkpoint.
"""
POWER = """\
## Power cycles and killed controllers on a real Slurm, {timeout}

Ten runs at once, a line per fault: the node of a leader or of a member is without power for 10 or 25 seconds; the
controller is killed as it gives nodes away, and again half a minute later. "once" counts the runs that ended once by
the ledger that their ranks write; no job may be left. "went on" is the time from the end of the fault, with the node's
own start, to the next attempt, of the runs that were stopped; allowed are 30 s of silence, 60 s, the site's delay of a
requeue and 60 s more.
"""
KUBERNETES = """\
## Power cycles and killed API servers on a real Kubernetes

Ten runs of two nodes at once on four nodes: some of these are without power for 10 or 25 seconds ("beside it":
runs that were on other nodes), or the API server dies as runs are given their nodes and again half a minute later.
"once" counts the runs that ended once by the ledger that ranks write; no Job, Kubernetes pod or claim may be left.
"""
PARTS = {
    "local": LOCAL,
    "slurm": SLURM,
    "slurm-power": POWER.format(timeout="which misses a node after seconds"),
    "slurm-power-300": POWER.format(timeout="with SlurmdTimeout 300"),
    "kubernetes": KUBERNETES,
}
HEAD = """
| struck | runs | not there | succeeded | lost | attempts beyond the first |
| --- | --- | --- | --- | --- | --- |
"""
PACE_HEAD = """
| struck | runs | succeeded | once | attempts beyond the first | went on: median | 95 % | worst | allowed |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""


def summary(rows: list[dict[str, Any]], day: str) -> str:
    """The page: a table for each place, and when and how they came about."""
    parts = [_part(place, [row for row in rows if _place(row) == place]) for place in PARTS]
    body = "\n\n".join(part for part in parts if part)
    return f"# What was struck at random\n\n{body}\n\n{len(rows)} runs, {day}, `make test-nightly`.\n"


def _place(row: dict[str, Any]) -> str:
    first, _, rest = str(row["victim"]).partition(" ")
    return first if rest else "local"


def _part(place: str, rows: list[dict[str, Any]]) -> str:
    if not rows:
        return ""
    victims = sorted({row["victim"] for row in rows})
    groups = {victim.partition(" ")[2] or victim: [r for r in rows if r["victim"] == victim] for victim in victims}
    if "once" in rows[0]:
        groups["all"] = rows
        return PARTS[place] + PACE_HEAD + "\n".join(_pace_line(name, group) for name, group in groups.items())
    return PARTS[place] + HEAD + "\n".join(_line(name, group) for name, group in groups.items())


def _line(name: str, rows: list[dict[str, Any]]) -> str:
    states = Counter(row["state"] for row in rows)
    missed = sum(not row["hit"] for row in rows)
    return f"| {name} | {len(rows)} | {missed} | {states['succeeded']} | {states['lost']} | {_again(rows)} |"


def _pace_line(name: str, rows: list[dict[str, Any]]) -> str:
    states = Counter(row["state"] for row in rows)
    once = sum(row["once"] for row in rows)
    return f"| {name} | {len(rows)} | {states['succeeded']} | {once} | {_again(rows)} | {' | '.join(_pace(rows))} |"


def _again(rows: list[dict[str, Any]]) -> int:
    return sum(max(row["attempts"] - 1, 0) for row in rows)


def _pace(rows: list[dict[str, Any]]) -> list[str]:
    """Of the runs that a fault stopped: how long after its end they went on, and how long that may take."""
    times = sorted(row["went_on_s"] for row in rows if row["went_on_s"] is not None)
    if not times:
        return ["", "", "", ""]
    late = times[math.ceil(0.95 * len(times)) - 1]
    return [f"{value:.0f} s" for value in (statistics.median(times), late, times[-1], rows[0]["allowed_s"])]


def main() -> int:
    """`campaign.py LOG OUT`"""
    log, out = (Path(name) for name in sys.argv[1:3])
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    out.write_text(summary(rows, datetime.now(UTC).date().isoformat()))
    print(f"{out}: {len(rows)} runs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
