"""What targets do now and what became of their GPU hours: the engines are asked, own runs are put beside their jobs."""

from __future__ import annotations

import getpass
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from podwright.engines.usage import Allocation, NodeUse, PartitionUse, Past, QueuedJob, partitions
from podwright.launch import pods
from podwright.launch.follow import reconcile
from podwright.launch.session import Session
from podwright.runs import Home, Record, RunFolder
from podwright.runs.store import ID
from podwright.spec.problems import Refusal, refuse
from podwright.spec.quantity import duration_s
from podwright.usage.waste import Price, Waste, busy_gpus, gpu_hour_price, sum_up

if TYPE_CHECKING:
    from podwright.spec import KubernetesScheduler, Pod, SlurmScheduler


class Cluster(Protocol):
    """A scheduler that can be asked about all its jobs."""

    def queue(self) -> list[QueuedJob]: ...

    def nodes(self) -> list[NodeUse]: ...

    def past(self, since_s: float) -> Past | None: ...


def _slurm(scheduler: SlurmScheduler) -> Cluster:
    from podwright.engines.slurm.usage import SlurmUsage

    return SlurmUsage(scheduler)


CLUSTERS: dict[str, Callable[[SlurmScheduler], Cluster]] = {"slurm": _slurm}
"""Schedulers whose whole queue can be looked at, by kind."""


@dataclass(frozen=True)
class Place:
    """A target that is looked at; without a pod it is this machine."""

    target: str
    names: frozenset[str]
    """What runs that went there call it."""
    pod: Pod | None = None
    scheduler: SlurmScheduler | None = None

    def cluster(self) -> Cluster | None:
        return CLUSTERS[self.scheduler.kind](self.scheduler) if self.scheduler else None


@dataclass(frozen=True)
class Queue:
    """A target as it is now; `away` says why it could not be asked."""

    target: str
    partitions: tuple[PartitionUse, ...] = ()
    jobs: tuple[QueuedJob, ...] = ()
    nodes: tuple[NodeUse, ...] = ()
    """Each once, though it may be in several partitions."""
    away: str = ""

    @property
    def gpus(self) -> int:
        return sum(node.gpus for node in self.nodes)

    @property
    def gpus_free(self) -> int:
        return sum(node.gpus - node.gpus_used for node in self.nodes if node.state != "away")


@dataclass(frozen=True)
class Wasted:
    """What became of a target's GPU hours, and the price of one."""

    target: str
    waste: Waste | None = None
    accounting: bool = False
    price: Price | None = None
    away: str = ""


LOCAL = Place("local", frozenset({"local", "local-frames"}))


def places(home: Home, target: str | None) -> list[Place]:
    """The target that is named, else this machine and every scheduler of the known pods that can be looked at."""
    if target in LOCAL.names:
        return [LOCAL]
    if target is None:
        return [LOCAL, *(place for name in pods.known(home) for place in _places_of(pods.find(home, name), name))]
    name, _, wanted = target.partition(":")
    pod = pods.find(home, name)
    scheduler = pod.scheduler(wanted or None)
    found = [place for place in _places_of(pod, name) if place.scheduler == scheduler]
    if not found:
        raise refuse(f"{target} is {scheduler.kind}, whose queue Podwright does not look at", field="TARGET")
    return found


def _places_of(pod: Pod, ref: str) -> Iterator[Place]:
    for scheduler in pod.schedulers:
        if _is_looked_at(scheduler):
            only = len(pod.schedulers) == 1
            names = {f"{ref}:{scheduler.name}", f"{pod.name}:{scheduler.name}", *({ref, pod.name} if only else ())}
            target = pod.name if only else f"{pod.name}:{scheduler.name}"
            yield Place(target, frozenset(names), pod, scheduler)  # type: ignore[arg-type]


def _is_looked_at(scheduler: SlurmScheduler | KubernetesScheduler) -> bool:
    return scheduler.kind in CLUSTERS


# now


def queues(session: Session, target: str | None = None) -> list[Queue]:
    """The queue of one target, or of all; a cluster that cannot be reached does not hide the others."""
    found = []
    for place in places(session.home, target):
        try:
            found.append(_queue(session, place))
        except Refusal as refusal:
            if target is not None:
                raise
            found.append(Queue(place.target, away=refusal.problems[0].message))
    return found


def _queue(session: Session, place: Place) -> Queue:
    cluster = place.cluster()
    if cluster is None:
        return _local_queue(session)
    nodes = cluster.nodes()
    jobs = tuple(replace(job, run=own_run(session.home, job.job, job.name)) for job in cluster.queue())
    once = {node.node: node for node in nodes}
    return Queue(place.target, tuple(partitions(nodes)), jobs, tuple(once.values()))


