"""What pages of several runs share: their curves on one time axis, and the figures of what they told. Pure."""

from collections.abc import Sequence
from itertools import chain
from typing import Any

from podwright.analysis import curves
from podwright.analysis.figures import RunFigure, four, less_is_better, result
from podwright.analysis.ranks import Story
from podwright.analysis.reported import NO_CURVE
from podwright.theme import words


def payload_of(stories: Sequence[Story], labels: Sequence[str]) -> dict[str, Any]:
    """Return the data of a page of several runs: each curve is a chart with a line a run, from the start of each."""
    names: dict[str, None] = {}
    for story in stories:
        names |= dict.fromkeys(curve.name for curve in curves.curves_of(story.data))
    runs = [(story.data, story.span) for story in stories]
    overlaid = [curves.overlaid(name, runs, labels) for name in names]
    # The axis begins with the clock, or before it where a program told values before it said that it started.
    times = [0.0]
    for chart in overlaid:
        for line in chart["lines"]:
            times += line["time"]
    longest = max((story.span.at(story.span.end) for story in stories), default=1.0)
    return {"from": min(times), "to": longest, "attempts": [], "charts": [], "curves": overlaid}


def ids_of(stories: Sequence[Story]) -> list[str]:
    """Return the id of each run."""
    return [story.data.record.id for story in stories]


def result_names(stories: Sequence[Story]) -> list[str]:
    """Return the names of what the programs told, in the order they were told; progress is no result."""
    names = dict.fromkeys(chain.from_iterable(story.data.record.results for story in stories))
    return [name for name in names if name not in NO_CURVE]


def result_figure(name: str) -> RunFigure:
    """Return the figure of one value that the programs told."""
    return RunFigure(words.metric_name(name), result(name), four, less_is_better=less_is_better(name))
