"""What happened when: a lane for the run and one per node, as places on the page's time axis. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from podwright.analysis import event_text as moments
from podwright.analysis.ranks import Attempt, Story
from podwright.report.charts import MANY_NODES
from podwright.runs.events import Event, PilotStarted, RankEnded, RankFailed, RankHung, Staged
from podwright.theme import words

_RUN_MARKS = ("checkpoint", "goal", "retry")
_NODE_MARKS = ("failed", "hang", "seen", "signal", "fenced", "given_back")
_MOST_MARKS = 400
_CLOSE = 1.0

LEGEND = (
    ("bar", "staging", "staging data"),
    ("bar", "joining", "waiting for all nodes"),
    ("bar", "training", "ranks running"),
    ("mark", "checkpoint", "checkpoint"),
    ("mark", "goal", "goal reached"),
    ("mark", "retry", "retry"),
    ("mark", "failed", "rank failed"),
    ("mark", "hang", "rank hung"),
    ("mark", "seen", "device event"),
    ("mark", "signal", "signal"),
    ("mark", "fenced", "fenced or given back"),
)


@dataclass(frozen=True)
class Bar:
    """A stretch of time, in per cent of the axis."""

    kind: str
    left: float
    width: float
    title: str
    label: str = ""


@dataclass(frozen=True)
class Mark:
    """A moment, in per cent of the axis; `nudge` is in pixels, so that marks of one moment stand side by side."""

    kind: str
    left: float
    title: str
    nudge: int = 0


@dataclass(frozen=True)
class Lane:
    """One line of the drawing."""

    label: str
    note: str
    bars: tuple[Bar, ...]
    marks: tuple[Mark, ...]


@dataclass(frozen=True)
class Lanes:
    """The whole drawing: the run's lane, the nodes shown at once, the quiet ones of a large run, the signs in use."""

    run: Lane
    nodes: tuple[Lane, ...]
    quiet: tuple[Lane, ...]
    legend: tuple[tuple[str, str, str], ...]
    rows: tuple[moments.Moment, ...]


def lanes_of(story: Story) -> Lanes:
    """The drawing with its table; of more than 16 nodes only those with something to tell are shown at once."""
    run, nodes = _run_lane(story), _node_lanes(story)
    if len(nodes) > MANY_NODES:
        shown = [i for i, lane in enumerate(nodes) if i == 0 or lane.marks][:MANY_NODES]
        loud, quiet = [nodes[i] for i in shown], [lane for i, lane in enumerate(nodes) if i not in set(shown)]
    else:
        loud, quiet = nodes, []
    lanes = (run, *nodes)
    used = {bar.kind for lane in lanes for bar in lane.bars} | {mark.kind for lane in lanes for mark in lane.marks}
    legend = tuple(row for row in LEGEND if row[1] in used)
    return Lanes(run, tuple(loud), tuple(quiet), legend, _rows(story))


def _run_lane(story: Story) -> Lane:
    bars = tuple(_attempt_bar(story, attempt) for attempt in story.attempts)
    events = [event for event in story.data.events if event.kind in _RUN_MARKS]
    return Lane("run", "", bars, _marks(story, events))


def _attempt_bar(story: Story, attempt: Attempt) -> Bar:
    ended = f", {attempt.outcome}" if attempt.outcome else ""
    why = f": {attempt.why}" if attempt.why else ""
    title = f"attempt {attempt.number}, {words.duration(attempt.end - attempt.start)}{ended}{why}"
    return _bar(story, "attempt", attempt.start, attempt.end, title, f"attempt {attempt.number}")


def _node_lanes(story: Story) -> list[Lane]:
    by_node: dict[int, list[Event]] = defaultdict(list)
    for event in story.data.events:
        where = event.place if isinstance(event, RankFailed | RankHung) else event.node
        if where is not None:
            by_node[where].append(event)
    return [_node_lane(story, node, by_node[node]) for node in story.names]


