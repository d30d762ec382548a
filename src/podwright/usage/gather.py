"""What targets do now and what became of their GPU hours: the engines are asked, own runs are put beside their jobs."""

from __future__ import annotations

import getpass
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from podwright.analysis.goodput import HOUR_MS, sentences
from podwright.clients.machine import count_gpus
from podwright.engines.base import Engine
from podwright.engines.usage import Allocation, NodeUse, PartitionUse, QueuedJob, partitions
from podwright.launch import pods
from podwright.launch.follow import reconcile
from podwright.launch.run import Run
from podwright.launch.session import Session
from podwright.pilot.protocol import whole_number
from podwright.runs import SETTLED, Home, Record, RunFolder
from podwright.runs.goodput import Goodput, sum_of
from podwright.runs.goodput.account import GPU, from_json
from podwright.runs.parquet import Unreadable
from podwright.runs.record import iso
from podwright.runs.store import ID
from podwright.spec.problems import Refusal
from podwright.spec.quantity import duration_s
from podwright.theme import words
from podwright.usage.waste import Waste, busy_gpus, sum_up

if TYPE_CHECKING:
    from podwright.costs import Price
    from podwright.spec import KubernetesScheduler, Pod, SlurmScheduler

Row = TypeVar("Row")


@dataclass(frozen=True)
class UsageTarget:
    """A target that is looked at; without a pod it is this machine."""

    name: str
    aliases: frozenset[str]
    """What runs that went there call it."""
    pod: Pod | None = None
    scheduler: SlurmScheduler | KubernetesScheduler | None = None

    def engine(self, session: Session) -> Engine:
        """Return the engine behind it."""
        if self.pod is None or self.scheduler is None:
            return session.target(self.name)[0]
        return session.engine_for(self.pod, self.scheduler.name)


@dataclass(frozen=True)
class TargetQueue:
    """A target as it is now; `away` says why it could not be asked."""

    target: str
    partitions: tuple[PartitionUse, ...] = ()
    jobs: tuple[QueuedJob, ...] = ()
    nodes: tuple[NodeUse, ...] = ()
    """Each once, though it may be in several partitions."""
    away: str = ""
    hidden: tuple[str, ...] = ()
    """What the user may not look at there, in sentences."""

    @property
    def gpus(self) -> int:
        """Return the number of GPUs of all nodes."""
        return sum(node.gpus for node in self.nodes)

    @property
    def gpus_free(self) -> int:
        """Return the number of GPUs that nobody holds, on nodes that take jobs."""
        return sum(node.gpus - node.gpus_used for node in self.nodes if node.state != "away")

    @property
    def sentence(self) -> str:
        """Say in one sentence how busy it is."""
        waiting = sum(job.tasks for job in self.jobs if job.state == "waiting")
        running = sum(job.tasks for job in self.jobs if job.state == "running")
        jobs = f"{words.count(running, 'job runs', 'jobs run', False)}, {words.count(waiting, 'waits', 'wait', False)}"
        if not self.gpus:
            return jobs
        return f"{jobs}; {self.gpus_free} of {self.gpus} GPUs are free"

    def as_json(self) -> dict[str, Any]:
        """Return it as `--json` and an API have it; times are ISO 8601."""
        jobs = []
        for job in self.jobs:
            jobs.append(asdict(job) | {"starts_at": iso(job.starts_at), "ends_at": iso(job.ends_at)})
        return {
            "target": self.target,
            "error": self.away or None,
            "partitions": [asdict(partition) for partition in self.partitions],
            "nodes_away": [{"node": node.node, "why": node.why} for node in self.nodes if node.state == "away"],
            "jobs": jobs,
        }


@dataclass(frozen=True)
class TargetWaste:
    """What became of a target's GPU hours, and the price of one."""

    target: str
    waste: Waste | None = None
    accounting: bool = False
    price: Price | None = None
    away: str = ""
    goodputs: Mapping[str, Goodput] = field(default_factory=dict)
    """Of own runs with GPUs, each as a whole, though it began before the time that is looked at."""

    @property
    def goodput_lines(self) -> list[str]:
        """Return the same in lines for people, with what the rest of the time cost."""
        whole = self.goodput
        if whole is None:
            return []
        lines = [*sentences(whole)]
        if self.price is not None:
            lost_h = (whole.allocated - whole.classes.get("productive", 0)) / HOUR_MS
            lines.append(f"what was not productive cost {lost_h * self.price.per_gpu_hour:.2f} {self.price.currency}")
        return lines

    @property
    def goodput(self) -> Goodput | None:
        """Return what became of the time of all own runs together."""
        return sum_of(self.goodputs.values())

    def as_json(self) -> dict[str, Any]:
        """Return it as `--json` and an API have it; times are ISO 8601."""
        waste, price = self.waste, self.price
        if waste is None:
            return {"target": self.target, "error": self.away}
        return {
            "target": self.target,
            "error": None,
            "since": iso(waste.since),
            "until": iso(waste.until),
            "accounting": self.accounting,
            "price": None if price is None else price.as_json(),
            **waste.as_json(None if price is None else price.per_gpu_hour),
            "goodput": None if self.goodput is None else self.goodput.as_json(),
            "goodput_of_runs": {run: goodput.as_json() for run, goodput in self.goodputs.items()},
        }


