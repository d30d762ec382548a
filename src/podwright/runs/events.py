"""The kinds of events of a run, a frozen class for each: those that pilots write, then those of clients and engines.

A field without a default is one that an event means nothing without; any other may be missing (`runs/event_reader.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from inspect import get_annotations
from typing import Any, ClassVar, NoReturn, dataclass_transform

from podwright.pilot.protocol import KEY_EPOCH, KEY_NODE, KEY_TIME, KEY_VALUES, Epoch

EndState = str
"""How pilots or an engine ended a run: a key of `runs.states.BY_END`."""
Values = dict[str, float]
Rows = tuple[Mapping[str, str | float], ...]


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Frozen:
    """A frozen class with named fields; a type checker knows it as a dataclass.

    `dataclass` itself writes and compiles methods for every class: for all kinds of events that would take longer than
    all other imports of this folder together, at the start of every command. Here a default is an attribute of the
    class, and only the fields that are told are stored.
    """

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__} is frozen")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.as_dict() == other.as_dict()

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({values})"

    def as_dict(self) -> dict[str, Any]:
        """Return all fields by name."""
        return {name: getattr(self, name) for name in fields_of(type(self))}


def fields_of(kind: type[Frozen]) -> Mapping[str, tuple[str, bool]]:
    """Return the fields of a class in order, each with its type as it is written and whether it has no default."""
    known: dict[str, tuple[str, bool]] = {}
    for owner in reversed(kind.__mro__):
        for name, written in get_annotations(owner).items():
            if not written.startswith("ClassVar"):
                known[name] = (written, name not in vars(owner))
    return known


class Event(Frozen):
    """What every event has; `epoch` and `node` are None where no pilot speaks of itself."""

    kind: ClassVar[str] = ""
    time: float
    epoch: Epoch | None = None
    node: int | None = None
    sequence: int = 0

    @property
    def place(self) -> int | None:
        """Return the node that the event is about: the one that wrote it, unless the event names another."""
        return self.node


class PilotEvent(Event):
    """An event of a pilot, which knows its epoch and node."""

    epoch: Epoch
    node: int


class PilotStarted(PilotEvent):
    """A pilot began on a node, with what it found there."""

    kind = "pilot"
    host: str = ""
    pid: int | None = None
    restart: int | None = None
    version: str = ""
    python: str = ""
    kernel: str = ""
    cpus: int | None = None
    memory_bytes: float | None = None
    gpus: Rows = ()
    driver: str = ""
    nics: tuple[str, ...] = ()


class Staged(PilotEvent):
    """Code or data is on the node."""

    kind = "staged"
    what: str | None = None
    size_bytes: float | None = None
    took_s: float | None = None
    files: int | None = None
    reused: float | None = None
    """Of the bytes of data: those that the node's cache had."""
    from_source: float | None = None
    from_peers: float | None = None


class StagingProgress(PilotEvent):
    """Data is on its way to the node: how much of it is there."""

    kind = "staging"
    size_bytes: float | None = None
    of: float | None = None
    reused: float | None = None
    from_source: float | None = None
    from_peers: float | None = None


class Joined(PilotEvent):
    """A node joined its leader."""

    kind = "joined"
    at_node: int | None = None
    host: str | None = None
    of: int | None = None

    @property
    def place(self) -> int | None:
        """Return the node that joined."""
        return self.at_node


class AttemptStarted(PilotEvent):
    """All nodes are there: an attempt begins."""

    kind = "go"
    hosts: tuple[str, ...]
    attempt: int | None = None
    world_size: int | None = None
    took_s: float | None = None
    master_addr: str = ""
    master_port: int | None = None
    retries_left: int | None = None
    waiting: tuple[int, ...] = ()
    """The spares: nodes that have no part in this attempt."""


class RankStarted(PilotEvent):
    """A rank's process was started, bound to these places."""

    kind = "rank"
    rank: int
    local_rank: int | None = None
    pid: int | None = None
    cores: tuple[int, ...] = ()
    gpu: int | None = None
    numa: int | None = None
    nics: tuple[str, ...] = ()


class Ready(PilotEvent):
    """Every rank's shim was seen."""

    kind = "ready"
    world_size: int | None = None


