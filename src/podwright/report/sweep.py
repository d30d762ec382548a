"""The points of a sweep on one page: what came out over what went in, and every point in a table. Pure."""

import itertools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

from podwright.analysis.failure_groups import FAILED, FailureGroup, group_failures
from podwright.analysis.figures import DURATION, TIME_TO_TRAIN, RunFigure, cost_figure, result
from podwright.analysis.ranks import Story
from podwright.analysis.statistics import as_number
from podwright.report import overlay, page, standing, verdict
from podwright.runs.events import RankFailed
from podwright.theme import words

MANY = 8
"""More runs than this are rows of a table, not columns."""
_WIDEST = 40
"""A map has at most so many columns and rows; beyond that the table of points says it better."""
_MAX_SHADE = 10
"""Shades are steps of the style sheet: a page of the console may carry no styles of its own."""
_CAUSES = 4


@dataclass(frozen=True)
class Axis:
    """One thing that was varied, with its values in their order."""

    name: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class SweepCell:
    """One place of a map: the value, how dark it is, and the sentence that says it all."""

    text: str
    shade: int
    title: str
    best: bool = False


@dataclass(frozen=True)
class FigureMap:
    """One figure over two things that were varied."""

    title: str
    across: Axis
    down: Axis
    rows: tuple[tuple[str, tuple[SweepCell, ...]], ...]
    colour: str
    """What a strong colour means."""


@dataclass(frozen=True)
class FigureSpread:
    """All points that have one value of an axis: how one figure lies among them."""

    value: str
    points: int
    least: str
    middle: str
    greatest: str


def is_sweep(stories: Sequence[Story]) -> bool:
    """Tell whether runs are shown as points: they differ by a matrix, or are too many to stand side by side."""
    return len(stories) > MANY or bool(axes_of(stories))


def render_sweep(stories: Sequence[Story]) -> str:
    """Return the page of many runs."""
    shown = sweep_view(stories)
    return page.page("sweep.html.j2", shown.view, shown.payload)


def sweep_view(stories: Sequence[Story]) -> page.RunView:
    """Return all of many runs: a map where two things were varied, spreads where there were more, all points."""
    axes, figures, failures = axes_of(stories), _figures(stories), _failures(stories)
    ranked = _ranked(stories)
    drawn = ranked[:MANY]
    labels = _labels(drawn, axes)
    payload = overlay.payload_of(drawn, labels)
    over_matrix = _over_matrix(stories, axes, figures)
    view = {
        "title": _title(stories),
        "sentence": " ".join(filter(None, [_triage(stories, failures), _sentence(stories, axes, figures)])),
        "failures": failures,
        "states": _states(stories),
        **over_matrix,
        "repeated": len(stories) > len({str(story.data.matrix) for story in stories}),
        "axes": axes,
        "figures": figures,
        "points": [_point(story, axes, figures) for story in ranked],
        "ranked_by": _ranked_by(stories),
        "curves": [(entry["key"], entry["title"], len(entry["lines"])) for entry in payload["curves"]],
        "drawn": len(drawn),
        "lines": labels,
        "sections": _sections(bool(failures), any(over_matrix.values()), bool(payload["curves"])),
        "read_at": words.date_and_clock(max((story.data.read_at for story in stories), default=None)),
    }
    return page.RunView(view, payload)


def _over_matrix(stories: Sequence[Story], axes: Sequence[Axis], figures: Sequence[RunFigure]) -> dict[str, Any]:
    """Return the maps of two axes, or the first figure along each of more; a single axis is told by the points."""
    view: dict[str, Any] = {"maps": [], "shares": [], "share_of": ""}
    if len(axes) == 2:
        view["maps"] = _maps(stories, axes, figures)
    elif len(axes) > 2 and figures:
        view["share_of"] = figures[0].name
        view["shares"] = [(axis.name, list(_spreads(stories, axis, figures[0]))) for axis in axes]
    return view


def _failures(stories: Sequence[Story]) -> list[FailureGroup]:
    return group_failures((story.data.record, story.data.of(RankFailed)) for story in stories)


def _failed(story: Story) -> bool:
    return story.data.record.state in FAILED


def _triage(stories: Sequence[Story], failures: Sequence[FailureGroup]) -> str:
    """Say how many points failed and of what, in one sentence; nothing where none did."""
    if not failures:
        return ""
    failed = sum(group.count for group in failures)
    texts = [group.text for group in failures[:_CAUSES]]
    if len(failures) > _CAUSES:
        texts.append(f"{failed - sum(group.count for group in failures[:_CAUSES])} of other causes")
    return f"{failed} of {words.count(len(stories), 'point')} failed: {', '.join(texts)}."


def _sections(failed: bool, mapped: bool, drawn: bool) -> list[tuple[str, str]]:
    sections = [("verdict", "Verdict")]
    if failed:
        sections.append(("failures", "Failures"))
    if mapped:
        sections.append(("map", "Over the matrix"))
    sections.append(("points", "Points"))
    if drawn:
        sections.append(("training", "Loss and quality"))
    return sections


