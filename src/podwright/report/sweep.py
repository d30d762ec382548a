"""The points of a sweep on one page: what came out over what went in, and every point in a table. Pure."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from podwright.analysis import curves
from podwright.analysis.figures import RunFigure, cost_figure, field, four, result, results_of
from podwright.analysis.ranks import Story
from podwright.report import page, verdict
from podwright.theme import words

MANY = 8
"""More runs than this are rows of a table, not columns."""
_WIDEST = 40
"""A map has at most so many columns and rows; beyond that the table of points says it better."""
_MOST_SHADE = 70


@dataclass(frozen=True)
class Axis:
    """One thing that was varied, with its values in their order."""

    name: str
    values: tuple[Any, ...]


@dataclass(frozen=True)
class Cell:
    """One place of a map: the value, how dark it is, and the sentence that says it all."""

    text: str
    shade: int
    title: str


@dataclass(frozen=True)
class Map:
    """One figure over two things that were varied."""

    title: str
    across: Axis
    down: Axis
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]


@dataclass(frozen=True)
class Share:
    """All points that have one value of an axis: how one figure lies among them."""

    value: str
    points: int
    least: str
    middle: str
    greatest: str


def is_sweep(stories: Sequence[Story]) -> bool:
    """Whether runs are shown as points: they differ by a matrix, or are too many to stand side by side."""
    return len(stories) > MANY or bool(axes_of(stories))


def render_sweep(stories: Sequence[Story]) -> str:
    """The page of many runs: a map where two things were varied, shares where there were more, and all points."""
    axes, figures = axes_of(stories), _figures(stories)
    ranked = _ranked(stories)
    drawn = ranked[:MANY]
    names = dict.fromkeys(curve.name for story in drawn for curve in curves.curves_of(story.data))
    shown = [curves.overlaid(name, [(story.data, story.span) for story in drawn]) for name in names]
    longest = max((story.span.length_s for story in drawn), default=1.0)
    payload = {"span": longest, "start": None, "attempts": [], "charts": [], "curves": shown}
    maps = _maps(stories, axes, figures) if len(axes) == 2 else []
    shares = [(axis.name, _shares(stories, axis, figures[0])) for axis in axes] if len(axes) > 2 and figures else []
    view = {
        "title": _title(stories),
        "sentence": _sentence(stories, axes, figures),
        "states": _states(stories),
        "maps": maps,
        "repeated": len(stories) > len({str(_matrix(story)) for story in stories}),
        "shares": shares,
        "share_of": figures[0].name if figures else "",
        "axes": axes,
        "figures": figures,
        "points": [_point(story, axes, figures) for story in ranked],
        "ranked_by": _ranked_by(stories),
        "curves": [(entry["key"], entry["title"], len(entry["lines"])) for entry in shown],
        "drawn": len(drawn),
        "sections": _sections(bool(maps or shares), bool(shown)),
        "read_at": words.date_and_clock(max((story.data.read_at for story in stories), default=None)),
    }
    return page.page("sweep.html.j2", view, payload)


def _sections(mapped: bool, drawn: bool) -> list[tuple[str, str]]:
    return [
        ("verdict", "Verdict"),
        *([("map", "Over the matrix")] if mapped else []),
        ("points", "Points"),
        *([("training", "Loss and quality")] if drawn else []),
    ]


def axes_of(stories: Sequence[Story]) -> list[Axis]:
    """What differs between the points, in the order of the file; what is the same for all is no axis."""
    rows = [_matrix(story) for story in stories]
    if not all(rows):
        return []
    names = dict.fromkeys(name for row in rows for name in row)
    found = [Axis(name, _in_order([row.get(name) for row in rows])) for name in names]
    return [axis for axis in found if len(axis.values) > 1]


def _matrix(story: Story) -> Mapping[str, Any]:
    matrix = story.data.record.get("matrix")
    return matrix if isinstance(matrix, Mapping) else {}


def _in_order(values: Sequence[Any]) -> tuple[Any, ...]:
    """Numbers by size, anything else as it came."""
    unlike: list[Any] = []
    for value in values:
        if value not in unlike:
            unlike.append(value)
    return tuple(sorted(unlike) if all(_is_number(value) for value in unlike) else unlike)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _figures(stories: Sequence[Story]) -> list[RunFigure]:
    """The goal's metric first, then what the points told, then time and cost; each only where a point has it."""
    goal = curves.goal_of(stories[0].data)
    told = dict.fromkeys(name for story in stories for name in results_of(story) if name not in curves.NO_CURVE)
    names = sorted(told, key=lambda name: not (goal and name == goal.metric))
    found = [RunFigure(words.metric_name(name), result(name), four) for name in names]
    found += [RunFigure("time to train", field("time_to_train_s"), words.duration)]
    found += [RunFigure("duration", field("duration_s"), words.duration), cost_figure(stories)]
    return [figure for figure in found if any(figure.read(story) is not None for story in stories)]


def _ranked(stories: Sequence[Story]) -> list[Story]:
    """With a goal the best first, else as they were numbered; what has no value comes last."""
    goal = curves.goal_of(stories[0].data)
    if goal is None:
        return list(stories)
    read, sign = result(goal.metric), -1 if goal.at_least else 1

    def place(story: Story) -> float:
        value = read(story)
        return math.inf if value is None else sign * value

    return sorted(stories, key=place)


