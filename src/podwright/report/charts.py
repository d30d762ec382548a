"""Which charts a run gets, and the lines in each. Pure."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from podwright.analysis import series
from podwright.analysis.data import Track
from podwright.analysis.ranks import Span, Story
from podwright.pilot.metrics import metric_of
from podwright.theme import words

MANY_NODES = 16
POINTS_PER_LINE = 2_000
POINTS_PER_PAGE = 400_000
_BAND_POINTS = 600


@dataclass(frozen=True)
class ChartKind:
    """A row of the table of charts; `*` stands for the device's index in `node`, `#` for the rank's own in `rank`."""

    key: str
    group: str
    title: str
    unit: str
    node: str
    rank: str = ""
    how: str = "sum"
    top: float | None = None
    rank_note: str = ""
    of_machine: bool = False
    """Whether the sensor counts for a machine, not for a node: nodes on one machine read the same."""

    @property
    def counter(self) -> bool:
        """Tell whether the readings only grow and are drawn as a rate."""
        metric = metric_of(self.node)
        return metric is not None and metric.is_counter

    def drawn(self, track: Track) -> Track:
        """Return readings as the chart draws them."""
        return series.rate(track) if self.counter else track


def _kind(key: str, group: str, node: str, rank: str = "", **drawing: Any) -> ChartKind:
    """Return a chart of one metric; its title, unless another is given, and its unit are those of the metric table."""
    metric = metric_of(node)
    assert metric is not None, f"{node} is not in the metric table"
    title = drawing.pop("title", metric.title)
    # The page names units in lower case: `mhz`.
    return ChartKind(key, group, title, metric.drawn_unit.lower(), node, rank, **drawing)


def _gpu(key: str, metric: str, **drawing: Any) -> ChartKind:
    return _kind(key, "GPU", f"gpu.*.{metric}", f"gpu.#.{metric}", **drawing)


_HOST, _FLOW = "CPU and memory", "Network and disk"
_NOT_ALONE = "of the machine: other programs may count too"

KINDS = (
    _gpu("gpu-use", "utilization_percent", how="mean", top=100),
    _gpu("gpu-memory", "memory_used_bytes"),
    _gpu("gpu-power", "power_watts"),
    _gpu("gpu-temperature", "temperature_celsius", how="max", title="GPU temperature, hottest"),
    _gpu("gpu-clock", "sm_clock_mhz", how="mean"),
    _gpu("nvlink-sent", "nvlink_sent_bytes_total"),
    _gpu("nvlink-received", "nvlink_received_bytes_total"),
    _gpu("pcie-sent", "pcie_sent_bytes_total"),
    _gpu("pcie-received", "pcie_received_bytes_total"),
    _kind("cpu-use", _HOST, "cpu_percent", "rank.#.cpu_percent", rank_note="100 % is one core"),
    _kind("memory", _HOST, "memory_used_bytes", "rank.#.memory_bytes"),
    _kind("cpu-power", _HOST, "cpu_energy_joules_total", of_machine=True),
    _kind("net-received", _FLOW, "net_received_bytes_total", of_machine=True),
    _kind("net-sent", _FLOW, "net_sent_bytes_total", of_machine=True),
    _kind("ib-received", _FLOW, "ib.*.received_bytes_total", of_machine=True),
    _kind("ib-sent", _FLOW, "ib.*.sent_bytes_total", of_machine=True),
    _kind("disk-read", _FLOW, "disk_read_bytes_total", of_machine=True),
    _kind("disk-written", _FLOW, "disk_written_bytes_total", of_machine=True),
)


@dataclass(frozen=True)
class ChartLine:
    """One line of a chart: a node, or one rank of it."""

    label: str
    node: int
    rank: int | None
    track: Track


@dataclass(frozen=True)
class Chart:
    """A chart with its lines in full; `charts_json` and `table` thin it."""

    kind: ChartKind
    lines: tuple[ChartLine, ...]
    nodes: int
    note: str = ""

    @property
    def many(self) -> bool:
        """Tell whether there are too many nodes for a line each."""
        return self.nodes > MANY_NODES


def charts_of(story: Story) -> tuple[list[Chart], list[str]]:
    """Return the charts that have data, and the titles of those whose values were always zero."""
    drawn, flat = [], []
    for kind in KINDS:
        lines = _node_lines(story, kind)
        if not lines:
            continue
        if not any(any(line.track.v) for line in lines):
            flat.append(kind.title)
            continue
        if len(lines) <= MANY_NODES:
            lines += _rank_lines(story, kind)
        drawn.append(Chart(kind, tuple(lines), len({line.node for line in lines}), _note(story, kind)))
    return drawn, flat


def _node_lines(story: Story, kind: ChartKind) -> list[ChartLine]:
    fits = re.compile(re.escape(kind.node).replace(r"\*", "[^.]+") + "$").match
    by_node: dict[int, list[Track]] = {}
    for (node, name), track in sorted(story.data.readings.items()):
        if fits(name) and not (kind.of_machine and _is_told_already(story, node, by_node)):
            by_node.setdefault(node, []).append(kind.drawn(track))
    joined = {node: series.combine(tracks, kind.how) for node, tracks in by_node.items()}
    return [ChartLine(_label(story, node, kind), node, None, track) for node, track in joined.items() if len(track.t)]


def _is_told_already(story: Story, node: int, nodes: Iterable[int]) -> bool:
    """Return whether another of these nodes is on the same machine, so that its sensors say the same."""
    if not story.shares_host(node):
        return False
    others = [other for other in nodes if other != node]
    return story.hosts[node] in {story.hosts.get(other) for other in others}


def _label(story: Story, node: int, kind: ChartKind) -> str:
    if kind.of_machine and story.shares_host(node):
        return f"{story.hosts[node]}, whole machine"
    return story.name(node)


def _note(story: Story, kind: ChartKind) -> str:
    """Return whose values these are, where a reader would take them for the run's own."""
    if kind.of_machine and any(story.shares_host(node) for node in story.hosts):
        return _NOT_ALONE
    if story.is_one_local_node and kind.group in (_HOST, _FLOW):
        return _NOT_ALONE
    return ""