def _node_lane(story: Story, node: int, events: Sequence[Event]) -> Lane:
    bars = [*_joining(story, events), *_staging(story, events), *_training(story, node, events)]
    marks = _marks(story, [event for event in events if event.kind in _NODE_MARKS])
    host = story.hosts.get(node, "")
    name = story.name(node)
    return Lane(name, host if host != name else "", tuple(bars), marks)


def _joining(story: Story, events: Iterable[Event]) -> list[Bar]:
    """From a pilot's start, or an attempt's end, to the GO that follows."""
    goes = [attempt.start for attempt in story.attempts]
    begins = [event.time for event in events if isinstance(event, PilotStarted)]
    begins += [attempt.end for attempt in story.attempts[:-1]]
    until = [(t, min((go for go in goes if go >= t), default=story.span.end)) for t in sorted(begins)]
    if story.attempts and story.data.final:
        until = [(a, b) for a, b in until if a < goes[-1]]
    return [_bar(story, "joining", a, b, f"waiting for all nodes, {words.duration(b - a)}") for a, b in until]


def _staging(story: Story, events: Iterable[Event]) -> list[Bar]:
    bars = []
    for event in events:
        if isinstance(event, Staged) and event.took_s is not None:
            title = moments.moment(event, story).text
            bars.append(_bar(story, "staging", event.time - event.took_s, event.time, title))
    return bars


def _training(story: Story, node: int, events: Sequence[Event]) -> list[Bar]:
    ends: dict[tuple[int, ...], float] = {}
    for event in events:
        if isinstance(event, RankEnded):
            ends[event.epoch] = max(ends.get(event.epoch, 0.0), event.time)
    bars = []
    for attempt in story.attempts:
        end = ends.get(attempt.epoch, attempt.end)
        title = f"attempt {attempt.number} on {story.name(node)}: ranks ran {words.duration(end - attempt.start)}"
        bars.append(_bar(story, "training", attempt.start, end, title))
    return bars


def _bar(story: Story, kind: str, start: float, end: float, title: str, label: str = "") -> Bar:
    left, right = story.span.share(start), story.span.share(max(start, end))
    return Bar(kind, round(100 * left, 3), round(100 * max(right - left, 0.0), 3), title, label)


def _marks(story: Story, events: Sequence[Event]) -> tuple[Mark, ...]:
    """The events as marks; of very many only every so-manieth, since they would lie on one another."""
    stride = -(-len(events) // _MOST_MARKS) or 1
    return _apart([_mark(story, event) for event in events[::stride]])


def _apart(marks: Sequence[Mark]) -> tuple[Mark, ...]:
    """Marks of one moment side by side; the last, which is the outcome, keeps its place."""
    placed: list[Mark] = []
    for mark in reversed(marks):
        close = bool(placed) and placed[-1].left - mark.left < _CLOSE
        placed.append(replace(mark, nudge=max(placed[-1].nudge - 13, -39)) if close and len(marks) < 60 else mark)
    return tuple(reversed(placed))


def _mark(story: Story, event: Event) -> Mark:
    told = moments.moment(event, story)
    kind = "fenced" if event.kind == "given_back" else event.kind
    left = round(100 * story.span.share(event.time), 3)
    return Mark(kind, left, f"{told.kind} at {told.at} ({told.clock} UTC): {told.text}")


def _rows(story: Story) -> tuple[moments.Moment, ...]:
    kinds = ("pilot", "staged", "go", "end", *_RUN_MARKS, *_NODE_MARKS)
    events = [event for event in story.data.events if event.kind in kinds]
    if len(story.names) > MANY_NODES:
        events = [event for event in events if event.kind not in ("pilot", "staged")]
    return tuple(moments.moment(event, story) for event in events[:_MOST_MARKS])


def boundaries(story: Story) -> list[Mapping[str, object]]:
    """Where attempts begin, for the hairlines in every chart."""
    return [
        {"at": round(attempt.start - story.span.start, 2), "label": f"attempt {attempt.number}"}
        for attempt in story.attempts
        if len(story.attempts) > 1
    ]
