"""BLEU, the usual score of a translation: how many runs of one to four words it has in common with the right one.

As in Papineni et al., 2002: over all sentences together, one right translation each, from 0 to 1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

LONGEST = 4
Sentence = Sequence[int]


def runs(sentence: Sentence, length: int) -> Counter[tuple[int, ...]]:
    """How often each run of this many words is in a sentence."""
    return Counter(tuple(sentence[start : start + length]) for start in range(len(sentence) - length + 1))


def counts(said: Sentence, right: Sentence) -> list[float]:
    """For each length: runs that are right, runs that were said; then the words of both sentences."""
    row: list[float] = []
    for length in range(1, LONGEST + 1):
        ours = runs(said, length)
        row += [(ours & runs(right, length)).total(), ours.total()]
    return [*row, len(said), len(right)]


def bleu(sums: Sequence[float]) -> float:
    """The score of many sentences, from the sums of their counts; too short ones are punished."""
    *pairs, said, right = sums
    hits, tries = pairs[::2], pairs[1::2]
    if min(hits) == 0:
        return 0.0
    precision = math.fsum(math.log(hit / tried) for hit, tried in zip(hits, tries, strict=True)) / LONGEST
    return math.exp(precision + min(0.0, 1 - right / said))
