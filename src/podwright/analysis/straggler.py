"""Which rank all others wait for. Pure.

In synchronous training all ranks have the same step time, so nothing is called slow by it: only by a rank's own work
of a step, as programs tell it, or by the clocks of its GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from podwright.pilot.protocol import MIN_SLOWER, SLOW_IN_A_ROW, WORKS, Epoch, node_name, slow_by_work
from podwright.runs.events import AttemptStarted, Event, RankStarted, ResultTold, Sample

MIN_BUSY_PERCENT = 50.0
RECENT_S = 300.0
"""Of the clocks the last five minutes count."""
HELD_BACK = {
    "its power cap": 0x4,
    "the hardware": 0x8,
    "heat": 0x20 | 0x40,
    "the power brake": 0x80,
}
"""NVML's numbers of why clocks are not higher."""


@dataclass(frozen=True)
class Straggler:
    """A rank that is slower than the others, and by what that is known."""

    rank: int
    host: str
    slower_by: float
    evidence: str

    def as_json(self) -> dict[str, Any]:
        """Return it as `--json` has it."""
        return asdict(self)

    @property
    def text(self) -> str:
        """Return it in a sentence."""
        return f"rank {self.rank} on {self.host} is slower by {self.slower_by:.0%}: {self.evidence}"


@dataclass
class _Attempt:
    """What the newest attempt tells of its ranks."""

    hosts: tuple[str, ...] = ()
    places: dict[int, RankStarted] = field(default_factory=dict)
    works: list[Mapping[str, float]] = field(default_factory=list)

    def host(self, rank: int) -> str:
        place = self.places.get(rank)
        return "an unknown host" if place is None else node_name(self.hosts, place.node)


class RankWatch:
    """Takes the events of a run and says which rank of its newest attempt is slower than the others."""

    def __init__(self) -> None:
        self._attempts: dict[Epoch, _Attempt] = {}

    def take(self, event: Event) -> None:
        """Take the next event in."""
        if isinstance(event, AttemptStarted):
            self._attempt(event.epoch).hosts = event.hosts
        elif isinstance(event, RankStarted):
            self._attempt(event.epoch).places[event.rank] = event
        elif isinstance(event, ResultTold) and WORKS[0] in event.values:
            attempt = self._attempt(event.epoch)
            attempt.works = [*attempt.works, event.values][-SLOW_IN_A_ROW:]

    def _attempt(self, epoch: Epoch) -> _Attempt:
        return self._attempts.setdefault(epoch, _Attempt())

    def straggler(self, samples: Callable[[], Iterable[Sample]]) -> Straggler | None:
        """Return that rank; samples are read where no program tells of its work."""
        if not self._attempts:
            return None
        newest = max(self._attempts)
        attempt = self._attempts[newest]
        if attempt.works:
            return _by_work(attempt)
        return _by_clocks(attempt, samples, newest) if _has_gpus(attempt) else None


def _has_gpus(attempt: _Attempt) -> bool:
    return sum(place.gpu is not None for place in attempt.places.values()) > 1


def _by_work(attempt: _Attempt) -> Straggler | None:
    slow = slow_by_work(attempt.works, MIN_SLOWER)
    if slow is None:
        return None
    return Straggler(slow.rank, attempt.host(slow.rank), slow.slower_by, slow.evidence)


@dataclass
class _Gpu:
    """The last readings of one GPU."""

    times: list[float] = field(default_factory=list)
    clocks: list[float] = field(default_factory=list)
    busy: list[float] = field(default_factory=list)
    reasons: list[int] = field(default_factory=list)


def _by_clocks(attempt: _Attempt, samples: Callable[[], Iterable[Sample]], epoch: Epoch) -> Straggler | None:
    """Return the rank whose GPU runs at lower clocks than the others, all of them being at work."""
    ranks = {(place.node, place.gpu): rank for rank, place in attempt.places.items() if place.gpu is not None}
    gpus: dict[int, _Gpu] = {rank: _Gpu() for rank in ranks.values()}
    for sample in samples():
        if sample.epoch == epoch:
            _note(sample, ranks, gpus)
    latest = max((gpu.times[-1] for gpu in gpus.values() if gpu.times), default=0.0)
    read = {rank: _recent(gpu, latest - RECENT_S) for rank, gpu in gpus.items()}
    working = {rank: gpu for rank, gpu in read.items() if gpu.clocks and median(gpu.busy) >= MIN_BUSY_PERCENT}
    if len(working) < 2:
        return None
    clocks = {rank: median(gpu.clocks) for rank, gpu in working.items()}
    slowest = min(clocks, key=lambda rank: clocks[rank])
    others = median([clock for rank, clock in clocks.items() if rank != slowest])
    if clocks[slowest] <= 0 or others / clocks[slowest] - 1 < MIN_SLOWER:
        return None
    why = "".join(f", held back by {reason}" for reason in _reasons(working[slowest].reasons))
    evidence = f"its GPU runs at {clocks[slowest]:.0f} MHz, the others at {others:.0f} MHz{why}"
    return Straggler(slowest, attempt.host(slowest), round(others / clocks[slowest] - 1, 4), evidence)


def _note(sample: Sample, ranks: Mapping[tuple[int, int], int], gpus: Mapping[int, _Gpu]) -> None:
    for (node, index), rank in ranks.items():
        clock = sample.values.get(f"gpu.{index}.sm_clock_mhz") if node == sample.node else None
        if clock is not None:
            gpu = gpus[rank]
            gpu.times.append(sample.time)
            gpu.clocks.append(clock)
            gpu.busy.append(sample.values.get(f"gpu.{index}.utilization_percent", 0.0))
            gpu.reasons.append(int(sample.values.get(f"gpu.{index}.throttle_reasons", 0)))


def _recent(gpu: _Gpu, since: float) -> _Gpu:
    first = next((at for at, time in enumerate(gpu.times) if time >= since), 0)
    return _Gpu(gpu.times[first:], gpu.clocks[first:], gpu.busy[first:], gpu.reasons[first:])


def _reasons(masks: Sequence[int]) -> list[str]:
    """Return what held a GPU back in at least half of the readings."""
    return [name for name, mask in HELD_BACK.items() if _is_common(mask, masks)]


def _is_common(mask: int, masks: Sequence[int]) -> bool:
    return 2 * sum(bool(seen & mask) for seen in masks) >= len(masks)