def _ranked_by(stories: Sequence[Story]) -> str:
    goal = curves.goal_of(stories[0].data)
    return f"best {words.metric_name(goal.metric)} first" if goal else ""


def _title(stories: Sequence[Story]) -> str:
    parents = {str(story.data.record.get("parent") or "") for story in stories}
    parent = parents.pop() if len(parents) == 1 else ""
    return (
        f"{words.count(len(stories), 'point')} of {parent}"
        if parent
        else f"{words.count(len(stories), 'run')} compared"
    )


def _sentence(stories: Sequence[Story], axes: Sequence[Axis], figures: Sequence[RunFigure]) -> str:
    """Which point did best where a goal says what is best; else between what the first figure lies."""
    goal = curves.goal_of(stories[0].data)
    known = [(value, story) for story in stories if figures and (value := figures[0].read(story)) is not None]
    if not known:
        return "None of these points told a value."
    least = min(known, key=lambda pair: pair[0])
    greatest = max(known, key=lambda pair: pair[0])
    if goal:
        value, story = greatest if goal.at_least else least
        met = "reached" if goal.reached_by(value) else "missed"
        return f"Best is {_at(story, axes)}: {figures[0].name} {figures[0].show(value)}, goal {goal.text} {met}."
    if least[0] == greatest[0]:
        return f"{figures[0].name} is {figures[0].show(least[0])} at every point."
    ends = [f"{figures[0].show(value)} at {_at(story, axes)}" for value, story in (least, greatest)]
    return f"{figures[0].name} lies between {ends[0]} and {ends[1]}."


def _at(story: Story, axes: Sequence[Axis]) -> str:
    """`x=1, y=7`, or the run's name where nothing was varied."""
    matrix = _matrix(story)
    return ", ".join(f"{axis.name}={matrix.get(axis.name)}" for axis in axes) or str(story.data.record.get("id"))


def _states(stories: Sequence[Story]) -> list[tuple[str, str]]:
    """`97 succeeded`, each state with the look of its sign."""
    counted: dict[str, list[Story]] = {}
    for story in stories:
        counted.setdefault(story.data.state, []).append(story)
    return [(state if state != "starting" else "running", f"{len(some)} {state}") for state, some in counted.items()]


def _point(story: Story, axes: Sequence[Axis], figures: Sequence[RunFigure]) -> dict[str, Any]:
    matrix, told = _matrix(story), verdict.verdict_of(story)
    values = [figure.read(story) for figure in figures]
    return {
        "id": str(story.data.record.get("id")),
        "look": told.look,
        "state": told.word,
        "sentence": told.sentence,
        "matrix": [matrix.get(axis.name) for axis in axes],
        "values": [(value, figure.show(value)) for value, figure in zip(values, figures, strict=True)],
    }


def _maps(stories: Sequence[Story], axes: Sequence[Axis], figures: Sequence[RunFigure]) -> list[Map]:
    down, across = sorted(axes, key=lambda axis: len(axis.values))
    if len(across.values) > _WIDEST:
        return []
    places: dict[tuple[str, str], list[Story]] = {}
    for story in stories:
        place = str(_matrix(story).get(down.name)), str(_matrix(story).get(across.name))
        places.setdefault(place, []).append(story)
    varied = [figure for figure in figures if len({figure.read(story) for story in stories}) > 1]
    return [_map(figure, places, down, across) for figure in varied]


def _map(figure: RunFigure, places: Mapping[tuple[str, str], Sequence[Story]], down: Axis, across: Axis) -> Map:
    told = {place: [v for story in some if (v := figure.read(story)) is not None] for place, some in places.items()}
    middles = {place: median(known) for place, known in told.items() if known}
    least, greatest = min(middles.values()), max(middles.values())

    def cell(row: Any, column: Any) -> Cell:
        place, at = (str(row), str(column)), f"{down.name}={row}, {across.name}={column}"
        some = places.get(place, ())
        if place not in middles:
            return Cell(words.NONE, 0, f"{at}: {verdict.verdict_of(some[0]).sentence if some else 'no such point'}")
        share = (middles[place] - least) / (greatest - least) if greatest > least else 0.0
        text = figure.show(middles[place])
        return Cell(
            text, round(_MOST_SHADE * share), f"{at}: {figure.name} {text} ({_spread(figure, told[place], some)})"
        )

    rows = tuple((str(row), tuple(cell(row, column) for column in across.values)) for row in down.values)
    return Map(figure.name, across, down, rows)


def _spread(figure: RunFigure, known: Sequence[float], some: Sequence[Story]) -> str:
    """Whose value it is, or of how many it is the median and how far these lie apart."""
    if len(some) == 1:
        return str(some[0].data.record.get("id"))
    return f"median of {len(known)}, {figure.show(min(known))} to {figure.show(max(known))}"


def _shares(stories: Sequence[Story], axis: Axis, figure: RunFigure) -> list[Share]:
    rows = []
    for value in axis.values:
        some = [story for story in stories if _matrix(story).get(axis.name) == value]
        known = [told for story in some if (told := figure.read(story)) is not None]
        ends = [figure.show(told) for told in (min(known), median(known), max(known))] if known else [words.NONE] * 3
        rows.append(Share(str(value), len(some), *ends))
    return rows
