"""How many of the GPU hours that jobs held were idle, whose they were, and what they cost; sums only, nothing is asked.

An hour is idle by as much as the GPU was not busy. Where nobody measured that, only GPUs that a job was given and had
not asked for are known to be idle; the others are counted as not measured, never as busy or idle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from podwright.engines.usage import Allocation
from podwright.pilot.sensors import is_of
from podwright.runs.events import Sample

if TYPE_CHECKING:
    from podwright.spec import Costs, NodeModel

HOUR_S = 3600.0
YEAR_H = 8760.0
YEARS = 5.0
"""Over which the price of a node is spread when the pod does not say."""


@dataclass(frozen=True)
class Use:
    """GPU hours."""

    held: float = 0.0
    idle: float = 0.0
    unmeasured: float = 0.0

    def __add__(self, other: Use) -> Use:
        return Use(self.held + other.held, self.idle + other.idle, self.unmeasured + other.unmeasured)


@dataclass(frozen=True)
class JobUse:
    """One run, or one job that is nobody's run: all times it was started, as one."""

    job: str
    run: str | None
    name: str
    user: str
    nodes: int
    gpus: int
    gpus_asked: int
    use: Use


@dataclass(frozen=True)
class Price:
    """What a GPU hour costs, and how that is known."""

    per_gpu_hour: float
    currency: str
    origin: str


@dataclass(frozen=True)
class Waste:
    """What became of the GPU hours of a target between two moments."""

    since: float
    until: float
    gpus: int | None
    """GPUs there are to be used; None where only own runs are known."""
    total: Use
    users: Mapping[str, Use]
    jobs: Sequence[JobUse]
    """The most idle first."""
    whole_nodes: Sequence[JobUse]
    """Those that were given more GPUs than they asked for, since they took whole nodes."""
    backfill_gpu_h: float | None
    limit_share: float | None
    """The share of their time limits that jobs used; short limits are what backfill needs."""


def sum_up(
    allocations: Iterable[Allocation], busy: Mapping[Allocation, float], gpus: int | None, since: float, until: float
) -> Waste:
    """`busy` has the GPUs that were busy on average, of the allocations that were measured."""
    jobs: dict[str, JobUse] = {}
    kept = [one for one in allocations if one.gpus or one.gpus_asked]
    held = [one for one in kept if one.started_at is not None and one.gpus]
    for one in held:
        key = one.run or one.job
        found, use = jobs.get(key), use_of(one, busy.get(one), since, until)
        before = found.use if found else Use()
        jobs[key] = JobUse(one.job, one.run, one.name, one.user, one.nodes, one.gpus, one.gpus_asked, before + use)
    users: dict[str, Use] = {}
    for job in jobs.values():
        users[job.user] = users.get(job.user, Use()) + job.use
    ordered = sorted(jobs.values(), key=lambda job: (-job.use.idle, -job.use.held, job.job))
    return Waste(
        since=since,
        until=until,
        gpus=gpus,
        total=sum(users.values(), Use()),
        users=dict(sorted(users.items(), key=lambda item: (-item[1].idle, -item[1].held, item[0]))),
        jobs=ordered,
        whole_nodes=[job for job in ordered if job.gpus > job.gpus_asked],
        backfill_gpu_h=None if gpus is None else backfill_gpu_s(kept, gpus, since, until) / HOUR_S,
        limit_share=_limit_share(held),
    )


def use_of(one: Allocation, busy_gpus: float | None, since: float, until: float) -> Use:
    """What one allocation held between two moments."""
    assert one.started_at is not None
    hours = max(0.0, min(one.ended_at or until, until) - max(one.started_at, since)) / HOUR_S
    if busy_gpus is not None:
        return Use(one.gpus * hours, max(0.0, one.gpus - busy_gpus) * hours)
    spare = max(0, one.gpus - one.gpus_asked)
    return Use(one.gpus * hours, spare * hours, (one.gpus - spare) * hours)