LOCAL = UsageTarget("local", frozenset({"local", "local-frames"}))


def targets(home: Home, name: str | None) -> list[UsageTarget]:
    """Return the target that is named, else this machine and every scheduler of the known pods."""
    if name in LOCAL.aliases:
        return [LOCAL]
    if name is not None:
        ref, _, kind = name.partition(":")
        pod = pods.find(home, ref)
        scheduler = pod.scheduler(kind or None)
        return [target for target in _targets_of(pod, ref) if target.scheduler == scheduler]
    every = [LOCAL]
    for ref in pods.known(home):
        every += _targets_of(pods.find(home, ref), ref)
    return every


def _targets_of(pod: Pod, ref: str) -> Iterator[UsageTarget]:
    """Yield a target for each scheduler; the only one of a pod is also called like the pod itself."""
    for scheduler in pod.schedulers:
        name = f"{pod.name}:{scheduler.name}"
        aliases = {name, f"{ref}:{scheduler.name}"}
        if len(pod.schedulers) == 1:
            name = pod.name
            aliases |= {ref, pod.name}
        yield UsageTarget(name, frozenset(aliases), pod, scheduler)


# now


def queues(session: Session, name: str | None = None) -> list[TargetQueue]:
    """Return the queue of one target, or of all; a cluster that cannot be reached does not hide the others."""
    return list(_each(session, name, lambda target: _queue(session, target), TargetQueue))


def _each(
    session: Session, name: str | None, ask: Callable[[UsageTarget], Row], row: Callable[..., Row]
) -> Iterator[Row]:
    """Yield what each target says, or why it cannot be asked; of one that was named that is refused."""
    for target in targets(session.home, name):
        try:
            yield ask(target)
        except Refusal as refusal:
            if name is not None:
                raise
            yield row(target.name, away=refusal.problems[0].message)


def _queue(session: Session, target: UsageTarget) -> TargetQueue:
    engine = target.engine(session)
    cluster = engine.usage()
    if cluster is None:
        return _own_queue(session, target)
    if engine.holds:
        # Whoever looks lets runs start that waited for another one: nobody else does.
        ids = _open_ids(session.home, target)
        reconcile(session, [run_id for run_id in ids if session.home.folder(run_id).asked.after is not None])
    nodes = cluster.nodes()
    listed = [replace(job, run=own_run(session.home, job.job, job.name)) for job in cluster.queue()]
    jobs = _without_ended(session, engine, listed)
    once = {node.node: node for node in nodes}
    return TargetQueue(
        target=target.name,
        partitions=tuple(partitions(nodes)),
        jobs=tuple(jobs),
        nodes=tuple(once.values()),
        hidden=tuple(cluster.hidden()),
    )


def _without_ended(session: Session, engine: Engine, jobs: Sequence[QueuedJob]) -> list[QueuedJob]:
    """Leave out the waiting jobs of runs that have ended, and end them: nobody shall release them."""
    waiting = {job.run for job in jobs if job.run is not None and job.state == "waiting"}
    records = map(session.home.read_anyway, waiting)
    # Pilots that were stopped have not ended the run: what waits is the run itself.
    ended = {record.id for record in records if record.state in SETTLED and record.stopped_in is None}
    with session.using(engine), suppress(Refusal):
        for run_id in ended:
            for part in Run(session, run_id).parts():
                engine.clean(part.folder)
    return [job for job in jobs if job.state != "waiting" or job.run not in ended]


def own_run(home: Home, job: str, name: str) -> str | None:
    """Return the run of this home that a job is: named like it, and a task of an array is the point of its number."""
    run, task = name, job.partition("_")[2]
    if whole_number(task) is not None:
        run = f"{name}-{task}"
    if ID.fullmatch(run) and home.has(run):
        return run
    return None


