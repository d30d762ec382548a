"""What a target does now and did before, whatever engine is behind it: rows of its queue, its nodes and its past."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class QueuedJob:
    """A job that runs or waits; several tasks of an array that wait together are one row."""

    job: str
    name: str
    user: str
    state: Literal["running", "waiting"]
    partition: str
    nodes: int
    gpus: int
    """Of all its nodes; of one task."""
    tasks: int = 1
    hosts: str = ""
    why: str = ""
    starts_at: float | None = None
    """When it started; of one that waits when it is expected to, where the scheduler says so."""
    ends_at: float | None = None
    """When its time is over at the latest; None: never, or nobody knows."""
    run: str | None = None
    """The run of this home that it is."""


@dataclass(frozen=True)
class NodeUse:
    """A node as a member of one partition."""

    partition: str
    node: str
    state: Literal["free", "part", "used", "away"]
    gpus: int
    gpus_used: int
    why: str = ""
    """Why it is away, as whoever took it out has said."""


@dataclass(frozen=True)
class PartitionUse:
    """The nodes and GPUs of a partition, counted; a node that is partly used is neither free nor full."""

    name: str
    nodes: int
    nodes_free: int
    nodes_used: int
    nodes_away: int
    gpus: int
    gpus_free: int
    gpus_used: int


@dataclass(frozen=True)
class Allocation:
    """GPUs that a job held, or waited for when it has not started."""

    job: str
    name: str
    user: str
    partition: str
    eligible_at: float
    started_at: float | None
    ended_at: float | None
    """None: it still runs, or waits."""
    limit_s: float | None
    nodes: int
    gpus_asked: int
    gpus: int
    """What it was given: more than it asked for when it took whole nodes."""
    run: str | None = None


@dataclass(frozen=True)
class Past:
    """What accounting tells, and how many GPUs there are to be used."""

    allocations: tuple[Allocation, ...]
    gpus: int


def partitions(nodes: Iterable[NodeUse]) -> list[PartitionUse]:
    """Counts the nodes of each partition, by name: the order in which Slurm lists them is not always the same."""
    found: dict[str, list[NodeUse]] = {}
    for node in nodes:
        found.setdefault(node.partition, []).append(node)
    return [_counted(name, members) for name, members in sorted(found.items())]


def _counted(name: str, nodes: Sequence[NodeUse]) -> PartitionUse:
    states = [node.state for node in nodes]
    return PartitionUse(
        name=name,
        nodes=len(nodes),
        nodes_free=states.count("free"),
        nodes_used=states.count("used") + states.count("part"),
        nodes_away=states.count("away"),
        gpus=sum(node.gpus for node in nodes),
        gpus_free=sum(node.gpus - node.gpus_used for node in nodes if node.state != "away"),
        gpus_used=sum(node.gpus_used for node in nodes),
    )