def axes_of(stories: Sequence[Story]) -> list[Axis]:
    """Return what differs between the points, in the order of the file; what is the same for all is no axis."""
    rows = [story.data.matrix for story in stories]
    if not all(rows):
        return []
    names = dict.fromkeys(itertools.chain.from_iterable(rows))
    axes = [Axis(name, _in_order(rows, name)) for name in names]
    return [axis for axis in axes if len(axis.values) > 1]


def _in_order(rows: Sequence[Mapping[str, Any]], name: str) -> tuple[Any, ...]:
    """Return each value once: numbers by size, anything else as it came."""
    # A list, not a set: a value of a matrix may be a list or a mapping.
    distinct: list[Any] = []
    for row in rows:
        if row.get(name) not in distinct:
            distinct.append(row.get(name))
    if all(as_number(value) is not None for value in distinct):
        distinct.sort()
    return tuple(distinct)


def _figures(stories: Sequence[Story]) -> list[RunFigure]:
    """Return the goal's metric, then what the points told, then time and cost; each only where a point has it."""
    names = overlay.result_names(stories)
    goal = stories[0].data.goal
    if goal:
        names.sort(key=lambda name: name != goal.metric)
    figures = [overlay.result_figure(name) for name in names]
    if goal and goal.metric in names:
        figures[0] = replace(figures[0], less_is_better=not goal.at_least)
    figures += [TIME_TO_TRAIN, DURATION, cost_figure(stories)]
    return [figure for figure in figures if _known(figure, stories)]


def _known(figure: RunFigure, stories: Sequence[Story]) -> list[float]:
    """Return the values of the points that have one."""
    values = [figure.read(story) for story in stories]
    return [value for value in values if value is not None]


def _good(figure: RunFigure, stories: Sequence[Story]) -> list[float]:
    """Return the values of points that did not fail: what a failed one reported last is no result."""
    return _known(figure, [story for story in stories if not _failed(story)])


def _ranked(stories: Sequence[Story]) -> list[Story]:
    """Return the best first where there is a goal, else as they were numbered; last what has no value or failed."""
    goal = stories[0].data.goal
    if goal is None:
        return list(stories)
    read, sign = result(goal.metric), -1 if goal.at_least else 1

    def place(story: Story) -> tuple[bool, float]:
        value = read(story)
        return _failed(story), math.inf if value is None else sign * value

    return sorted(stories, key=place)


def _ranked_by(stories: Sequence[Story]) -> str:
    goal = stories[0].data.goal
    return f"best {words.metric_name(goal.metric)} first" if goal else ""


def _title(stories: Sequence[Story]) -> str:
    parents = {story.data.record.parent or "" for story in stories}
    if len(parents) == 1 and "" not in parents:
        return f"{words.count(len(stories), 'point')} of {parents.pop()}"
    return f"{words.count(len(stories), 'run')} compared"


def _sentence(stories: Sequence[Story], axes: Sequence[Axis], figures: Sequence[RunFigure]) -> str:
    """Say which point did best where a goal says what is best; else between what the first figure lies."""
    if not figures:
        return "None of these points reported a value."
    figure = figures[0]
    values, are_whole = _compared(stories, figure)
    least = min(values, key=lambda pair: pair[0])
    greatest = max(values, key=lambda pair: pair[0])
    goal = stories[0].data.goal
    if goal:
        value, story = greatest if goal.at_least else least
        met = "reached" if goal.reached_by(value) else "missed"
        lead = "Best is" if are_whole else "No point that reported it has succeeded; best so far is"
        return f"{lead} {_at(story, axes)}: {figure.name} {figure.show(value)}, goal {goal.text} {met}."
    if least[0] == greatest[0]:
        return f"{figure.name} is {figure.show(least[0])} at every point."
    ends = [f"{figure.show(value)} at {_at(story, axes)}" for value, story in (least, greatest)]
    return f"{figure.name} lies between {ends[0]} and {ends[1]}."


def _compared(stories: Sequence[Story], figure: RunFigure) -> tuple[list[tuple[float, Story]], bool]:
    """Return the points with their values, of those that succeeded where there are any, and whether these are such."""
    values = [(value, story) for story in stories if (value := figure.read(story)) is not None]
    measured = [(value, story) for value, story in values if standing.is_measured(story)]
    return measured or values, bool(measured)


def _at(story: Story, axes: Sequence[Axis]) -> str:
    """Return `x=1, y=7`, or the run's name where nothing was varied."""
    matrix = story.data.matrix
    return ", ".join(f"{axis.name}={matrix.get(axis.name)}" for axis in axes) or story.data.record.id


