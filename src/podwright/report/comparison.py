"""Several runs side by side, the first that succeeded as the measure of the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from podwright.analysis import curves
from podwright.analysis.data import ReportData
from podwright.analysis.figures import DURATION, TIME_TO_TRAIN, RunFigure, cost_figure, field, four
from podwright.analysis.ranks import Story, story_of
from podwright.reading.run_data import gather
from podwright.report import overlay, page, standing, verdict
from podwright.report.sweep import is_sweep, render_sweep, sweep_view
from podwright.theme import words

if TYPE_CHECKING:
    from podwright.launch import Run

_MINUS = "\u2212"


@dataclass(frozen=True)
class Compared:
    """One value of one run, and how it differs from that of the measure; None where nothing is compared."""

    value: str
    difference: str | None = None


@dataclass(frozen=True)
class ComparisonRow:
    """One figure of all runs."""

    name: str
    cells: tuple[Compared, ...]

    @property
    def has_value(self) -> bool:
        """Tell whether any run has a value of this figure."""
        return any(cell.value != words.NONE for cell in self.cells)


def render_comparison(runs: Sequence[ReportData]) -> str:
    """Return the page that shows runs side by side, or many of them as points."""
    stories = [story_of(data) for data in runs]
    if is_sweep(stories):
        return render_sweep(stories)
    shown = comparison_view(stories)
    return page.page("comparison.html.j2", shown.view, shown.payload)


def comparison_view(stories: Sequence[Story]) -> page.RunView:
    """Return all of a few runs side by side, measured against the first of them that succeeded."""
    payload, measure = overlay.payload_of(stories, overlay.ids_of(stories)), standing.measure_of(stories)
    view = {
        "title": f"{words.count(len(stories), 'run')} compared",
        "sentence": standing.sentence_of(stories),
        "measure": measure,
        "runs": [_head(i, story, measure) for i, story in enumerate(stories)],
        "rows": _rows(stories, measure),
        "curves": [_table(entry["key"], stories) for entry in payload["curves"]],
        "lines": overlay.ids_of(stories),
        "sections": [("verdict", "Verdict"), ("figures", "Figures"), ("training", "Loss and quality")],
        "read_at": words.date_and_clock(max((story.data.read_at for story in stories), default=None)),
    }
    return page.RunView(view, payload)


def view_of_points(runs: Sequence[Run]) -> page.RunView:
    """Return what the pages of others than the report show of the points of a sweep."""
    return sweep_view(_stories(runs))


def view_of_runs(runs: Sequence[Run]) -> page.RunView:
    """Return what the pages of others than the report show of a few runs side by side."""
    return comparison_view(_stories(runs))


def _stories(runs: Sequence[Run]) -> list[Story]:
    for run in runs:
        run.folder.refuse_stray()
    return [story_of(gather(run.folder.path)) for run in runs]


def _head(i: int, story: Story, measure: int | None) -> dict[str, Any]:
    return {
        "line": i,
        "id": story.data.record.id,
        "verdict": verdict.verdict_of(story),
        "state": story.data.record.state,
        "compared": _is_compared(i, story, measure),
    }


def _is_compared(i: int, story: Story, measure: int | None) -> bool:
    return measure is not None and i != measure and standing.is_measured(story)


def _rows(stories: Sequence[Story], measure: int | None) -> list[ComparisonRow]:
    results = [overlay.result_figure(name) for name in overlay.result_names(stories)]
    rows = [_row(figure, stories, measure) for figure in (*_FIGURES, cost_figure(stories), *results)]
    return [row for row in rows if row.has_value]


def _row(figure: RunFigure, stories: Sequence[Story], measure: int | None) -> ComparisonRow:
    values = [figure.read(story) for story in stories]
    cells = []
    for i, story in enumerate(stories):
        difference = None
        if measure is not None and _is_compared(i, story, measure):
            difference = _difference(values[measure], values[i], figure.counted)
        cells.append(Compared(figure.show(values[i]), difference))
    return ComparisonRow(figure.name, tuple(cells))


def _difference(first: float | None, value: float | None, counted: bool) -> str:
    if first is None or value is None or (not first and not counted):
        return ""
    if first == value:
        return "same"
    text = f"{value - first:+g}"
    if not counted:
        text = f"{100 * (value - first) / abs(first):+.1f} %"
    return text.replace("-", _MINUS)


_FIGURES = (
    TIME_TO_TRAIN,
    DURATION,
    RunFigure("world size", field("world_size"), words.number, counted=True),
    RunFigure("nodes", field("nodes"), words.number, counted=True),
    RunFigure("attempts", field("attempts"), words.number, counted=True),
)


def _table(name: str, stories: Sequence[Story]) -> dict[str, Any]:
    rows = []
    for story in stories:
        curve = curves.curve_of(story.data, name)
        if curve is not None:
            values = [point.value for point in curve.points]
            figures = map(four, (values[0], min(values), max(values), values[-1]))
            rows.append((story.data.record.id, len(values), *figures))
    return {"key": name, "title": words.metric_name(name), "rows": rows}
