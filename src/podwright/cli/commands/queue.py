"""`queue`: what runs on a target and until when, what waits and why, and what is free."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from podwright.cli.commands.pod import complete_pod
from podwright.cli.options import AsJson
from podwright.cli.terminal import figures, output

if TYPE_CHECKING:
    from podwright.engines.usage import QueuedJob
    from podwright.usage.gather import TargetQueue

NAME_WIDTH = 24
HEADS = ("partition", "nodes", "free", "used", "away", "gpus", "gpus free", "gpus used")
UNREACHABLE = 3


def complete_target(incomplete: str) -> list[str]:
    """Gives the targets that begin like this: this machine, and known pods by name."""
    return [name for name in ("local", *complete_pod(incomplete)) if name.startswith(incomplete)]


TargetOrAll = Annotated[
    str | None,
    typer.Argument(
        metavar="[TARGET]",
        help="`local` or POD[:SCHEDULER]; left out: all targets there are.",
        autocompletion=complete_target,
    ),
]


def queue_command(target: TargetOrAll = None, as_json: AsJson = False) -> int:
    """Asks each target once; one that cannot be reached is told, and is the exit code."""
    from podwright.launch import Session
    from podwright.usage.documents import queue_document
    from podwright.usage.gather import queues

    rows = queues(Session.open(), target)
    if as_json:
        output.print_json([queue_document(queue) for queue in rows])
    else:
        width, now = output.width_of(sys.stdout), time.time()
        print("\n\n".join("\n".join(page(queue, now, width)) for queue in rows))
    return UNREACHABLE if any(queue.away for queue in rows) else 0


def page(queue: TargetQueue, now: float, width: int | None) -> Iterator[str]:
    """Lays a target out: the sentence first, then partitions, what runs, what waits."""
    if queue.away:
        yield f"{queue.target}: {queue.away}"
        return
    running = [job for job in queue.jobs if job.state == "running"]
    waiting = [job for job in queue.jobs if job.state == "waiting"]
    yield f"{queue.target}: {summary(queue)}"
    yield ""
    if queue.partitions or not queue.hidden:
        yield from output.table(HEADS, _partitions(queue))
    yield from away(queue, width)
    yield from queue.hidden
    if running:
        rows = [(*_who(job), until(job.ends_at, now)) for job in running]
        yield from ["", *output.table(("running", "job", "user", "nodes", "gpus", "ends"), rows, width)]
    if waiting:
        yield from ["", *_waiting(waiting, now, width)]


def summary(queue: TargetQueue) -> str:
    """Says in one sentence how busy a target is."""
    waiting = sum(job.tasks for job in queue.jobs if job.state == "waiting")
    running = sum(job.tasks for job in queue.jobs if job.state == "running")
    free = f"; {queue.gpus_free} of {queue.gpus} GPUs are free" if queue.gpus else ""
    verbs = f"{running} {'job runs' if running == 1 else 'jobs run'}, {waiting} {'waits' if waiting == 1 else 'wait'}"
    return verbs + free


def away(queue: TargetQueue, width: int | None) -> Iterator[str]:
    """Names the nodes that take no jobs, those that are away for one reason on one line."""
    from podwright.spec.hostlist import fold_hosts

    reasons: dict[str, list[str]] = {}
    for node in queue.nodes:
        if node.state == "away":
            reasons.setdefault(node.why, []).append(node.node)
    for why, nodes in reasons.items():
        verb = "is" if len(nodes) == 1 else "are"
        yield output.clip(f"{fold_hosts(nodes)} {verb} away{f': {why}' if why else ''}", width)


def _partitions(queue: TargetQueue) -> list[Sequence[str]]:
    return [
        (
            one.name,
            *map(str, (one.nodes, one.nodes_free, one.nodes_used, one.nodes_away)),
            *map(str, (one.gpus, one.gpus_free, one.gpus_used)),
        )
        for one in queue.partitions
    ]


def _who(job: QueuedJob) -> tuple[str, ...]:
    name = job.run or job.name
    label = f"{job.tasks} x {name}" if job.tasks > 1 else name
    own = "" if job.job == name else job.job.partition("_[")[0]
    return output.clip(label, NAME_WIDTH), own, job.user, str(job.nodes), str(job.gpus)


def until(moment: float | None, now: float) -> str:
    """Says how far away a moment is."""
    if moment is None:
        return "no limit"
    return f"in {figures.duration(float(int(moment - now)))}" if moment > now else "now"


def _waiting(jobs: Sequence[QueuedJob], now: float, width: int | None) -> Iterator[str]:
    """Lays out what waits; the reason stands under the jobs that share it, where it has room."""
    ordered = sorted(jobs, key=lambda job: [one.why for one in jobs].index(job.why))
    rows = [(*_who(job), until(job.starts_at, now) if job.starts_at else "-") for job in ordered]
    head, *lines = output.table(("waiting", "job", "user", "nodes", "gpus", "starts"), rows, width)
    yield head
    for number, (job, line) in enumerate(zip(ordered, lines, strict=True)):
        yield line
        if number + 1 == len(ordered) or ordered[number + 1].why != job.why:
            yield output.clip(f"  {job.why or 'waits for its turn'}", width)