def _labels(stories: Sequence[Story], axes: Sequence[Axis]) -> list[str]:
    """Return what was varied, point by point; points that are alike in it have their names too."""
    labels = [_at(story, axes) for story in stories]
    ids, counts = overlay.ids_of(stories), Counter(labels)
    pairs = zip(labels, ids, strict=True)
    return [label if counts[label] == 1 else f"{label} ({run_id})" for label, run_id in pairs]


def _states(stories: Sequence[Story]) -> list[tuple[str, str]]:
    """Return `97 succeeded` and so on, each state with the look of its sign; one that starts looks as if it ran."""
    counts = Counter(story.data.record.state for story in stories)
    looks = {"starting": "running"}
    return [(looks.get(state, state), f"{count} {state}") for state, count in counts.items()]


def _point(story: Story, axes: Sequence[Axis], figures: Sequence[RunFigure]) -> dict[str, Any]:
    matrix, outcome = story.data.matrix, verdict.verdict_of(story)
    values = [figure.read(story) for figure in figures]
    return {
        "id": story.data.record.id,
        "look": outcome.look,
        "state": outcome.word,
        "sentence": outcome.sentence,
        "matrix": [matrix.get(axis.name) for axis in axes],
        "values": [(value, figure.show(value)) for value, figure in zip(values, figures, strict=True)],
    }


def _maps(stories: Sequence[Story], axes: Sequence[Axis], figures: Sequence[RunFigure]) -> list[FigureMap]:
    down, across = sorted(axes, key=lambda axis: len(axis.values))
    if len(across.values) > _WIDEST:
        return []
    points: dict[tuple[str, str], list[Story]] = {}
    for story in stories:
        matrix = story.data.matrix
        position = str(matrix.get(down.name)), str(matrix.get(across.name))
        points.setdefault(position, []).append(story)
    return [_map(figure, points, down, across) for figure in figures if _differs(figure, stories)]


def _differs(figure: RunFigure, stories: Sequence[Story]) -> bool:
    return bool(_good(figure, stories)) and len(set(map(figure.read, stories))) > 1


def _map(figure: RunFigure, points: Mapping[tuple[str, str], Sequence[Story]], down: Axis, across: Axis) -> FigureMap:
    values = {position: _good(figure, stories) for position, stories in points.items()}
    medians = {position: median(known) for position, known in values.items() if known}
    least, greatest = min(medians.values()), max(medians.values())
    best = _best_place(figure, points, medians)
    turned = bool(figure.less_is_better)

    def cell(row: Any, column: Any) -> SweepCell:
        position = str(row), str(column)
        at = f"{down.name}={row}, {across.name}={column}"
        stories = points.get(position, ())
        if position not in medians:
            reason = verdict.verdict_of(stories[0]).sentence if stories else "no such point"
            return SweepCell(words.NONE, 0, f"{at}: {reason}")
        text = figure.show(medians[position])
        title = f"{at}: {figure.name} {text} ({_spread(figure, values[position], stories)})"
        if position == best:
            title += ", the best"
        return SweepCell(text, _shade(medians[position], least, greatest, turned), title, position == best)

    def cells(row: Any) -> tuple[SweepCell, ...]:
        return tuple(cell(row, column) for column in across.values)

    rows = tuple((str(row), cells(row)) for row in down.values)
    return FigureMap(figure.name, across, down, rows, _colour(figure, best))


def _best_place(
    figure: RunFigure, points: Mapping[tuple[str, str], Sequence[Story]], medians: Mapping[tuple[str, str], float]
) -> tuple[str, str] | None:
    """Return where the figure is best, among positions where a point succeeded; None where nobody said what is good."""
    measured = [position for position in medians if any(map(standing.is_measured, points[position]))]
    if figure.less_is_better is None or not measured:
        return None
    return (min if figure.less_is_better else max)(measured, key=lambda position: medians[position])


def _colour(figure: RunFigure, best: object) -> str:
    if figure.less_is_better is None:
        return "the stronger the colour, the more"
    return "the stronger the colour, the better" + ("; the best has a frame" if best else "")


def _shade(value: float, least: float, greatest: float, turned: bool) -> int:
    # Where all are equal, each is the least.
    share = (value - least) / ((greatest - least) or 1.0)
    if turned:
        share = 1.0 - share
    return round(_MAX_SHADE * share)


def _spread(figure: RunFigure, known: Sequence[float], stories: Sequence[Story]) -> str:
    """Say whose value it is, or of how many it is the median and how far these lie apart."""
    if len(stories) == 1:
        return stories[0].data.record.id
    return f"median of {len(known)}, {figure.show(min(known))} to {figure.show(max(known))}"


def _spreads(stories: Sequence[Story], axis: Axis, figure: RunFigure) -> Iterator[FigureSpread]:
    for value in axis.values:
        points = [story for story in stories if story.data.matrix.get(axis.name) == value]
        known = _known(figure, points)
        ends = [figure.show(end(known)) for end in (min, median, max)] if known else [words.NONE] * 3
        yield FigureSpread(str(value), len(points), *ends)