def _rank_lines(story: Story, kind: ChartKind) -> Iterator[ChartLine]:
    if not kind.rank:
        return
    for rank in story.ranks:
        index = rank.gpu if kind.rank.startswith("gpu.") else rank.rank
        track = story.data.readings.get((rank.node, kind.rank.replace("#", str(index))))
        if index is not None and track is not None and len(track.t):
            yield ChartLine(f"rank {rank.rank}", rank.node, rank.rank, kind.drawn(track))


def charts_json(charts: Sequence[Chart], span: Span, points: int = POINTS_PER_LINE) -> list[dict[str, Any]]:
    """Return the charts as the page's script reads them, thinned to what a page can hold."""
    lines = sum(len(chart.lines) for chart in charts if not chart.many) or 1
    limit = max(100, min(points, POINTS_PER_PAGE // lines))
    return [_banded(chart, span) if chart.many else _lined(chart, span, limit) for chart in charts]


def _lined(chart: Chart, span: Span, limit: int) -> dict[str, Any]:
    grid = series.grid_for([line.track for line in chart.lines], span.start, span.end, limit)
    lines = [_line_json(line, series.fit(line.track, grid)) for line in chart.lines]
    return {**_head_json(chart, grid, span), "lines": lines}


def _banded(chart: Chart, span: Span) -> dict[str, Any]:
    grid = series.grid_for([line.track for line in chart.lines], span.start, span.end, _BAND_POINTS)
    values = [series.fit(line.track, grid) for line in chart.lines]
    band = series.band(values)
    picked = [_line_json(chart.lines[i], values[i]) for i in series.outliers(values, band.middle)]
    return {
        **_head_json(chart, grid, span),
        "lines": picked,
        "band": {name: series.short(values) for name, values in vars(band).items()},
    }


def _head_json(chart: Chart, grid: series.Grid, span: Span) -> dict[str, Any]:
    x = [round(span.at(grid.start), 3), round(grid.step, 6), grid.count]
    return {"key": chart.kind.key, "title": chart.kind.title, "unit": chart.kind.unit, "top": chart.kind.top, "x": x}


def _line_json(line: ChartLine, values: series.Values) -> dict[str, Any]:
    return {"label": line.label, "node": line.node, "rank": line.rank, "values": series.short(values)}


def table(chart: Chart) -> list[dict[str, str]]:
    """Return the chart in words: least, mean, greatest and last value of every line."""
    rows = []
    for line in chart.lines:
        v = line.track.v
        figures = {"least": min(v), "mean": sum(v) / len(v), "greatest": max(v), "last": v[-1]}
        texts = {name: words.quantity(value, chart.kind.unit) for name, value in figures.items()}
        rows.append({"line": line.label, **texts})
    return rows
