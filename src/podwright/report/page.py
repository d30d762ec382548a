"""A run's data as one HTML page that needs nothing else. Pure, but for reading its own templates."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jinja2 import Environment, FileSystemBytecodeCache, PackageLoader, StrictUndefined

from podwright import theme
from podwright.analysis import classes, curves
from podwright.analysis import event_text as moments
from podwright.analysis.data import ReportData
from podwright.analysis.ranks import Span, Story, story_of
from podwright.reading.run_data import gather
from podwright.report import charts, facts, verdict
from podwright.report import timeline as lanes
from podwright.report.goodput import goodput_view
from podwright.report.profile import profile_view
from podwright.theme import standalone, words

if TYPE_CHECKING:
    from podwright.launch import Run

_SHARED = frozenset({"uPlot.min.css", "tokens.css", "uPlot.iife.min.js", "words.js", "charts.js"})
"""What every page of ours has, and the theme keeps."""
_STYLES = ("uPlot.min.css", "tokens.css", "report.css", "sections.css")
_SCRIPTS = ("uPlot.iife.min.js", "words.js", "charts.js", "csv.js", "page.js")
_MAX_EVENTS = 500
_SAID_ELSEWHERE = frozenset({"result", "rank", "rank_end"})
_RANK_COLUMNS = {
    "name": "Node",
    "host": "Host",
    "pid": "PID",
    "cores": "Cores",
    "gpu": "GPU",
    "numa": "NUMA node",
    "nics": "NICs",
    "exit": "Ended with",
}
_SEEN_KINDS = frozenset(
    {"seen", "failed", "hang", "sensor", "signal", "fenced", "given_back", "requeued", "thinned", "rdma"}
)


@dataclass(frozen=True)
class RunView:
    """One run as pages show it: what templates are filled with, and what the page's script draws."""

    view: dict[str, Any]
    payload: dict[str, Any]


def render_run(data: ReportData) -> str:
    """Return the report of one run."""
    shown = run_view(data)
    return page("run.html.j2", shown.view, shown.payload)


def view_of_run(run: Run, points: int) -> RunView:
    """Return what the pages of others than the report show of a run, with so many points in a line at most."""
    run.folder.refuse_stray()
    return run_view(gather(run.folder.path), points)


def run_view(data: ReportData, points: int = charts.POINTS_PER_LINE) -> RunView:
    """Return all that is shown of one run."""
    story = story_of(data)
    drawn, flat = charts.charts_of(story)
    quality_curves = curves.curves_of(data)
    payload = {
        "from": round(story.span.at(story.span.start), 3),
        "to": round(story.span.at(story.span.end), 3),
        "attempts": lanes.boundaries(story),
        "charts": charts.charts_json(drawn, story.span, points),
        "curves": [curves.overlaid(curve.name, [(data, story.span)], [curve.title]) for curve in quality_curves],
    }
    view = {
        **_first_screen(story),
        "lanes": lanes.lanes_of(story),
        "goodput": goodput_view(story),
        "ticks": _ticks(story.span),
        "machines": _machines(story, drawn, flat),
        "curves": [{"curve": curve, "rows": curves.curve_rows(curve, story.span)} for curve in quality_curves],
        "classes": _classes(data),
        "examples": data.examples,
        "profile": profile_view(data.profile) if data.profile else None,
        "events": _events(story),
        "environment": facts.environment(story),
        "rank_columns": _rank_columns(story),
        "sections": _sections(data),
        "recipe": facts.recipe(story),
    }
    return RunView(view, payload)


def _sections(data: ReportData) -> list[tuple[str, str]]:
    sections = [
        ("verdict", "Verdict"),
        ("timeline", "What happened"),
        ("goodput", "Goodput"),
        ("training", "Loss and quality"),
        ("machines", "Machines"),
    ]
    if data.confusion or data.iou or data.examples:
        sections.append(("classes", "Classes"))
    if data.profile:
        sections.append(("profile", "Profile"))
    return [*sections, ("ranks", "Ranks and nodes"), ("again", "Run it again"), ("logs", "Log")]


def _rank_columns(story: Story) -> list[tuple[str, str]]:
    """Return the columns that say something for at least one rank; a node called as its host needs no name."""
    columns = []
    for key, title in _RANK_COLUMNS.items():
        values = {getattr(rank, key) for rank in story.ranks}
        if values - {None, words.NONE}:
            columns.append((key, title))
    if all(rank.name == rank.host for rank in story.ranks):
        columns = [column for column in columns if column[0] != "name"]
    return columns


def page(template: str, view: Mapping[str, Any], payload: Mapping[str, Any]) -> str:
    """Return a template filled, with styles, script and data inside it."""
    script = "\n".join(asset(name) for name in _SCRIPTS)
    style = "\n".join(asset(name) for name in _STYLES)
    own = {"policy": standalone.policy(script), "style": style, "script": script}
    return _templates().get_template(template).render(**view, **own, payload=standalone.script_json(payload))


