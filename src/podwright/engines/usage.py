"""What a target does now and did before, whatever engine is behind it: rows of its queue, its nodes and its past."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol


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


class ClusterUsage(Protocol):
    """A cluster that can be asked about all its jobs, not only about runs of ours.

    One object answers one look: what it asked for one method it need not ask again for the next.
    """

    def queue(self) -> list[QueuedJob]:
        """Return the jobs that run or wait; of those that wait also why."""

    def nodes(self) -> list[NodeUse]:
        """Return the nodes, each once for every partition that it is in."""

    def past(self, since_s: float) -> Past | None:
        """Return the jobs that ran or waited in these last seconds; None where nobody keeps account."""

    def hidden(self) -> list[str]:
        """Return what this user may not look at and `queue` and `nodes` therefore leave out, in sentences."""


def partitions(nodes: Iterable[NodeUse]) -> list[PartitionUse]:
    """Count the nodes of each partition, by name: the order in which Slurm lists them is not always the same."""
    members: dict[str, list[NodeUse]] = {}
    for node in nodes:
        members.setdefault(node.partition, []).append(node)
    return [_counted(name, group) for name, group in sorted(members.items())]


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