def _open_ids(home: Home, target: UsageTarget) -> list[str]:
    """Return the runs of this home that went to the target and are not over."""
    home.sync()
    return [run_id for run_id in home.index.open_ids(time.time()) if home.folder(run_id).asked.target in target.aliases]


def _own_queue(session: Session, target: UsageTarget) -> TargetQueue:
    """Return the runs of this home on this machine; what else the machine does is not known."""
    records = reconcile(session, _open_ids(session.home, target))
    jobs = [_own_job(session.home.folder(record.id), record) for record in records if not record.is_final]
    running = [job for job in jobs if job.state == "running"]
    gpus = count_gpus()
    used = min(gpus, sum(job.gpus for job in running))
    node = NodeUse("local", "this machine", "part" if running else "free", gpus, used)
    return TargetQueue(target.name, tuple(partitions([node])), tuple(jobs), (node,))


def _own_job(folder: RunFolder, record: Record) -> QueuedJob:
    limit_s = _limit_s(folder)
    row = QueuedJob(
        job=record.id,
        name=record.id,
        user=getpass.getuser(),
        state="running",
        partition="local",
        nodes=record.nodes,
        gpus=folder.asked.gpus,
        tasks=max(1, folder.asked.points),
        hosts=",".join(dict.fromkeys(record.hosts)),
        starts_at=record.started_at,
        run=record.id,
    )
    if record.started_at and limit_s:
        row = replace(row, ends_at=record.started_at + limit_s)
    if record.state == "pending":
        row = replace(row, state="waiting", why=record.reason)
    return row


def _limit_s(folder: RunFolder) -> float | None:
    text = folder.asked.workload.get("time_limit")
    if not text:
        return None
    return duration_s(text)


# before


def wasted(session: Session, name: str | None = None, since_s: float = 7 * 86400.0) -> list[TargetWaste]:
    """Return what became of the GPU hours of the last `since_s` seconds, target by target."""
    return list(_each(session, name, lambda target: _wasted(session, target, since_s), TargetWaste))


def _wasted(session: Session, target: UsageTarget, since_s: float) -> TargetWaste:
    """Return the sums from the site's accounting, and where there is none from the records of own runs."""
    home, until = session.home, session.clock.time()
    cluster = target.engine(session).usage()
    past = cluster.past(since_s) if cluster else None
    if past is None:
        allocations = list(_own_allocations(session, target, until - since_s))
    else:
        allocations = [replace(row, run=own_run(home, row.job, row.name)) for row in past.allocations]
    busy = {}
    for allocation in allocations:
        gpus = _measured(home, allocation, until)
        if gpus is not None:
            busy[allocation] = gpus
    waste = sum_up(allocations, busy, past.gpus if past else None, until - since_s, until)
    goodputs = dict(_goodputs(home, allocations))
    return TargetWaste(target.name, waste, past is not None, _price(target), goodputs=goodputs)


def _goodputs(home: Home, allocations: Iterable[Allocation]) -> Iterator[tuple[str, Goodput]]:
    """Yield what the records of own runs say became of their GPUs' time."""
    for run in sorted({allocation.run for allocation in allocations if allocation.run is not None}):
        goodput = from_json(home.read_anyway(run).goodput) if home.has(run) else None
        if goodput is not None and goodput.unit == GPU:
            yield run, goodput


def _price(target: UsageTarget) -> Price | None:
    if target.pod is None or target.scheduler is None:
        return None
    from podwright.costs import pod_price

    with suppress(Refusal):  # a pod that can be used, and that nobody could build as it is written
        return pod_price(target.pod)
    return None


def _measured(home: Home, allocation: Allocation, until: float) -> float | None:
    """Return how many GPUs of an allocation were busy; None where no run of ours measured it, or it cannot be read."""
    run, began = allocation.run, allocation.started_at
    if run is None or began is None or not allocation.gpus or not home.has(run):
        return None
    try:
        return busy_gpus(home.folder(run).samples(), began, allocation.ended_at or until)
    except Unreadable:
        return None


def _own_allocations(session: Session, target: UsageTarget, since: float) -> Iterator[Allocation]:
    """Yield what this home's runs held by their own records; one that cannot be read does not hide the others."""
    for run_id in sorted(session.home.all_ids()):
        with suppress(Refusal):
            folder = session.home.folder(run_id)
            if folder.asked.points or folder.asked.target not in target.aliases or not folder.asked.gpus:
                continue
            record = reconcile(session, [run_id])[0]
            if record.started_at is not None and (record.ended_at is None or record.ended_at >= since):
                yield _own_allocation(folder, record)


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