@cache
def asset(name: str) -> str:
    """Return a style sheet or a script of pages."""
    if name in _SHARED:
        return theme.asset(name)
    return (resources.files("podwright.report") / "assets" / name).read_text("utf-8")


def compiled() -> FileSystemBytecodeCache | None:
    """Keep compiled templates per machine instead of per report; only in a folder that is this user's alone.

    They are code: whoever may write there could run anything as this user.
    """
    folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "podwright" / "templates"
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        owner = folder.stat()
    except OSError:
        return None
    if owner.st_uid != os.getuid() or owner.st_mode & 0o022:
        return None
    return FileSystemBytecodeCache(str(folder))


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("podwright.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        bytecode_cache=compiled(),
    )
    add_words(environment)
    return environment


def add_words(environment: Environment) -> None:
    """Give templates the words that ours are written with."""
    for read in (words.number, words.percent, words.score, words.fold):
        environment.filters[read.__name__] = read
    environment.filters["metric"] = words.metric_name
    environment.globals |= {"NONE": words.NONE, "count": words.count}


def _first_screen(story: Story) -> dict[str, Any]:
    data = story.data
    return {
        "data": data,
        "story": story,
        "title": data.record.id,
        "verdict": verdict.verdict_of(story),
        "figures": verdict.figures_of(story),
        "facts": _facts_line(story),
        "clock": verdict.clock_name(story),
        "read_at": words.date_and_clock(data.read_at),
    }


def _facts_line(story: Story) -> list[str]:
    record, launcher = story.data.record, story.data.asked.workload.get("launcher")
    parts = [f"on {record.target}"]
    if launcher:
        parts.append(f"by {launcher}")
    if record.started_at:
        parts.append(f"started {words.date_and_clock(record.started_at)}")
    return parts


def _machines(story: Story, drawn: list[charts.Chart], flat: list[str]) -> dict[str, Any]:
    groups: dict[str, list[dict[str, Any]]] = {}
    for chart in drawn:
        entry = {"kind": chart.kind, "rows": charts.table(chart), "note": chart.note}
        groups.setdefault(chart.kind.group, []).append(entry)
    lines = list(itertools.chain.from_iterable(chart.lines for chart in drawn))
    many = any(chart.many for chart in drawn)
    has_ranks = any(line.rank is not None for line in lines)
    return {
        "groups": groups,
        "flat": flat,
        "many": many,
        "nodes": [] if many else sorted({line.node for line in lines}),
        "ranks": [(rank.rank, rank.node) for rank in story.ranks] if has_ranks else [],
        "node_count": max((chart.nodes for chart in drawn), default=0),
    }


def _ticks(span: Span) -> list[tuple[float, str]]:
    """Return at most fourteen round moments for the lanes' axis, as (per cent, words); a narrow page shows a third."""
    steps = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 604800)
    length_s = span.length_s
    step = next((s for s in steps if length_s / s <= 14), 604800 * max(1, round(length_s / 604800 / 12)))
    first, last = math.ceil(span.at(span.start) / step), math.floor(span.at(span.end) / step)
    moments_s = [i * step for i in range(first, last + 1)]
    return [(round(100 * span.share(span.zero + at), 3), _tick(at)) for at in moments_s]


def _tick(seconds: int) -> str:
    if seconds < 0:
        return f"-{_tick(-seconds)}"
    if seconds < 60:
        return f"{seconds} s"
    days, rest = divmod(seconds, 86400)
    hours, minutes, left = rest // 3600, rest % 3600 // 60, rest % 60
    parts = [(days, "d"), (hours, "h"), (minutes, "m"), (left, "s")]
    return " ".join(f"{value}{unit}" for value, unit in parts if value)


def _classes(data: ReportData) -> dict[str, Any]:
    bars, absent = classes.class_bars(data)
    view: dict[str, Any] = {"bars": bars, "absent": absent, "matrix": [], "names": (), "mixed": [], "swatches": {}}
    if data.confusion is None:
        return view
    confusion = classes.in_use(data.confusion)
    return view | {
        "matrix": list(classes.matrix_rows(confusion)),
        "names": confusion.classes,
        "mixed": classes.most_mixed(confusion),
        "swatches": confusion.colors,
    }


def _events(story: Story) -> dict[str, Any]:
    """Return what was seen first, then the rest without what other tables hold already."""
    seen = [event for event in story.data.events if event.kind in _SEEN_KINDS]
    rest = [event for event in story.data.events if event.kind not in _SAID_ELSEWHERE]
    return {
        "seen": [moments.moment(event, story) for event in seen[:_MAX_EVENTS]],
        "all": [moments.moment(event, story) for event in rest[:_MAX_EVENTS]],
        "left_out": max(0, len(rest) - _MAX_EVENTS),
    }
