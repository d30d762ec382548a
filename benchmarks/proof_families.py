"""Coverage, false alarms and power of `podwright compare` over five families of noise, and under drift.

    python benchmarks/proof_families.py [--pairs 400] [--out benchmarks/results/proof_families.md]

Coverage: how often the 95 % interval holds the true ratio. False: equal sides called different. Wrongly same: sides
that are a margin apart called the same. Power: sides 10 % apart called different. Each at the spread of 2 %.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from podwright.analysis.comparison import DIFFERENT, MARGIN, SAME, PairComparison, compare, compare_pairs, looks

COUNTS = (4, 5, 6, 8, 12, 20)
PAIRS, SPREAD, DRIFT = 400, 0.02, 0.1
LIMIT = 30
Noise = Callable[[np.random.Generator, int], np.ndarray]


def _two_humps(chance: np.random.Generator, count: int) -> np.ndarray:
    return np.where(chance.random(count) < 0.5, -1.0, 1.0) + chance.normal(0, 0.2, count)


FAMILIES: dict[str, Noise] = {
    "lognormal": lambda chance, count: chance.normal(0, 1, count),
    "even": lambda chance, count: chance.uniform(-1.7, 1.7, count),
    "two humps": _two_humps,
    "skewed": lambda chance, count: chance.exponential(1, count) - 1,
    "heavy tails": lambda chance, count: chance.standard_t(3, count) / 1.7,
}


@dataclass(frozen=True)
class Word:
    """What came of pairs of sides of one family, as shares."""

    family: str
    count: int
    coverage: float
    false: float
    wrongly_same: float
    power: float


def simulate(family: str, count: int, pairs: int) -> Word:
    """Compare sides that are equal, a margin apart and 10 % apart."""
    chance, noise = np.random.default_rng(count), FAMILIES[family]

    def seen(factor: float) -> list[PairComparison]:
        return [compare(side(chance, noise, count), side(chance, noise, count, factor)) for _ in range(pairs)]

    equal, apart, far = seen(1.0), seen(1 + MARGIN), seen(1.1)
    held = sum(row.interval is not None and row.interval[0] <= 1 <= row.interval[1] for row in equal)
    shares = [held, verdicts(equal, DIFFERENT), verdicts(apart, SAME), verdicts(far, DIFFERENT)]
    return Word(family, count, *(number / pairs for number in shares))


def side(chance: np.random.Generator, noise: Noise, count: int, factor: float = 1.0) -> list[float]:
    """Samples of one side."""
    return list(map(float, 60 * factor * np.exp(SPREAD * noise(chance, count))))


def verdicts(rows: list[PairComparison], verdict: str) -> int:
    """How many came to it."""
    return sum(row.verdict == verdict for row in rows)


def drifting(count: int, pairs: int, factor: float = 1.0) -> dict[str, list[PairComparison]]:
    """Compare sides of a machine that becomes 10 % slower meanwhile: in blocks, and in turns (ABBA) pair by pair."""
    chance = np.random.default_rng(count)
    rows: dict[str, list[PairComparison]] = {"blocks": [], "turns": []}
    for _ in range(pairs):
        times = 60 * np.exp(SPREAD / 2 * chance.normal(0, 1, 2 * count)) * np.linspace(1, 1 + DRIFT, 2 * count)
        blocks = times * np.repeat([1, factor], count)
        rows["blocks"].append(compare(list(map(float, blocks[:count])), list(map(float, blocks[count:]))))
        order = np.array([(0, 1) if turn % 2 == 0 else (1, 0) for turn in range(count)]).ravel()
        turns = times * np.where(order == 1, factor, 1)
        pairs_made = list(zip(map(float, turns[order == 0]), map(float, turns[order == 1]), strict=True))
        rows["turns"].append(compare_pairs(pairs_made))
    return rows


def until_proven(family: str, pairs: int, start: int = 1) -> float:
    """The share of equal sides that are called different when more runs are made until the rule decides."""
    chance, noise, counts = np.random.default_rng(start), FAMILIES[family], looks(start, LIMIT)
    wrong = 0
    for _ in range(pairs):
        a, b = side(chance, noise, LIMIT), side(chance, noise, LIMIT)
        for count in counts:
            row = compare_pairs(list(zip(a[:count], b[:count], strict=True)), tests=len(counts))
            if row.is_decided:
                wrong += row.verdict == DIFFERENT
                break
    return wrong / pairs


def table(pairs: int) -> Iterator[str]:
    """The page that is kept."""
    yield "# What compare proves, simulated"
    yield ""
    yield f"{pairs:,} seeded pairs for each row, a spread of {SPREAD:.0%}; made by `benchmarks/proof_families.py`."
    yield ""
    yield "| noise | runs a side | interval holds it | equal called different | 3 % apart called same | 10 % found |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for family in FAMILIES:
        for count in COUNTS:
            row = simulate(family, count, pairs)
            shares = (row.coverage, row.false, row.wrongly_same, row.power)
            yield f"| {family} | {count} | {' | '.join(f'{value:.1%}' for value in shares)} |"
    yield ""
    yield f"A machine that becomes {DRIFT:.0%} slower meanwhile, a spread of {SPREAD / 2:.0%}:"
    yield ""
    yield "| order | runs a side | equal called different | 3 % called same | 5 % found |"
    yield "| --- | --- | --- | --- | --- |"
    for count in COUNTS:
        equal, apart, far = (drifting(count, pairs, factor) for factor in (1.0, 1 + MARGIN, 1.05))
        for order in ("blocks", "turns"):
            counts = (verdicts(equal[order], DIFFERENT), verdicts(apart[order], SAME), verdicts(far[order], DIFFERENT))
            yield f"| {order} | {count} | {' | '.join(f'{number / pairs:.1%}' for number in counts)} |"
    yield ""
    yield f"`--until proven` with a limit of {LIMIT}, pairs in turns, equal sides called different:"
    yield ""
    yield "| noise | from 1 run | from 8 |"
    yield "| --- | --- | --- |"
    for family in FAMILIES:
        yield f"| {family} | {until_proven(family, 5 * pairs):.1%} | {until_proven(family, 5 * pairs, 8):.1%} |"


def main() -> int:
    """Simulate all families, and keep the page."""
    parser = argparse.ArgumentParser(description="What compare proves, over families of noise.")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="of each row (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "proof_families.md")
    options = parser.parse_args()
    options.out.write_text("\n".join(table(options.pairs)) + "\n", encoding="utf-8")
    print(options.out.read_text(encoding="utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