class ResultTold(PilotEvent):
    """The program told numbers; `mllog` is the key of the MLLOG line, empty for any other."""

    kind = "result"
    rank: int
    values: Values
    mllog: str = ""


class GoalReached(PilotEvent):
    """The metric of the workload's goal is good enough for the first time."""

    kind = "goal"
    metric: str | None = None
    value: float | None = None
    took_s: float | None = None


class CheckpointSeen(PilotEvent):
    """A newer checkpoint lies in its folder."""

    kind = "checkpoint"
    name: str | None = None
    size_bytes: float | None = None
    written_at: float | None = None
    """When its file was written, Unix seconds; it is seen a little later."""


class RankEnded(PilotEvent):
    """A rank's process is over."""

    kind = "rank_end"
    rank: int
    code: int | None = None
    signal: str | None = None
    after_s: float | None = None


class RankFailed(PilotEvent):
    """A rank, or with no rank a node, failed; the others were stopped."""

    kind = "failed"
    rank: int | None = None
    at_node: int | None = None
    host: str | None = None
    code: int | None = None
    signal: str | None = None
    after_s: float | None = None
    why: str = ""
    tail: tuple[str, ...] = ()
    stopped: tuple[int, ...] = ()

    @property
    def place(self) -> int | None:
        """Return the node of the rank that failed."""
        return self.at_node


class RankHung(PilotEvent):
    """A rank was silent for too long."""

    kind = "hang"
    rank: int | None = None
    at_node: int | None = None
    silent_s: float | None = None
    why: str = ""

    @property
    def place(self) -> int | None:
        """Return the node of the rank that hung."""
        return self.at_node


class SlowFound(PilotEvent):
    """A rank was slower than the others by what the run allows: its node gives its place to a spare, or `stays`."""

    kind = "slow"
    rank: int | None = None
    at_node: int | None = None
    host: str = ""
    slower_by: float | None = None
    evidence: str = ""
    stays: str = ""

    @property
    def place(self) -> int | None:
        """Return the node of that rank."""
        return self.at_node

    @property
    def text(self) -> str:
        """Return it in a sentence."""
        follows = f"it stays: {self.stays}" if self.stays else "a spare takes the place of its node"
        return f"rank {self.rank} is slower by {self.slower_by or 0:.0%}: {self.evidence}; {follows}"


class Retry(PilotEvent):
    """The attempt is over and the next one comes."""

    kind = "retry"
    attempt: int | None = None
    why: str = ""
    lost: int | None = None
    rank: int | None = None
    host: str = ""
    exception: str = ""


class DeviceSeen(PilotEvent):
    """A device, the kernel or a disk gave a sign."""

    kind = "seen"
    what: str | None = None
    device: str = ""
    value: float | None = None
    text: str = ""


class SensorBroken(PilotEvent):
    """A sensor cannot be read; told once."""

    kind = "sensor"
    name: str | None = None
    error: str | None = None


class RdmaFacts(PilotEvent):
    """What decides whether memory can be pinned on the node."""

    kind = "rdma"
    memlock_bytes: int | None = None
    capabilities: tuple[str, ...] = ()


class SignalReceived(PilotEvent):
    """Somebody sent the pilot a signal."""

    kind = "signal"
    name: str | None = None


class Fenced(PilotEvent):
    """A newer attempt holds the lease: this pilot gave way."""

    kind = "fenced"
    by: Epoch | None = None
    job: str | None = None


class LeaderLost(PilotEvent):
    """A node heard nothing more of its leader and ended its ranks: the attempt is over, and waits for another."""

    kind = "alone"
    why: str | None = None


class GivenBack(PilotEvent):
    """The nodes were given back to the engine."""

    kind = "given_back"
    why: str | None = None


class Thinned(PilotEvent):
    """Not all of the record is shipped any more."""

    kind = "thinned"
    what: str | None = None
    from_s: float | None = None
    to_s: float | None = None
    text: str = ""


class SoftwareFound(PilotEvent):
    """What the ranks of a node start with; the first node names all packages, as `name==version`, and modules."""

    kind = "software"
    python: str = ""
    torch: str = ""
    cuda: str = ""
    nccl: str = ""
    cudnn: str = ""
    packages: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    prefix: str = ""
    """Where the Python is installed that the ranks start with."""
    digest: str = ""
    """Of the packages: a node whose digest is another has others."""


