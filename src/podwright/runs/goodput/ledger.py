"""Takes the events of a run, in any order, and says where its time went. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from podwright.pilot.protocol import Epoch
from podwright.runs import events as kinds
from podwright.runs.events import Event, PilotEvent
from podwright.runs.goodput.account import GPU, NODE, AttemptLane, Goodput
from podwright.runs.goodput.attempts import CLOSING, AttemptMoments, Checkpoint, NodeMoments
from podwright.runs.goodput.classes import Stretch, cut, milliseconds, renamed, whole_stretch
from podwright.runs.goodput.keeping import kept_until
from podwright.runs.goodput.nodes import Held, held, inside, outside
from podwright.runs.goodput.stretches import AttemptSpan, stretches_of
from podwright.runs.states import FINAL

_OF_ATTEMPTS = (kinds.AttemptStarted, kinds.Ready, kinds.RankEnded, *CLOSING)
_MEANT = ("signal", "end")
"""What closes an attempt that a user cancelled."""
_DAY_MS = 86_400_000
"""A pilot's clock that is further behind the client's is not believed."""


class GoodputLedger:
    """What is kept of a run's events: a bounded number of moments, however many there are."""

    def __init__(self, created_at: float, nodes: int, gpus: int, spares: int = 0) -> None:
        self._created, self._nodes, self._spares = milliseconds(created_at), nodes, spares
        self._unit = GPU if gpus else NODE
        self._per_node = max(1, gpus // max(1, nodes))
        self._attempts: dict[Epoch, AttemptMoments] = {}
        self._pilots: dict[int, NodeMoments] = {}
        self._checkpoints: list[Checkpoint] = []

    def take(self, event: Event) -> None:
        """Take the next event in; results come first, since a run has a million of them."""
        if isinstance(event, kinds.ResultTold):
            self._node(event.node).hear(milliseconds(event.time))
            self._attempt(event.epoch).tellings.take(event)
        elif isinstance(event, PilotEvent):
            self._take_of_pilot(event)
        elif isinstance(event, kinds.NodeEnded) and event.at_node is not None:
            self._node(event.at_node).end(milliseconds(event.time))
        elif isinstance(event, kinds.Requeued):
            for node in self._pilots.values():
                node.leave(milliseconds(event.time))

    def _take_of_pilot(self, event: PilotEvent) -> None:
        at, node = milliseconds(event.time), self._node(event.node)
        if isinstance(event, kinds.PilotStarted):
            node.begin(max(at, self._created - _DAY_MS))
        node.hear(at)
        if isinstance(event, kinds.CheckpointSeen):
            written = min(at, milliseconds(event.written_at or event.time))
            self._checkpoints.append(Checkpoint(written, event.epoch, event.name or ""))
        elif isinstance(event, _OF_ATTEMPTS):
            self._attempt(event.epoch).take(event)
        elif self._spares and isinstance(event, kinds.RankStarted):
            self._attempt(event.epoch).trained.add(event.node)
        if isinstance(event, kinds.GivenBack):
            node.leave(at)

    def _node(self, node: int) -> NodeMoments:
        moments = self._pilots.get(node)
        if moments is None:
            moments = self._pilots[node] = NodeMoments()
        return moments

    def _attempt(self, epoch: Epoch) -> AttemptMoments:
        moments = self._attempts.get(epoch)
        if moments is None:
            moments = self._attempts[epoch] = AttemptMoments()
        return moments

    def goodput(self, until_s: float, state: str) -> Goodput | None:
        """Return where the time went until a moment: the run's end, or now; None before anything was allocated."""
        until, is_over = milliseconds(until_s), state in FINAL
        spans = self._spans(until, is_over)
        kept = kept_until(spans, self._checkpoints, state == "succeeded")
        lanes = [_lane(span, kept[span.epoch]) for span in spans]
        sums = _Sums(spans, lanes, is_over)
        for time in self._held(spans, until):
            sums.add(time)
        allocated = sum(sums.classes.values())
        if not allocated:
            return None
        wanted = max(0, until - self._created) * self._nodes
        return Goodput(
            self._unit,
            {name: value * self._per_node for name, value in sums.classes.items()},
            queue=max(0, wanted - allocated) * self._per_node,
            at_risk=sums.at_risk * self._per_node,
            interruptions=_interruptions(spans, state),
            running=sum(span.end - span.go for span in spans),
            lanes=tuple(lanes),
        )

    def held_times(self, until_s: float, state: str) -> list[Held]:
        """Return all times that a node was held: what the classes sum to."""
        until = milliseconds(until_s)
        return list(self._held(self._spans(until, state in FINAL), until))

    def _held(self, spans: Sequence[AttemptSpan], until: int) -> Iterator[Held]:
        for node in range(max([self._nodes, *(known + 1 for known in self._pilots)])):
            yield from held(node, self._pilots.get(node) or NodeMoments(), spans, until)

    def _spans(self, until: int, is_over: bool) -> list[AttemptSpan]:
        """Return the attempts one after the other: none goes beyond the next GO, nor beyond the end of the run."""
        begun = [(epoch, moments) for epoch, moments in sorted(self._attempts.items()) if moments.go is not None]
        counts = any(moments.tellings.rows for _, moments in begun)
        limits = [*(moments.go or 0 for _, moments in begun[1:]), until][: len(begun)]
        spans: list[AttemptSpan] = []
        at = 0
        for (epoch, moments), limit in zip(begun, limits, strict=True):
            go = min(max(at, moments.go or 0), until)
            is_open = len(spans) + 1 == len(begun) and not is_over and moments.closed is None
            end = max(go, min(limit, until))
            if moments.closed is not None:
                told = max((row.at for row in moments.tellings.rows), default=go)
                end = min(end, max(go, moments.closed, told))
            ready = end if moments.ready is None else min(max(go, _ready(moments, go)), end)
            spans.append(AttemptSpan(epoch, moments, go, ready, end, is_open, counts))
            at = end
        return spans


def _ready(moments: AttemptMoments, go: int) -> int:
    """Return when the ranks were there: a program that tells how long it is at work began as much earlier."""
    ready = moments.ready or go
    first = next((row for row in moments.tellings.rows if row.at >= go), None)
    return ready if first is None else min(ready, first.at - sum(first.spent))


class _Sums:
    """Adds up what the nodes were held for; an attempt that a node was in from GO to its end is added up once."""

    def __init__(self, spans: Sequence[AttemptSpan], lanes: Sequence[AttemptLane], is_over: bool) -> None:
        self._spans, self._is_over = spans, is_over
        self._lanes = {span.epoch: lane for span, lane in zip(spans, lanes, strict=True)}
        self._whole = {epoch: _classes_of(lane.stretches) for epoch, lane in self._lanes.items()}
        self.classes: Counter[str] = Counter()
        self.at_risk = 0

    def add(self, time: Held) -> None:
        """Add one time that a node was held."""
        self.classes.update(_classes_of(outside(time, self._spans, self._is_over)))
        for span in time.members(self._spans):
            lane = self._lanes[span.epoch]
            if span.moments.trained and time.node not in span.moments.trained:
                waited = inside(time, [whole_stretch(span.go, span.end, "other")])
                self.classes.update(_classes_of(waited))
                continue
            if time.begin <= span.go and span.end <= time.end:
                self.classes.update(self._whole[span.epoch])
            else:
                self.classes.update(_classes_of(inside(time, lane.stretches)))
            if span.is_open:
                self.at_risk += _at_risk(lane)


def _interruptions(spans: Sequence[AttemptSpan], state: str) -> int:
    """Return how many attempts came to an end that nobody meant."""
    closed = [span for span in spans if not span.is_open]
    was_meant = state == "succeeded" or (state == "cancelled" and closed and closed[-1].moments.closed_by in _MEANT)
    return len(closed) - bool(closed and was_meant)


def _lane(span: AttemptSpan, kept: int) -> AttemptLane:
    """Return an attempt's time; what was productive and not kept is lost, unless the attempt goes on."""
    stretches = list(chain.from_iterable(_cut_at(stretch, kept) for stretch in stretches_of(span)))
    if not span.is_open:
        stretches = [_lost(stretch) if stretch.begin >= kept else stretch for stretch in stretches]
    moments = span.moments
    return AttemptLane(moments.number, tuple(stretches), kept, "" if span.is_open else moments.closed_by)


def _lost(stretch: Stretch) -> Stretch:
    return renamed(stretch, "productive", "lost_work")


def _cut_at(stretch: Stretch, moment: int) -> list[Stretch]:
    if not stretch.begin < moment < stretch.end:
        return [stretch]
    early = cut(stretch, stretch.begin, moment)
    rest = {name: value - early.parts.get(name, 0) for name, value in stretch.parts.items()}
    return [early, Stretch(moment, stretch.end, rest)]


def _classes_of(stretches: Iterable[Stretch]) -> Counter[str]:
    classes: Counter[str] = Counter()
    for stretch in stretches:
        classes.update(stretch.parts)
    return classes


def _at_risk(lane: AttemptLane) -> int:
    return sum(stretch.parts.get("productive", 0) for stretch in lane.stretches if stretch.begin >= lane.kept_until)
