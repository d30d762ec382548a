"""The moments of each attempt of a run, and of each life of its nodes, as events tell them in any order. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from podwright.pilot.protocol import Epoch
from podwright.runs import events as kinds
from podwright.runs.events import Event
from podwright.runs.goodput.classes import milliseconds
from podwright.runs.goodput.tellings import Tellings

CLOSING = (
    kinds.RankFailed,
    kinds.RankHung,
    kinds.Retry,
    kinds.GivenBack,
    kinds.LeaderLost,
    kinds.SignalReceived,
    kinds.RunEnded,
)
"""Of what may close an attempt the first counts: a failure is followed by the retry, or the end, that it led to."""


@dataclass
class AttemptMoments:
    """One GO: when its ranks were there, what they told, when and how it ended; None: not yet."""

    go: int | None = None
    number: int = 0
    ready: int | None = None
    closed: int | None = None
    closed_by: str = ""
    succeeded: bool = False
    lost_node: bool = False
    """Whether it ended because a node was gone."""
    trained: set[int] = field(default_factory=set)
    """Of a run with spares: the nodes that had ranks. The others were held for nothing else than to be there."""
    tellings: Tellings = field(default_factory=Tellings)

    def take(self, event: Event) -> None:
        """Take an event of this attempt."""
        match event:
            case kinds.AttemptStarted():
                self.go, self.number = milliseconds(event.time), event.attempt or 0
            case kinds.Ready():
                self.ready = milliseconds(event.time)
            case kinds.RankEnded() if event.code or event.signal:
                self._close(event)
            case _ if isinstance(event, CLOSING):
                self._close(event)
        if isinstance(event, kinds.Retry) and event.lost is not None:
            self.lost_node = True
        if isinstance(event, kinds.RunEnded):
            self.succeeded = event.state == "succeeded"

    def _close(self, event: Event) -> None:
        at = milliseconds(event.time)
        if self.closed is None or at < self.closed:
            self.closed, self.closed_by = at, event.kind


@dataclass
class NodeLife:
    """One pilot of a node: from its start to the last that was heard of it."""

    begin: int
    heard: int
    ended: int | None = None
    """When the keeper of this machine saw it end."""
    is_gone: bool = False
    """Whether its node was given back, or taken away, when it was last heard of."""


@dataclass
class NodeMoments:
    """The pilots of one node, one after the other."""

    lives: list[NodeLife] = field(default_factory=list)

    def begin(self, at: int) -> None:
        """Note that a pilot began; events of one node may come again, and of several files in any order."""
        if all(life.begin != at for life in self.lives):
            self.lives.append(NodeLife(at, at))
            self.lives.sort(key=lambda life: life.begin)

    def hear(self, at: int) -> None:
        """Note that the pilot of that time was heard of."""
        life = self.lives[-1] if self.lives and self.lives[-1].begin <= at else self._at(at)
        if life is not None and at > life.heard:
            life.heard = at

    def end(self, at: int) -> None:
        """Note that the process of that time is over."""
        life = self._at(at)
        if life is not None:
            life.ended = at

    def leave(self, at: int) -> None:
        """Note that the node was given back: whatever follows is another pilot's."""
        life = self._at(at)
        if life is not None:
            life.is_gone = True

    def _at(self, at: int) -> NodeLife | None:
        for life in reversed(self.lives):
            if life.begin <= at:
                return life
        return None


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint that can be restored: when it was written, in which attempt, and what its file is called."""

    at: int
    epoch: Epoch
    name: str
