"""`queue`: what runs on a target and until when, what waits and why, and what is free."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from podwright import launch, usage
from podwright.cli.options import AsJson, complete_target
from podwright.cli.terminal import figures, output, verdict
from podwright.spec.hostlist import fold_hosts

if TYPE_CHECKING:
    from podwright.usage import QueuedJob, TargetQueue

NAME_WIDTH = 24
HEADS = ("partition", "nodes", "free", "used", "away", "gpus", "gpus free", "gpus used")


TargetOrAll = Annotated[
    str | None,
    typer.Argument(
        metavar="[TARGET]",
        help="`local` or POD[:SCHEDULER]; left out: all targets there are.",
        autocompletion=complete_target,
    ),
]


def queue_command(target: TargetOrAll = None, as_json: AsJson = False) -> int:
    """Ask each target once; one that cannot be reached is named, and is the exit code."""
    with launch.Session.open() as session:
        listed = usage.queues(session, target)
    if as_json:
        output.print_json([queue.as_json() for queue in listed])
    else:
        width, now = output.width_of(sys.stdout), time.time()
        print("\n\n".join("\n".join(page(queue, now, width)) for queue in listed))
    return verdict.worst(verdict.UNREACHABLE for queue in listed if queue.away)


def page(queue: TargetQueue, now: float, width: int | None) -> Iterator[str]:
    """Lay a target out: the sentence first, then partitions, what runs, what waits."""
    if queue.away:
        yield f"{queue.target}: {queue.away}"
        return
    running = [job for job in queue.jobs if job.state == "running"]
    waiting = [job for job in queue.jobs if job.state == "waiting"]
    yield f"{queue.target}: {queue.sentence}"
    yield ""
    if queue.partitions or not queue.hidden:
        yield from output.table(HEADS, _partitions(queue))
    yield from away(queue, width)
    for sentence in queue.hidden:
        yield output.clip(sentence, width)
    if running:
        rows = [(*_who(job), until(job.ends_at, now)) for job in running]
        yield from ["", *output.table(("running", "job", "user", "nodes", "gpus", "ends"), rows, width)]
    if waiting:
        yield from ["", *_waiting(waiting, now, width)]


def away(queue: TargetQueue, width: int | None) -> Iterator[str]:
    """Name the nodes that take no jobs, those that are away for one reason on one line."""
    reasons: dict[str, list[str]] = {}
    for node in queue.nodes:
        if node.state == "away":
            reasons.setdefault(node.why, []).append(node.node)
    for why, nodes in reasons.items():
        verb = "is" if len(nodes) == 1 else "are"
        line = f"{fold_hosts(nodes)} {verb} away"
        if why:
            line += f": {why}"
        yield output.clip(line, width)


def _partitions(queue: TargetQueue) -> Iterator[Sequence[str]]:
    for partition in queue.partitions:
        nodes = (partition.nodes, partition.nodes_free, partition.nodes_used, partition.nodes_away)
        gpus = (partition.gpus, partition.gpus_free, partition.gpus_used)
        yield partition.name, *map(str, nodes), *map(str, gpus)


def _who(job: QueuedJob) -> tuple[str, ...]:
    name = job.run or job.name
    number = job.job.partition("_[")[0]
    if job.job == name:
        number = ""
    if job.tasks > 1:
        name = f"{job.tasks} x {name}"
    return output.clip(name, NAME_WIDTH), number, job.user, str(job.nodes), str(job.gpus)


def until(moment: float | None, now: float) -> str:
    """Say how far away a moment is."""
    if moment is None:
        return "no limit"
    if moment <= now:
        return "now"
    return f"in {figures.duration(float(int(moment - now)))}"


def _waiting(jobs: Sequence[QueuedJob], now: float, width: int | None) -> Iterator[str]:
    """Lay out what waits; the reason stands under the jobs that share it, where it has room."""
    # Jobs that share a reason come together, the reasons in the order in which the queue has them.
    reasons = list(dict.fromkeys(job.why for job in jobs))
    ordered = sorted(jobs, key=lambda job: reasons.index(job.why))
    rows = []
    for job in ordered:
        starts = until(job.starts_at, now) if job.starts_at else figures.NONE
        rows.append((*_who(job), starts))
    head, *lines = output.table(("waiting", "job", "user", "nodes", "gpus", "starts"), rows, width)
    yield head
    for number, (job, line) in enumerate(zip(ordered, lines, strict=True)):
        yield line
        if number + 1 == len(ordered) or ordered[number + 1].why != job.why:
            yield output.clip(f"  {job.why or 'waits for its turn'}", width)
