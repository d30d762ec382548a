"""Sums up a campaign of random kills: who was killed, how often, and what became of the runs."""

from __future__ import annotations

import json
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HEAD = """\
# Runs killed at random

One line per victim of kill -9. A run may be lost only when everything of it was killed at once. "not there" counts
kills that came before the victim was born or after it had ended. Attempts beyond the first start from a checkpoint.

| killed | runs | not there | succeeded | lost | attempts beyond the first |
| --- | --- | --- | --- | --- | --- |
"""


def summary(rows: list[dict[str, Any]], day: str) -> str:
    """The page: one table, and when and how it came about."""
    lines = []
    for victim in sorted({row["victim"] for row in rows}):
        some = [row for row in rows if row["victim"] == victim]
        states = Counter(row["state"] for row in some)
        missed = sum(not row["hit"] for row in some)
        again = sum(max(row["attempts"] - 1, 0) for row in some)
        lines.append(f"| {victim} | {len(some)} | {missed} | {states['succeeded']} | {states['lost']} | {again} |")
    return HEAD + "\n".join(lines) + f"\n\n{len(rows)} runs, {day}, `make test-nightly`.\n"


def main() -> int:
    """`campaign.py LOG OUT`"""
    log, out = (Path(name) for name in sys.argv[1:3])
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    out.write_text(summary(rows, datetime.now(UTC).date().isoformat()))
    print(f"{out}: {len(rows)} runs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
