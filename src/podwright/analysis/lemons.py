"""Nodes that take part in failures more often than chance has it: lemons. Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class LemonNode:
    """One node: how many of the last failures it took part in, and how likely as many are by chance."""

    host: str
    failures: int
    of: int
    odds: float

    def as_json(self) -> dict[str, Any]:
        """Return what `pod nodes --json` prints of it."""
        return asdict(self)


def lemons(failures: Sequence[Collection[str]], nodes: int) -> list[LemonNode]:
    """Return every node that took part in a failure, the least likely first.

    Were all nodes alike, a failure on 4 of 100 nodes would have a given one among them with a chance of 4 in 100; what
    is told is the chance of at least as many failures as the node has.
    """
    hosts = sorted(set[str]().union(*failures))
    shares = [min(len(set(failure)) / max(nodes, 1), 1.0) for failure in failures]
    at_least = _at_least(shares)
    found = []
    for host in hosts:
        count = sum(host in failure for failure in failures)
        found.append(LemonNode(host, count, len(failures), at_least[count]))
    return sorted(found, key=lambda lemon: (lemon.odds, lemon.host))


def _at_least(shares: Sequence[float]) -> list[float]:
    """Return the chance of at least 0, 1, 2, ... of events that come about with these chances, each by itself."""
    exactly = [1.0]
    for share in shares:
        without = [chance * (1 - share) for chance in exactly]
        with_it = [chance * share for chance in exactly]
        exactly = [a + b for a, b in zip([*without, 0.0], [0.0, *with_it], strict=True)]
    sums, total = [], 0.0
    for chance in reversed(exactly):
        total += chance
        sums.append(min(total, 1.0))
    return sums[::-1]
