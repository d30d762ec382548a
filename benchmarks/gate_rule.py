"""Holds the gate of `podwright bench gate` to its word on histories that are made up.

    python benchmarks/gate_rule.py [--nights 2000] [--out benchmarks/results/gate_rule.md]

A night is a new round of 20 cells, five runs of each, after three rounds that were good: 15 samples to be held against.
Equal builds called slower: at most 5 % of nights. A build that is 10 % slower at a spread of 1 % found: at least 95 %.
Equal builds clean in at least 90 % of nights, each with as many repeats as the gate asked for the night before.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from podwright.analysis.gate_rule import CLEAN, SLOWER, GateRule, judge_rounds

NIGHTS, CELLS, ROUNDS, REPEATS = 2000, 20, 4, 5
SPREADS = (0.005, 0.01, 0.02, 0.05)
MAX_ALARMS, MIN_FOUND, MIN_CLEAN = 0.05, 0.95, 0.9
MOST_REPEATS = 400
"""More than this nobody runs: such a night is not tried."""
RULE = GateRule(cells=CELLS)

Rounds = list[list[float]]


@dataclass(frozen=True)
class Nights:
    """What came of nights of one spread, as counts."""

    spread: float
    nights: int
    alarms: int
    clean: int
    found: int
    right_round: int
    asked: int
    """Nights that were run again with the repeats that the gate asked for, and how many of them were clean."""
    clean_as_asked: int
    repeats: float
    """What it asked for, in the middle."""


def rounds(chance: np.random.Generator, spread: float, repeats: int = REPEATS) -> Rounds:
    """One cell's history: all of one level."""
    earlier = chance.lognormal(np.log(60), spread, (ROUNDS - 1, REPEATS)).tolist()
    return [*earlier, chance.lognormal(np.log(60), spread, repeats).tolist()]


def simulate(spread: float, nights: int) -> Nights:
    """Judge so many nights; every tenth is run again with as many repeats as the gate asks for."""
    chance = np.random.default_rng(int(spread * 1e6))
    alarms = clean = found = right = asked = as_asked = 0
    needs: list[int] = []
    for night in range(nights):
        verdicts = [judge_rounds(rounds(chance, spread), RULE) for _ in range(CELLS)]
        alarms += any(row.verdict == SLOWER for row in verdicts)
        clean += all(row.verdict == CLEAN for row in verdicts)
        slow = rounds(chance, spread)
        slow[-1] = [1.1 * value for value in slow[-1]]
        row = judge_rounds(slow, RULE)
        found += row.verdict == SLOWER
        right += row.since == ROUNDS - 1
        if night % 10 == 0:
            need = max(row.needed or MOST_REPEATS + 1 for row in verdicts)
            needs.append(need)
            if need <= MOST_REPEATS:
                asked += 1
                as_asked += is_clean(chance, spread, need)
    return Nights(spread, nights, alarms, clean, found, right, asked, as_asked, float(np.median(needs)))


def is_clean(chance: np.random.Generator, spread: float, repeats: int) -> bool:
    """Whether a night of equal builds is clean with these repeats, in every round where 15 samples are too few."""
    for _ in range(CELLS):
        row = rounds(chance, spread, repeats)
        if repeats > REPEATS * (ROUNDS - 1):
            row = chance.lognormal(np.log(60), spread, (ROUNDS, repeats)).tolist()
        if judge_rounds(row, RULE).verdict != CLEAN:
            return False
    return True


def share(part: int, whole: int) -> str:
    """In per cent."""
    return f"{100 * part / whole:.1f} %" if whole else "-"


def table(rows: list[Nights]) -> Iterator[str]:
    """The page that is kept."""
    yield "# The gate, simulated"
    yield ""
    yield f"{rows[0].nights:,} seeded histories for each row: {CELLS} cells, {REPEATS} repeats, {ROUNDS - 1} rounds"
    yield "before; made by `benchmarks/gate_rule.py`."
    yield ""
    yield "| spread | nights of false alarm | clean | +10 % found | in its round | repeats asked for | clean then |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for row in rows:
        shares = [share(count, row.nights) for count in (row.alarms, row.clean, row.found, row.right_round)]
        asked = f"{row.repeats:g}" if row.repeats <= MOST_REPEATS else f"over {MOST_REPEATS}"
        yield f"| {100 * row.spread:g} % | {' | '.join(shares)} | {asked} | {share(row.clean_as_asked, row.asked)} |"


def keeps_its_word(row: Nights, slack: float = 0.0) -> bool:
    """Whether a row is as the docstring says; the short form in tests has some slack."""
    is_quiet = row.alarms <= (MAX_ALARMS + slack) * row.nights
    finds = row.spread > 0.01 or row.found >= (MIN_FOUND - slack) * row.nights
    return is_quiet and finds and row.clean_as_asked >= (MIN_CLEAN - slack) * row.asked


def main() -> int:
    """Simulate all spreads, and keep the page."""
    parser = argparse.ArgumentParser(description="Hold the gate to its word.")
    parser.add_argument("--nights", type=int, default=NIGHTS, help="of each spread (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "gate_rule.md")
    options = parser.parse_args()
    rows = [simulate(spread, options.nights) for spread in SPREADS]
    options.out.write_text("\n".join(table(rows)) + "\n", encoding="utf-8")
    print(options.out.read_text(encoding="utf-8"))
    return int(not all(map(keeps_its_word, rows)))


if __name__ == "__main__":
    sys.exit(main())