def own_run(home: Home, job: str, name: str) -> str | None:
    """A job is named like its run, and a task of an array is the point of its number."""
    task = job.partition("_")[2]
    run = f"{name}-{task}" if task.isdigit() else name
    return run if ID.fullmatch(run) and home.has(run) else None


def _local_queue(session: Session) -> Queue:
    """The runs of this home on this machine; what else the machine does is not known."""
    home = session.home
    home.sync()
    ids = [run_id for run_id in home.index.open_ids(time.time()) if home.folder(run_id).asked.target in LOCAL.names]
    jobs = [_local_job(home.folder(record.id), record) for record in reconcile(session, ids) if not record.is_final]
    gpus = len([path for path in Path("/dev").glob("nvidia*") if path.name[6:].isdigit()])
    used = min(gpus, sum(job.gpus for job in jobs if job.state == "running"))
    busy = any(job.state == "running" for job in jobs)
    node = NodeUse("local", "this machine", "part" if busy else "free", gpus, used)
    return Queue("local", tuple(partitions([node])), tuple(jobs), (node,))


def _local_job(folder: RunFolder, record: Record) -> QueuedJob:
    waits, limit_s = record.state == "pending", _limit_s(folder)
    ends_at = record.started_at + limit_s if record.started_at and limit_s else None
    return QueuedJob(
        job=record.id,
        name=record.id,
        user=getpass.getuser(),
        state="waiting" if waits else "running",
        partition="local",
        nodes=record.nodes,
        gpus=folder.asked.gpus,
        tasks=max(1, folder.asked.points),
        hosts=",".join(dict.fromkeys(record.hosts)),
        why=record.reason if waits else "",
        starts_at=record.started_at,
        ends_at=ends_at,
        run=record.id,
    )


def _limit_s(folder: RunFolder) -> float | None:
    text = folder.asked.workload.get("time_limit")
    return duration_s(text) if text else None


# before


def wasted(session: Session, target: str | None = None, since_s: float = 7 * 86400.0) -> list[Wasted]:
    """What became of the GPU hours of the last `since_s` seconds, target by target."""
    found = []
    for place in places(session.home, target):
        try:
            found.append(_wasted(session, place, since_s))
        except Refusal as refusal:
            if target is not None:
                raise
            found.append(Wasted(place.target, away=refusal.problems[0].message))
    return found


def _wasted(session: Session, place: Place, since_s: float) -> Wasted:
    until = time.time()
    cluster = place.cluster()
    past = cluster.past(since_s) if cluster else None
    if past is None:
        allocations = list(_own_allocations(session, place, until - since_s))
    else:
        allocations = [replace(one, run=own_run(session.home, one.job, one.name)) for one in past.allocations]
    busy = {one: gpus for one in allocations if (gpus := _measured(session.home, one, until)) is not None}
    waste = sum_up(allocations, busy, past.gpus if past else None, until - since_s, until)
    return Wasted(place.target, waste, past is not None, _price(place))


def _price(place: Place) -> Price | None:
    if place.pod is None or place.scheduler is None:
        return None
    hosts = place.pod.scheduler_hosts(place.scheduler)
    return gpu_hour_price(place.pod.costs, place.pod.model_of(hosts[0]))


def _measured(home: Home, one: Allocation, until: float) -> float | None:
    if one.run is None or one.started_at is None or not one.gpus or not home.has(one.run):
        return None
    return busy_gpus(home.folder(one.run).samples(), one.started_at, one.ended_at or until)


def _own_allocations(session: Session, place: Place, since: float) -> Iterator[Allocation]:
    """What this home's runs held, as their own records tell; one that cannot be read does not hide the others."""
    home = session.home
    for run_id in sorted(home.all_ids()):
        with suppress(Refusal):
            asked = home.folder(run_id).asked
            if not asked.points and asked.target in place.names and asked.gpus:
                record = reconcile(session, [run_id])[0]
                if record.started_at is not None and (record.ended_at is None or record.ended_at >= since):
                    yield _own_allocation(home.folder(run_id), record)


def _own_allocation(folder: RunFolder, record: Record) -> Allocation:
    return Allocation(
        job=record.id,
        name=record.id,
        user=getpass.getuser(),
        partition="",
        eligible_at=record.created_at,
        started_at=record.started_at,
        ended_at=record.ended_at,
        limit_s=_limit_s(folder),
        nodes=record.nodes,
        gpus_asked=folder.asked.gpus,
        gpus=folder.asked.gpus,
        run=record.id,
    )
