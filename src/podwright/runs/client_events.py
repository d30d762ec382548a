"""The kinds of events that clients and engines write of a run: a frozen class for each."""

from __future__ import annotations

from podwright.pilot.protocol import Epoch
from podwright.runs.pilot_events import EndState, Event, Values


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
