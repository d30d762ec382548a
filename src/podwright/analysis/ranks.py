"""Who took part in a run, where, and when: ranks, nodes, attempts, the span of time. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from podwright.analysis.data import ReportData
from podwright.pilot.protocol import node_names
from podwright.runs.events import (
    AttemptStarted,
    EngineEnded,
    Event,
    Fenced,
    GivenBack,
    PilotEvent,
    PilotStarted,
    RankEnded,
    RankFailed,
    RankHung,
    RankStarted,
    Retry,
    RunEnded,
)
from podwright.runs.training_clock import TrainingClock
from podwright.theme import words


@dataclass(frozen=True)
class Span:
    """From the first thing known of a run to the last, in Unix seconds: the one time axis of the page.

    The page counts from `zero`, where the clock of time to train starts; what came before has a time below zero.
    """

    start: float
    end: float
    zero: float

    @property
    def length_s(self) -> float:
        """Return how long it is, never zero, so that it can be divided by."""
        return max(self.end - self.start, 1e-3)

    def at(self, t: float) -> float:
        """Return when a moment was, in seconds by the clock of time to train."""
        return t - self.zero

    def share(self, t: float) -> float:
        """Return where a moment lies in the span, 0 to 1."""
        return min(1.0, max(0.0, (t - self.start) / self.length_s))


@dataclass(frozen=True)
class RankSummary:
    """One rank of the last attempt."""

    rank: int
    node: int
    name: str
    host: str
    pid: str
    cores: str
    gpu: int | None
    numa: str
    nics: str
    exit: str


@dataclass(frozen=True)
class Attempt:
    """One GO and how it ended; `why` is empty while it lasts or when it was the last."""

    number: int
    start: float
    end: float
    outcome: str
    why: str
    world_size: int | None
    epoch: tuple[int, ...]


def span_of(data: ReportData) -> Span:
    """Return the page's time axis: what pilots wrote. Waiting in a queue before the first of them is not on it."""
    began = clock_of(data).began or data.record.started_at
    times = [event.time for event in data.of(PilotEvent)]
    for track in data.readings.values():
        times += [*track.t[:1], *track.t[-1:]]
    for points in data.told.curves.values():
        times += [point.t for point in (*points[:1], *points[-1:])]
    if not times:
        moment = began or data.record.created_at or data.read_at
        return Span(moment, moment, moment)
    return Span(min(times), max(times), began or min(times))


def clock_of(data: ReportData) -> TrainingClock:
    """Return the clock of time to train as the events tell it."""
    clock = TrainingClock()
    for event in data.events:
        clock = clock.after(event)
    return clock


def hosts_by_node(data: ReportData) -> dict[int, str]:
    """Return the host of every node that was heard of; the latest word counts."""
    hosts = dict(enumerate(data.record.hosts))
    for go in data.of(AttemptStarted):
        hosts |= dict(enumerate(go.hosts))
    for pilot in data.of(PilotStarted):
        hosts[pilot.node] = pilot.host
    for node, _ in data.readings:
        hosts.setdefault(node, "")
    return dict(sorted(hosts.items()))


def attempts_of(data: ReportData, span: Span) -> list[Attempt]:
    """Return every attempt with its end: the first retry, failure, hang or end after its GO, else the next GO."""
    goes = data.of(AttemptStarted)
    return [_attempt(data, goes, i, span) for i in range(len(goes))]


def _attempt(data: ReportData, goes: Sequence[AttemptStarted], i: int, span: Span) -> Attempt:
    go, until, outcome = goes[i], span.end, ""
    if i + 1 < len(goes):
        until, outcome = goes[i + 1].time, "ended"
    # Of what may close an attempt the first counts: a failure is followed by the retry, or by the end, that it led to.
    closing: list[Event] = [event for event in data.of(*_CLOSING) if go.time <= event.time <= until]
    why = ""
    if closing:
        until = closing[0].time
        outcome, why = _closed_by(closing[0])
    return Attempt(go.attempt or i + 1, go.time, until, outcome, why, go.world_size, go.epoch)


_CLOSING: tuple[type[Event], ...] = (RankFailed, RankHung, GivenBack, Fenced, RunEnded, EngineEnded, Retry)


def _closed_by(event: Event) -> tuple[str, str]:
    """Return how an attempt ended, by what closed it, and why."""
    match event:
        case RunEnded() | EngineEnded():
            return event.state.replace("terminated", "stopped"), event.reason
        case RankFailed() | RankHung() | GivenBack() | Retry():
            return event.kind, event.why or ""
        case _:
            return event.kind, ""


def ranks_of(data: ReportData) -> list[RankSummary]:
    """Return the ranks as they were last started, by rank, with how each ended."""
    ends = {event.rank: event for event in data.of(RankEnded)}
    starts = {event.rank: event for event in data.of(RankStarted)}
    hosts = hosts_by_node(data)
    names = node_names(hosts)
    return [_rank(starts[rank], ends.get(rank), hosts, names) for rank in sorted(starts)]


def _rank(start: RankStarted, end: RankEnded | None, hosts: Mapping[int, str], names: Mapping[int, str]) -> RankSummary:
    ended = words.NONE
    if end is not None and end.time >= start.time:
        ended = exit_words(end)
    return RankSummary(
        rank=start.rank,
        node=start.node,
        name=names.get(start.node, f"node{start.node}"),
        host=hosts.get(start.node) or words.NONE,
        pid=_shown(start.pid),
        cores=words.fold(start.cores) or words.NONE,
        gpu=start.gpu,
        numa=_shown(start.numa),
        nics=", ".join(start.nics) or words.NONE,
        exit=ended,
    )


def _shown(value: int | None) -> str:
    if value is None:
        return words.NONE
    return str(value)


def exit_words(event: RankEnded) -> str:
    """Return how a process ended: `0`, `1`, `SIGKILL`, with how long it ran."""
    how = event.signal or str(event.code)
    if event.after_s is None:
        return how
    return f"{how} after {words.duration(event.after_s)}"


@dataclass(frozen=True)
class Story:
    """A run's data with what every part of the page asks of it, worked out once."""

    data: ReportData
    span: Span
    hosts: Mapping[int, str]
    names: Mapping[int, str]
    ranks: Sequence[RankSummary]
    attempts: Sequence[Attempt]
    clock: TrainingClock

    def shares_host(self, node: int) -> bool:
        """Return whether another node of the run is on the same machine."""
        host = self.hosts.get(node)
        return bool(host) and list(self.hosts.values()).count(str(host)) > 1

    @property
    def is_one_local_node(self) -> bool:
        """Return whether the run is one node on the machine it was started from, among whatever else runs there."""
        return self.data.asked.engine == "local" and len(self.hosts) == 1

    def name(self, node: int | None) -> str:
        """Return what a node is called."""
        if node is None:
            return words.NONE
        return self.names.get(node, f"node{node}")


def story_of(data: ReportData) -> Story:
    """Work out everything about who, where and when from the events."""
    span, hosts = span_of(data), hosts_by_node(data)
    names, ranks, attempts = node_names(hosts), ranks_of(data), attempts_of(data, span)
    return Story(data, span, hosts, names, ranks, attempts, clock_of(data))
