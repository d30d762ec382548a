"""Who took part in a run, where, and when: ranks, nodes, attempts, the span of time. Pure."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from podwright.analysis.data import Event, ReportData
from podwright.theme import words


@dataclass(frozen=True)
class Span:
    """From the first thing known of a run to the last, in Unix seconds: the one time axis of the page."""

    start: float
    end: float

    @property
    def length_s(self) -> float:
        """How long it is, never zero, so that it can be divided by."""
        return max(self.end - self.start, 1e-3)

    def share(self, t: float) -> float:
        """Where a moment lies in the span, 0 to 1."""
        return min(1.0, max(0.0, (t - self.start) / self.length_s))


@dataclass(frozen=True)
class Rank:
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
    """The page's time axis: what pilots wrote. Waiting in a queue before the first of them is not on it."""
    times = [float(event["t"]) for event in data.events if "n" in event]
    times += [t for track in data.readings.values() if len(track.t) for t in (track.t[0], track.t[-1])]
    if not times:
        began = words.unix(data.record.get("started_at") or data.record.get("created_at"))
        return Span(began or data.read_at, began or data.read_at)
    return Span(min(times), max(times))


def hosts_by_node(data: ReportData) -> dict[int, str]:
    """The host of every node that was heard of; the latest word counts."""
    hosts = dict(enumerate(_texts(data.record.get("hosts"))))
    for event in data.of_kind("go"):
        hosts |= dict(enumerate(_texts(event.get("hosts"))))
    for event in data.of_kind("pilot"):
        hosts[int(event.get("n") or 0)] = str(event.get("host") or "")
    for node, _ in data.readings:
        hosts.setdefault(node, "")
    return dict(sorted(hosts.items()))


def _texts(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list | tuple) else []


def node_names(hosts: Mapping[int, str]) -> dict[int, str]:
    """What each node is called: its host, or its number when several nodes share a host, as on one machine."""
    times = Counter(hosts.values())
    return {node: host if host and times[host] == 1 else f"node {node}" for node, host in hosts.items()}


def attempts_of(data: ReportData, span: Span) -> list[Attempt]:
    """Every attempt with its end: the first retry, failure, hang or end after its GO, else the next GO."""
    goes = data.of_kind("go")
    return [_attempt(data, goes, i, span) for i in range(len(goes))]


def _attempt(data: ReportData, goes: Sequence[Event], i: int, span: Span) -> Attempt:
    go, last = goes[i], i == len(goes) - 1
    start = float(go.get("t") or span.start)
    until = span.end if last else float(goes[i + 1].get("t") or span.end)
    closing = [
        e for e in data.of_kind("failed", "hang", "given_back", "fenced", "end", "retry") if _within(e, start, until)
    ]
    first = closing[0] if closing else None
    outcome = str(first["k"]) if first else ("" if last else "ended")
    if outcome == "end" and first:
        outcome = str(first.get("state") or "ended").replace("terminated", "stopped")
    why = str((first or {}).get("why") or (first or {}).get("reason") or "")
    epoch = tuple(int(part) for part in go.get("e") or ())
    end = float(first["t"]) if first else until
    return Attempt(int(go.get("attempt") or i + 1), start, end, outcome, why, _whole(go.get("world_size")), epoch)


def _within(event: Event, start: float, until: float) -> bool:
    return start <= float(event.get("t") or 0.0) <= until


def _whole(value: object) -> int | None:
    return int(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def ranks_of(data: ReportData) -> list[Rank]:
    """The ranks as they were last started, by rank, with how each ended."""
    ends = {event.get("rank"): event for event in data.of_kind("rank_end")}
    starts = {event.get("rank"): event for event in data.of_kind("rank")}
    ranks = [key for key in starts if isinstance(key, int)]
    hosts = hosts_by_node(data)
    names = node_names(hosts)
    return [_rank(starts[key], ends.get(key), hosts, names) for key in sorted(ranks)]


def _rank(start: Event, end: Event | None, hosts: Mapping[int, str], names: Mapping[int, str]) -> Rank:
    node = int(start.get("n") or 0)
    cores = start.get("cores")
    return Rank(
        rank=int(start["rank"]),
        node=node,
        name=names.get(node, f"node {node}"),
        host=hosts.get(node) or words.NONE,
        pid=_shown(start.get("pid")),
        cores=words.fold(int(core) for core in cores) if isinstance(cores, list) and cores else words.NONE,
        gpu=_whole(start.get("gpu")),
        numa=_shown(start.get("numa")),
        nics=", ".join(_texts(start.get("nics"))) or words.NONE,
        exit=exit_words(end) if end and float(end.get("t") or 0) >= float(start.get("t") or 0) else words.NONE,
    )


def _shown(value: object) -> str:
    return words.NONE if value is None or value == "" else str(value)


def exit_words(event: Event) -> str:
    """How a process ended: `0`, `1`, `SIGKILL`, with how long it ran."""
    signal = event.get("signal")
    how = str(signal) if signal else str(event.get("code"))
    after = event.get("after_s")
    return f"{how} after {words.duration(float(after))}" if isinstance(after, int | float) else how


@dataclass(frozen=True)
class Story:
    """A run's data with what every part of the page asks of it, worked out once."""

    data: ReportData
    span: Span
    hosts: Mapping[int, str]
    names: Mapping[int, str]
    ranks: Sequence[Rank]
    attempts: Sequence[Attempt]

    def name(self, node: object) -> str:
        """What a node is called, whatever an event says it is."""
        return self.names.get(node, f"node {node}") if isinstance(node, int) else words.NONE


def story_of(data: ReportData) -> Story:
    """Everything about who, where and when, from the events."""
    span, hosts = span_of(data), hosts_by_node(data)
    return Story(data, span, hosts, node_names(hosts), ranks_of(data), attempts_of(data, span))
