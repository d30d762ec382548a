"""How many of the GPU hours that jobs held were idle, whose they were, and what they cost; sums only, nothing is asked.

An hour is idle by as much as the GPU was not busy. Where nobody measured that, only GPUs that a job was given and had
not asked for are known to be idle; the others are counted as not measured, never as busy or idle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from podwright.engines.usage import Allocation
from podwright.pilot.metrics import is_of
from podwright.runs.events import Sample

HOUR_S = 3600.0


@dataclass(frozen=True)
class Use:
    """GPU hours."""

    held: float = 0.0
    idle: float = 0.0
    unmeasured: float = 0.0

    def __add__(self, other: Use) -> Use:
        return Use(self.held + other.held, self.idle + other.idle, self.unmeasured + other.unmeasured)

    def as_json(self, gpu_hour: float | None) -> dict[str, float | None]:
        """Return it as `--json` has it, with the cost of what was idle where a GPU hour has a price."""
        cost = None if gpu_hour is None else self.idle * gpu_hour
        hours = {"gpu_hours": self.held, "idle_gpu_hours": self.idle, "unmeasured_gpu_hours": self.unmeasured}
        return {**hours, "idle_cost": cost}


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

    def as_json(self, gpu_hour: float | None) -> dict[str, Any]:
        """Return it as `--json` has it."""
        names = {"job": self.job, "run": self.run, "name": self.name, "user": self.user, "nodes": self.nodes}
        return {**names, "gpus": self.gpus, "gpus_asked": self.gpus_asked, **self.use.as_json(gpu_hour)}


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

    def as_json(self, gpu_hour: float | None) -> dict[str, Any]:
        """Return the sums as `--json` has them."""
        return {
            **self.total.as_json(gpu_hour),
            "users": [{"user": user, **use.as_json(gpu_hour)} for user, use in self.users.items()],
            "runs": [job.as_json(gpu_hour) for job in self.jobs],
            "whole_nodes": [job.as_json(gpu_hour) for job in self.whole_nodes],
            "backfill_gpu_hours": self.backfill_gpu_h,
            "time_limit_used": self.limit_share,
        }


def sum_up(
    allocations: Iterable[Allocation], busy: Mapping[Allocation, float], gpus: int | None, since: float, until: float
) -> Waste:
    """Add up what became of the GPU hours, by user and by job.

    `busy` has the GPUs that were busy on average, of the allocations that were measured.
    """
    counted = [allocation for allocation in allocations if allocation.gpus or allocation.gpus_asked]
    started = [allocation for allocation in counted if allocation.started_at is not None and allocation.gpus]
    jobs = [_job_use(starts, busy, since, until) for starts in _by_job(started)]
    users: dict[str, Use] = {}
    for job in jobs:
        users[job.user] = users.get(job.user, Use()) + job.use
    ordered = sorted(jobs, key=lambda job: (-job.use.idle, -job.use.held, job.job))
    backfill_gpu_h = None
    if gpus is not None:
        backfill_gpu_h = backfill_gpu_s(counted, gpus, since, until) / HOUR_S
    return Waste(
        since=since,
        until=until,
        gpus=gpus,
        total=sum(users.values(), Use()),
        users=dict(sorted(users.items(), key=lambda item: (-item[1].idle, -item[1].held, item[0]))),
        jobs=ordered,
        whole_nodes=[job for job in ordered if job.gpus > job.gpus_asked],
        backfill_gpu_h=backfill_gpu_h,
        limit_share=_limit_share(started),
    )


def _by_job(started: Iterable[Allocation]) -> Iterable[list[Allocation]]:
    """Return all times that a run, or a job that is nobody's run, was started, together."""
    starts: dict[str, list[Allocation]] = {}
    for allocation in started:
        starts.setdefault(allocation.run or allocation.job, []).append(allocation)
    return starts.values()


def _job_use(starts: Sequence[Allocation], busy: Mapping[Allocation, float], since: float, until: float) -> JobUse:
    """Return what a job held in all, with what the last of its starts says of it."""
    uses = [use_of(allocation, busy.get(allocation), since, until) for allocation in starts]
    last = starts[-1]
    return JobUse(
        job=last.job,
        run=last.run,
        name=last.name,
        user=last.user,
        nodes=last.nodes,
        gpus=last.gpus,
        gpus_asked=last.gpus_asked,
        use=sum(uses, Use()),
    )


def use_of(allocation: Allocation, busy_gpus: float | None, since: float, until: float) -> Use:
    """Return what an allocation held between two moments."""
    assert allocation.started_at is not None
    gpus = allocation.gpus
    hours = max(0.0, min(allocation.ended_at or until, until) - max(allocation.started_at, since)) / HOUR_S
    if busy_gpus is not None:
        return Use(gpus * hours, max(0.0, gpus - busy_gpus) * hours)
    spare = max(0, gpus - allocation.gpus_asked)
    return Use(gpus * hours, spare * hours, (gpus - spare) * hours)


def _limit_share(started: Iterable[Allocation]) -> float | None:
    """Return the share of their limits that jobs used, of those that are over, weighted by their GPUs."""
    ran, limits = 0.0, 0.0
    for allocation in started:
        if allocation.ended_at is None or allocation.started_at is None or not allocation.limit_s:
            continue
        ran += allocation.gpus * (allocation.ended_at - allocation.started_at)
        limits += allocation.gpus * allocation.limit_s
    if not limits:
        return None
    return ran / limits


def backfill_gpu_s(jobs: Iterable[Allocation], gpus: int, since: float, until: float) -> float:
    """Return the GPU seconds that were free while jobs waited that would have fitted; the most it can have been.

    GPUs are counted, not placed: which nodes they were on, their network and the limits of the site are left out. No
    job counts for longer than it ran, or may run.
    """
    changes = _changes(jobs, since, until)
    left: dict[Allocation, float] = {}
    held, total = 0, 0.0
    for begin, end in pairwise([*sorted(changes), until]):
        for job, what in changes[begin]:
            if what == "waits":
                left[job] = _work_s(job)
            else:
                left.pop(job, None)
            held += job.gpus * _HOLDS[what]
        free = gpus - held
        for job, work_s in left.items():
            took = min(end - begin, work_s)
            # A job whose work is used up would have been over by now: it takes no GPUs from the others.
            if took and 0 < job.gpus_asked <= free:
                left[job] -= took
                free -= job.gpus_asked
                total += took * job.gpus_asked
    return total


_HOLDS = {"waits": 0, "starts": 1, "ends": -1, "leaves": 0}


def _changes(jobs: Iterable[Allocation], since: float, until: float) -> dict[float, list[tuple[Allocation, str]]]:
    """Return what happens when; what came before is put at the beginning. Who waits longest comes first."""
    changes: dict[float, list[tuple[Allocation, str]]] = {since: []}
    for job in sorted(jobs, key=lambda job: job.eligible_at):
        end = "leaves" if job.started_at is None else "ends"
        for moment, what in ((job.eligible_at, "waits"), (job.started_at, "starts"), (job.ended_at, end)):
            if moment is not None and moment < until:
                changes.setdefault(max(moment, since), []).append((job, what))
    return changes


def _work_s(job: Allocation) -> float:
    if job.started_at is not None and job.ended_at is not None:
        return job.ended_at - job.started_at
    return job.limit_s or float("inf")


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
    if not sums:
        return None
    return sum(total / count for total, count in sums.values()) / 100
