"""Sums up the long campaigns: what was struck, how often, and what became of the runs."""

from __future__ import annotations

import json
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
PARTS = {"local": LOCAL, "slurm": SLURM}
HEAD = """
| struck | runs | not there | succeeded | lost | attempts beyond the first |
| --- | --- | --- | --- | --- | --- |
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
    lines = [_line(victim, [row for row in rows if row["victim"] == victim]) for victim in victims]
    return PARTS[place] + HEAD + "\n".join(lines)


def _line(victim: str, rows: list[dict[str, Any]]) -> str:
    states = Counter(row["state"] for row in rows)
    missed = sum(not row["hit"] for row in rows)
    again = sum(max(row["attempts"] - 1, 0) for row in rows)
    name = victim.rpartition(" ")[2]
    return f"| {name} | {len(rows)} | {missed} | {states['succeeded']} | {states['lost']} | {again} |"


def main() -> int:
    """`campaign.py LOG OUT`"""
    log, out = (Path(name) for name in sys.argv[1:3])
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    out.write_text(summary(rows, datetime.now(UTC).date().isoformat()))
    print(f"{out}: {len(rows)} runs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
