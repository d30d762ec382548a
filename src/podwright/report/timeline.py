"""What happened when: a lane for the run and one per node, as places on the page's time axis. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from podwright.analysis import event_text as moments
from podwright.analysis.ranks import Attempt, Story
from podwright.report.charts import MANY_NODES
from podwright.runs.events import Event, PilotStarted, RankEnded, Staged
from podwright.theme import words

_RUN_MARKS = ("checkpoint", "goal", "retry")
_NODE_MARKS = ("failed", "hang", "seen", "signal", "fenced", "given_back")
_SIGNS = {"given_back": "fenced"}
_MAX_MARKS = 400
_CLOSE = 1.0
_MARK_PX = 13
_CROWD = 60
"""From so many marks on none is moved: there is no room beside them."""

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
class TimelineBar:
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
    bars: tuple[TimelineBar, ...]
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
    """Return the drawing with its table; of more than 16 nodes only those with marks are shown at once."""
    run, nodes = _run_lane(story), _node_lanes(story)
    shown, quiet = _shown_and_quiet(nodes)
    kinds: set[str] = set()
    for lane in (run, *nodes):
        kinds |= {bar.kind for bar in lane.bars} | {mark.kind for mark in lane.marks}
    legend = tuple(row for row in LEGEND if row[1] in kinds)
    return Lanes(run, tuple(shown), tuple(quiet), legend, _rows(story))


def _shown_and_quiet(nodes: list[Lane]) -> tuple[list[Lane], list[Lane]]:
    if len(nodes) <= MANY_NODES:
        return nodes, []
    # The first node is shown in any case: it leads the run.
    shown = [lane for i, lane in enumerate(nodes) if i == 0 or lane.marks][:MANY_NODES]
    return shown, [lane for lane in nodes if lane not in shown]


def _run_lane(story: Story) -> Lane:
    bars = tuple(_attempt_bar(story, attempt) for attempt in story.attempts)
    events = [event for event in story.data.events if event.kind in _RUN_MARKS]
    return Lane("run", "", bars, _marks(story, events))


def _attempt_bar(story: Story, attempt: Attempt) -> TimelineBar:
    title = f"attempt {attempt.number}, {words.duration(attempt.end - attempt.start)}"
    if attempt.outcome:
        title += f", {attempt.outcome}"
    if attempt.why:
        title += f": {attempt.why}"
    return _bar(story, "attempt", attempt.start, attempt.end, title, f"attempt {attempt.number}")


def _node_lanes(story: Story) -> list[Lane]:
    by_node: dict[int, list[Event]] = defaultdict(list)
    for event in story.data.events:
        # Node 0 tells of ranks that failed or hung elsewhere: what counts is where.
        if event.place is not None:
            by_node[event.place].append(event)
    return [_node_lane(story, node, by_node[node]) for node in story.names]


def _node_lane(story: Story, node: int, events: Sequence[Event]) -> Lane:
    bars = [*_joining(story, events), *_staging(story, events), *_training(story, node, events)]
    marks = _marks(story, [event for event in events if event.kind in _NODE_MARKS])
    name, host = story.name(node), story.hosts.get(node, "")
    return Lane(name, "" if host == name else host, tuple(bars), marks)


def _joining(story: Story, events: Iterable[Event]) -> Iterator[TimelineBar]:
    """Yield the waits from a pilot's start, or an attempt's end, to the GO that follows."""
    goes = [attempt.start for attempt in story.attempts]
    begins = [event.time for event in events if isinstance(event, PilotStarted)]
    begins += [attempt.end for attempt in story.attempts[:-1]]
    if goes and story.data.record.is_final:
        # Nobody waits for a GO after the last of a run that is over.
        begins = [begin for begin in begins if begin < goes[-1]]
    for begin in sorted(begins):
        end = min((go for go in goes if go >= begin), default=story.span.end)
        yield _bar(story, "joining", begin, end, f"waiting for all nodes, {words.duration(end - begin)}")


def _staging(story: Story, events: Iterable[Event]) -> Iterator[TimelineBar]:
    for event in events:
        if isinstance(event, Staged) and event.took_s is not None:
            title = moments.moment(event, story).text
            yield _bar(story, "staging", event.time - event.took_s, event.time, title)


def _training(story: Story, node: int, events: Iterable[Event]) -> Iterator[TimelineBar]:
    ends: dict[tuple[int, ...], float] = {}
    for event in events:
        if isinstance(event, RankEnded):
            ends[event.epoch] = max(ends.get(event.epoch, 0.0), event.time)
    for attempt in story.attempts:
        end = ends.get(attempt.epoch, attempt.end)
        title = f"attempt {attempt.number} on {story.name(node)}: ranks ran {words.duration(end - attempt.start)}"
        yield _bar(story, "training", attempt.start, end, title)


def _bar(story: Story, kind: str, start: float, end: float, title: str, label: str = "") -> TimelineBar:
    left, right = story.span.share(start), story.span.share(max(start, end))
    return TimelineBar(kind, round(100 * left, 3), round(100 * max(right - left, 0.0), 3), title, label)


def _marks(story: Story, events: Sequence[Event]) -> tuple[Mark, ...]:
    """Return the events as marks, evenly thinned where they are so many that they would lie on one another."""
    stride = -(-len(events) // _MAX_MARKS) or 1
    return _apart([_mark(story, event) for event in events[::stride]])


def _apart(marks: Sequence[Mark]) -> tuple[Mark, ...]:
    """Place marks of one moment side by side; the last, which is the outcome, keeps its place."""
    if len(marks) >= _CROWD:
        return tuple(marks)
    placed: list[Mark] = []
    for mark in reversed(marks):
        if placed and placed[-1].left - mark.left < _CLOSE:
            mark = replace(mark, nudge=max(placed[-1].nudge - _MARK_PX, -3 * _MARK_PX))
        placed.append(mark)
    return tuple(reversed(placed))


def _mark(story: Story, event: Event) -> Mark:
    moment = moments.moment(event, story)
    sign = _SIGNS.get(event.kind, event.kind)
    left = round(100 * story.span.share(event.time), 3)
    return Mark(sign, left, f"{moment.kind} at {moment.at} ({moment.clock} UTC): {moment.text}")


def _rows(story: Story) -> tuple[moments.Moment, ...]:
    kinds = ("pilot", "staged", "go", "end", *_RUN_MARKS, *_NODE_MARKS)
    events = [event for event in story.data.events if event.kind in kinds]
    if len(story.names) > MANY_NODES:
        events = [event for event in events if event.kind not in ("pilot", "staged")]
    return tuple(moments.moment(event, story) for event in events[:_MAX_MARKS])


def boundaries(story: Story) -> list[Mapping[str, object]]:
    """Return where attempts begin, for the hairlines in every chart; a single attempt needs none."""
    if len(story.attempts) < 2:
        return []
    starts = [(round(story.span.at(attempt.start), 2), attempt.number) for attempt in story.attempts]
    return [{"at": at, "label": f"attempt {number}"} for at, number in starts]
