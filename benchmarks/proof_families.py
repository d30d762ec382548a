"""Coverage, false alarms and power of `podwright compare` over five families of noise, and under drift.

    python benchmarks/proof_families.py [--pairs 400] [--out benchmarks/results/proof_families.md]

Coverage: how often the 95 % interval holds the true ratio. False: equal sides called different. Wrongly same: sides
that are a margin apart called the same. Power: sides 10 % apart called different. Each at the spread of 2 %. The rule
keeps its word where equal sides of a family, those in turns under drift, and those that are run until it decides are
called different in at most 5 %; the exit code says so.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import product, repeat
from pathlib import Path

import numpy as np

from podwright.analysis.comparison import DIFFERENT, MARGIN, SAME, PairComparison, compare, compare_pairs, looks

COUNTS = (4, 5, 6, 8, 12, 20)
PAIRS, SPREAD, DRIFT = 400, 0.02, 0.1
LIMIT = 30
APART, FAR = 1 + MARGIN, 1.05
STARTS = (1, 8)
MAX_FALSE = 0.05
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


@dataclass(frozen=True)
class Drift:
    """What came of sides that were made in one order under drift, as shares."""

    order: str
    count: int
    false: float
    wrongly_same: float
    power: float


def under_drift(count: int, pairs: int) -> list[Drift]:
    """What blocks and turns of one size say of sides that are equal, a margin apart and 5 % apart."""
    equal, apart, far = (drifting(count, pairs, factor) for factor in (1.0, APART, FAR))
    rows = []
    for order in ("blocks", "turns"):
        counts = verdicts(equal[order], DIFFERENT), verdicts(apart[order], SAME), verdicts(far[order], DIFFERENT)
        rows.append(Drift(order, count, *(number / pairs for number in counts)))
    return rows


@dataclass(frozen=True)
class Simulated:
    """All that is simulated."""

    pairs: int
    words: Sequence[Word]
    drifts: Sequence[Drift]
    until: dict[str, tuple[float, ...]]
    """Of each family the share of equal sides that are called different, by the runs that are there at first."""

    def keeps_its_word(self) -> bool:
        """Whether equal sides are called different no more often than is said, over all sizes of a family."""
        shares = [share for of_family in self.until.values() for share in of_family]
        shares += [row.false for row in self.drifts if row.order == "turns"]
        for family in FAMILIES:
            own = [row.false for row in self.words if row.family == family]
            shares.append(sum(own) / len(own))
        return max(shares) <= MAX_FALSE


def simulate_all(pairs: int) -> Simulated:
    """Simulate all families and sizes, a process for each core."""
    families, counts = zip(*product(FAMILIES, COUNTS), strict=True)
    asked, starts = zip(*product(FAMILIES, STARTS), strict=True)
    with ProcessPoolExecutor() as pool:
        words = pool.map(simulate, families, counts, repeat(pairs))
        drifts = pool.map(under_drift, COUNTS, repeat(pairs))
        shares = dict(
            zip(zip(asked, starts, strict=True), pool.map(until_proven, asked, repeat(5 * pairs), starts), strict=True)
        )
        until = {family: tuple(shares[family, start] for start in STARTS) for family in FAMILIES}
        return Simulated(pairs, list(words), [row for rows in drifts for row in rows], until)


def table(found: Simulated) -> Iterator[str]:
    """The page that is kept."""
    yield "# What compare proves, simulated"
    yield ""
    made = "made by `benchmarks/proof_families.py`"
    yield f"{found.pairs:,} seeded pairs for each row, a spread of {SPREAD:.0%}; {made}."
    yield ""
    yield "| noise | runs a side | interval holds it | equal called different | 3 % apart called same | 10 % found |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for row in found.words:
        shares = (row.coverage, row.false, row.wrongly_same, row.power)
        yield f"| {row.family} | {row.count} | {_percent(shares)} |"
    yield ""
    yield f"A machine that becomes {DRIFT:.0%} slower meanwhile, a spread of {SPREAD / 2:.0%}:"
    yield ""
    yield "| order | runs a side | equal called different | 3 % called same | 5 % found |"
    yield "| --- | --- | --- | --- | --- |"
    for drift in found.drifts:
        yield f"| {drift.order} | {drift.count} | {_percent((drift.false, drift.wrongly_same, drift.power))} |"
    yield ""
    yield f"`--until proven` with a limit of {LIMIT}, pairs in turns, equal sides called different:"
    yield ""
    yield "| noise | from 1 run | from 8 |"
    yield "| --- | --- | --- |"
    for family, of_family in found.until.items():
        yield f"| {family} | {_percent(of_family)} |"


def _percent(shares: Sequence[float]) -> str:
    return " | ".join(f"{share:.1%}" for share in shares)


def main() -> int:
    """Simulate all families, and keep the page."""
    parser = argparse.ArgumentParser(description="What compare proves, over families of noise.")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="of each row (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results" / "proof_families.md")
    options = parser.parse_args()
    found = simulate_all(options.pairs)
    options.out.write_text("\n".join(table(found)) + "\n", encoding="utf-8")
    print(options.out.read_text(encoding="utf-8"))
    return int(not found.keeps_its_word())


if __name__ == "__main__":
    sys.exit(main())