def _limit_share(held: Iterable[Allocation]) -> float | None:
    """Of jobs that are over and had a limit, weighted by their GPUs."""
    pairs = [
        (one.gpus * (one.ended_at - one.started_at), one.gpus * one.limit_s)
        for one in held
        if one.ended_at is not None and one.started_at is not None and one.limit_s
    ]
    asked = sum(limit for _, limit in pairs)
    return sum(ran for ran, _ in pairs) / asked if asked else None


def backfill_gpu_s(jobs: Iterable[Allocation], gpus: int, since: float, until: float) -> float:
    """GPU seconds that were free while jobs waited that would have fitted into them; the most it can have been.

    GPUs are counted, not placed: which nodes they were on, their network and the limits of the site are left out. No
    job counts for longer than it ran, or may run.
    """
    changes = _changes(jobs, since, until)
    left: dict[Allocation, float] = {}
    held, total = 0, 0.0
    for begin, end in pairwise([*sorted(changes), until]):
        for one, what in changes[begin]:
            if what == "waits":
                left[one] = _work_s(one)
            else:
                left.pop(one, None)
            held += one.gpus * _HOLDS[what]
        free = gpus - held
        for one, work_s in left.items():
            if 0 < one.gpus_asked <= free:
                took = min(end - begin, work_s)
                left[one] -= took
                free -= one.gpus_asked if took else 0
                total += took * one.gpus_asked
    return total


_HOLDS = {"waits": 0, "starts": 1, "ends": -1, "leaves": 0}


def _changes(jobs: Iterable[Allocation], since: float, until: float) -> dict[float, list[tuple[Allocation, str]]]:
    """What happens when; what came before the beginning is put there. The job that waits longest comes first."""
    changes: dict[float, list[tuple[Allocation, str]]] = {since: []}
    for one in sorted(jobs, key=lambda one: one.eligible_at):
        end = "leaves" if one.started_at is None else "ends"
        for moment, what in ((one.eligible_at, "waits"), (one.started_at, "starts"), (one.ended_at, end)):
            if moment is not None and moment < until:
                changes.setdefault(max(moment, since), []).append((one, what))
    return changes


def _work_s(one: Allocation) -> float:
    if one.started_at is not None and one.ended_at is not None:
        return one.ended_at - one.started_at
    return one.limit_s or float("inf")


def busy_gpus(samples: Iterable[Sample], since: float, until: float) -> float | None:
    """Return the GPUs that were busy on average, from a run's own samples; None when it measured none."""
    sums: dict[tuple[int, str], tuple[float, int]] = {}
    for sample in samples:
        if not since <= sample.time <= until:
            continue
        for name, value in sample.values.items():
            if is_of(name, "gpu.N.utilization_percent"):
                total, count = sums.get((sample.node, name), (0.0, 0))
                sums[sample.node, name] = total + value, count + 1
    return sum(total / count for total, count in sums.values()) / 100 if sums else None


def gpu_hour_price(costs: Costs, model: NodeModel) -> Price | None:
    """The rent where one is given, else what owning costs: the node over its years, and its power.

    Spread over the hours that are used, when the pod says how many those are.
    """
    if costs.gpu_hour_price is not None:
        return Price(costs.gpu_hour_price, costs.currency, "gpu_hour_price of the pod")
    node = costs.node_price if costs.node_price is not None else model.price
    gpus = model.gpus.count if model.gpus else 0
    if node is None or not gpus:
        return None
    years, share = costs.years or YEARS, costs.utilization or 1.0
    words = [f"a node's price over {years:g} years" + ("" if costs.years else " (assumed)")]
    per_hour = node / years / YEAR_H
    if costs.power_price_kwh is not None and model.power_w is not None:
        per_hour += model.power_w / 1000 * (costs.pue or 1.0) * costs.power_price_kwh
        words.append("its full power")
    words.append(f"{share:.0%} of hours used" if costs.utilization else "every hour counted")
    return Price(per_hour / gpus / share, costs.currency, f"modelled: {', '.join(words)}")