class RankStack(PilotEvent):
    """Where a rank was that hung: what its Python printed as it was ended."""

    kind = "stack"
    rank: int
    lines: tuple[str, ...] = ()


class Recognised(PilotEvent):
    """Values were found in what a rank wrote for people: by a pattern of `results:`, or by a common form."""

    kind = "recognised"
    rank: int | None = None
    names: Rows = ()
    """Of each: its name, and how it was found."""


class FilesKept(PilotEvent):
    """What ranks left in the folder they started in was kept as `results/workdir`."""

    kind = "workdir"
    files: int | None = None
    size_bytes: float | None = None
    left: Rows = ()
    """Of what was left out: path and why, the first of many."""
    left_count: int = 0
    took_s: float | None = None


class RunEnded(PilotEvent):
    """The pilots' own last word."""

    kind = "end"
    state: EndState
    reason: str = ""
    exit_code: int | None = None


class EngineEnded(Event):
    """An engine's last word on a run, told by its keeper or by a client that asked it."""

    kind = "end"
    pid: int | None = None
    state: EndState
    reason: str = ""
    code: int | None = None


class ClientEvent(Event):
    """What a client did or saw; `pid` is the client's."""

    pid: int | None = None


class Created(ClientEvent):
    """The run's folder was written."""

    kind = "created"


class Submitted(ClientEvent):
    """The engine took the run and calls it so."""

    kind = "submitted"
    handle: str


class Waiting(ClientEvent):
    """Why the engine has not started it yet."""

    kind = "waiting"
    why: str


class FoundIdle(ClientEvent):
    """No part of the run's attempt was at work when a client first looked."""

    kind = "idle"
    why: str = ""


class Requeued(ClientEvent):
    """The engine has the run again."""

    kind = "requeued"
    epoch: Epoch
    why: str = ""


class FoundGone(ClientEvent):
    """The engine did not know the run's attempt any more when a client first looked."""

    kind = "gone"
    why: str = ""


class CancelAsked(ClientEvent):
    """A user wants the run to end."""

    kind = "cancel"


class Lost(ClientEvent):
    """Nobody knows of the run any more."""

    kind = "lost"
    why: str = ""


class Gap(ClientEvent):
    """Something is missing: of the record, or of what the target should have given the run."""

    kind = "gap"
    text: str


class CostReckoned(ClientEvent):
    """What the run cost, computed when it was over."""

    kind = "cost"
    amount: float
    currency: str
    origin: str = ""


class EventFilesRead(ClientEvent):
    """Event files of TensorBoard hold values that no rank told: the last of each name."""

    kind = "event_files"
    values: Values


class TagsChanged(ClientEvent):
    """A user tagged the run, or took tags away."""

    kind = "tags"
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()


class NoteWritten(ClientEvent):
    """A user wrote a note on the run, in place of the one it had."""

    kind = "note"
    text: str


class TargetSilent(ClientEvent):
    """The target did not answer a client; `since` when it was asked first."""

    kind = "silent"
    since: float
    why: str = ""


class TargetAnswered(ClientEvent):
    """The target answers again."""

    kind = "answered"


class KeeperStarted(Event):
    """The keeper of a run on one machine is at work."""

    kind = "kept"
    pid: int | None = None
    job: str | None = None


class NodeStarted(Event):
    """The keeper started a node's pilot."""

    kind = "node"
    at_node: int | None = None
    restart: int | None = None
    pid: int | None = None


class NodeEnded(Event):
    """A node's pilot is over."""

    kind = "node_end"
    at_node: int | None = None
    restart: int | None = None
    code: int | None = None
    signal: str | None = None


@dataclass(frozen=True)
class Sample:
    """What the sensors of a node read at one moment, by metric name."""

    time: float
    epoch: Epoch
    node: int
    values: Mapping[str, float]

    def as_row(self) -> dict[str, Any]:
        """Return the sample as pilots write it."""
        return {KEY_TIME: self.time, KEY_NODE: self.node, KEY_EPOCH: list(self.epoch), KEY_VALUES: dict(self.values)}
