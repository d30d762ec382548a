"""Holds the rule of `podwright compare` to its word on times that are made up, of two sides that are the same.

    python benchmarks/compare_rule.py [--pairs 2000] [--out benchmarks/results/compare_rule.md]

Times spread like a lognormal. Called different though they are the same: at most 6.5 %. Called the same once there are
as many as `needed`: at least 90 %, of pairs that happened to have enough, and of new pairs of as many as others needed.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product, repeat
from pathlib import Path

from podwright.analysis.comparison import MARGIN, compare, needed_samples

COUNTS = (5, 12, 30)
SPREADS = (0.005, 0.01, 0.02, 0.05)
PAIRS = 2000
MAX_DIFFERENT, MIN_SAME = 0.065, 0.9
FEW = 50
"""Pairs below which a share says nothing: they count in the sum over all spreads only."""


@dataclass(frozen=True)
class Simulated:
    """What came of pairs of one size and spread."""

    count: int
    spread: float
    different: int
    pairs: int
    enough: int
    """Pairs that had as many samples as they needed, and how many of them were called the same."""
    same_of_enough: int
    renewed: int
    """New pairs, each of as many samples as a pair before needed, and how many of them were called the same."""
    same_of_renewed: int

    @property
    def share_different(self) -> float:
        """Of all pairs."""
        return self.different / self.pairs


def times(chance: random.Random, count: int, spread: float) -> list[float]:
    """Samples of one side."""
    return [60 * chance.lognormvariate(0, spread) for _ in range(count)]


def simulate(count: int, spread: float, pairs: int = PAIRS) -> Simulated:
    """Compare so many pairs of sides that are the same; every tenth is measured anew with as many as it needs."""
    chance = random.Random(f"{count} {spread}")
    verdicts, enough, renewed = [], [], []
    for number in range(pairs):
        a, b = times(chance, count, spread), times(chance, count, spread)
        seen = compare(a, b)
        verdicts.append(seen.verdict)
        need = needed_samples(a, b, MARGIN) or 0
        if count >= need:
            enough.append(seen.verdict)
        if number % 10 == 0:
            renewed.append(compare(times(chance, need, spread), times(chance, need, spread)).verdict)
    return Simulated(
        *(count, spread, verdicts.count("different"), pairs),
        *(len(enough), enough.count("same"), len(renewed), renewed.count("same")),
    )


def share(part: int, whole: int) -> str:
    """In per cent, with how many; of few there is none."""
    if not whole:
        return "-"
    return f"{100 * part / whole:.1f} % of {whole}"


def table(rows: list[Simulated]) -> Iterator[str]:
    """The page that is kept."""
    yield "# The rule of compare, simulated"
    yield ""
    yield f"{rows[0].pairs:,} seeded pairs for each row, both sides the same; made by `benchmarks/compare_rule.py`."
    yield ""
    yield "| runs a side | spread | called different | same, of pairs with as many as needed | same, of new pairs |"
    yield "| --- | --- | --- | --- | --- |"
    for row in rows:
        shares = (share(row.same_of_enough, row.enough), share(row.same_of_renewed, row.renewed))
        different = f"{100 * row.share_different:.2f} %"
        yield f"| {row.count} | {100 * row.spread:g} % | {different} | {' | '.join(shares)} |"
    yield ""
    yield f"Over all spreads: {'; '.join(sums(rows))}."


def sums(rows: list[Simulated]) -> Iterator[str]:
    """What pairs of one size come to, over all spreads."""
    for count in COUNTS:
        own = [row for row in rows if row.count == count]
        enough = share(sum(row.same_of_enough for row in own), sum(row.enough for row in own))
        yield f"of {count} runs a side, {enough} that had enough were called the same"


def keeps_its_word(rows: list[Simulated]) -> bool:
    """Whether all is as the docstring says.

    Few pairs happen to have enough where the spread is wide: those count in the sum over all spreads of a size.
    """
    for count in COUNTS:
        own = [row for row in rows if row.count == count]
        if sum(row.same_of_enough for row in own) < MIN_SAME * sum(row.enough for row in own):
            return False
    return all(
        row.share_different <= MAX_DIFFERENT
        and (row.enough < FEW or row.same_of_enough >= MIN_SAME * row.enough)
        and row.same_of_renewed >= MIN_SAME * row.renewed
        for row in rows
    )


def main() -> int:
    """Simulate all sizes and spreads, and keep the page."""
    parser = argparse.ArgumentParser(description="Hold the rule of compare to its word.")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="of each size and spread (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "compare_rule.md")
    options = parser.parse_args()
    cases = list(product(COUNTS, SPREADS))
    with ProcessPoolExecutor() as pool:
        rows = list(pool.map(simulate, *zip(*cases, strict=True), repeat(options.pairs)))
    options.out.write_text("\n".join(table(rows)) + "\n", encoding="utf-8")
    print(options.out.read_text(encoding="utf-8"))
    return int(not keeps_its_word(rows))


if __name__ == "__main__":
    sys.exit(main())
