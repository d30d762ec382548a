"""What a round of the fault campaign does, by its seed, and how a round that failed is made smaller. Pure."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

MAX_FAULTS, MAX_STEP = 3, 30
PROCESSES = ("client", "rank", "pilot", "leader", "frozen")
KINDS: dict[str, tuple[str, ...]] = {
    "local": (*PROCESSES, "keeper"),
    "slurm": (*PROCESSES, "power", "cut", "slurmctld", "slurmd", "requeue", "slow-link", "loss"),
    "kubernetes": (*PROCESSES, "power", "cut", "server", "kubelet", "deleted", "slow-link", "loss"),
}
"""What may be struck, by engine."""
LASTING_S = (4.0, 10.0, 25.0, 45.0)
"""How long what can be mended stays broken: beyond the silence, and within."""


@dataclass(frozen=True)
class Shape:
    """One run of a round."""

    nodes: int
    spares: int = 0


@dataclass(frozen=True)
class Fault:
    """What is struck, in which run, once that has told a step, and for how long."""

    kind: str
    run: int
    step: int
    lasts_s: float

    @property
    def text(self) -> str:
        """Return it as the log has it."""
        return f"{self.kind} in run {self.run} at step {self.step}"


@dataclass(frozen=True)
class Plan:
    """A round: runs side by side, and what is done to them."""

    engine: str
    seed: int
    shapes: tuple[Shape, ...]
    faults: tuple[Fault, ...]

    def may_lose(self, run: int) -> bool:
        """Return whether all that holds a run on one machine is killed: nobody is left to start it again then."""
        kinds = {fault.kind for fault in self.faults if fault.run == run}
        if self.engine != "local" or "keeper" not in kinds:
            return False
        return bool(kinds & {"leader", "pilot"}) if self.shapes[run].nodes == 1 else {"leader", "pilot"} <= kinds


def plan_of(engine: str, seed: int) -> Plan:
    """Return the round of a seed: the same each time, and another on each engine."""
    chance = random.Random(f"{engine} {seed}")
    shapes = tuple(_shape(chance) for _ in range(2))
    count = chance.randint(1, MAX_FAULTS)
    faults = tuple(_fault(chance, KINDS[engine]) for _ in range(count))
    return Plan(engine, seed, shapes, faults)


def _shape(chance: random.Random) -> Shape:
    nodes = chance.choice((1, 2, 2, 2))
    return Shape(nodes, chance.choice((0, 1)) if nodes > 1 else 0)


def _fault(chance: random.Random, kinds: Sequence[str]) -> Fault:
    kind = chance.choice(kinds)
    step = 0 if kind == "client" else chance.randint(1, MAX_STEP)
    return Fault(kind, chance.randrange(2), step, chance.choice(LASTING_S))


def shrunk(plan: Plan, fails: Callable[[Plan], bool]) -> Plan:
    """Return the plan with the fewest of its faults that still fails: the smallest are tried first."""
    for size in range(1, len(plan.faults)):
        for faults in _subsets(plan.faults, size):
            smaller = replace(plan, faults=faults)
            if fails(smaller):
                return smaller
    return plan


def _subsets(faults: tuple[Fault, ...], size: int) -> Iterator[tuple[Fault, ...]]:
    if size == 0:
        yield ()
        return
    for at, first in enumerate(faults):
        for rest in _subsets(faults[at + 1 :], size - 1):
            yield (first, *rest)


def still_open(engine: str, seeds: Sequence[int], rows: Sequence[dict[str, Any]]) -> list[int]:
    """Return the seeds of which the log has no round that went well: what failed is played again, by newer code."""
    done = {row["seed"] for row in rows if row["engine"] == engine and not failures(row)}
    return [seed for seed in seeds if seed not in done]


def failures(row: dict[str, Any]) -> list[str]:
    """Return what was wrong with a round of the log, in words."""
    return list(dict.fromkeys(fault["wrong"] for fault in row["faults"] if fault["wrong"]))
