"""Readings made fit to be drawn: rates, one grid per chart, bands over many nodes. Pure."""

import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

from podwright.analysis.data import Track
from podwright.analysis.statistics import mean, median, quantile

Values = list[float | None]

_COMBINE: Mapping[str, Callable[[list[float]], float]] = {"sum": math.fsum, "mean": fmean, "max": max}


@dataclass(frozen=True)
class Grid:
    """Evenly spaced moments that all lines of a chart share.

    A folded grid has two slots a bin, for the bin's least and greatest value in the order they came, so that a spike of
    one second survives any thinning.
    """

    start: float
    step: float
    count: int
    folded: bool


@dataclass(frozen=True)
class Band:
    """Many lines in three: the middle and what 90 % of them stay within."""

    middle: Values
    low: Values
    high: Values


def rate(track: Track) -> Track:
    """Return a counter as change per second; where it falls its source began again and no rate is known."""
    times, values = array("d"), array("d")
    for i in range(1, len(track.t)):
        took, change = track.t[i] - track.t[i - 1], track.v[i] - track.v[i - 1]
        if took > 0 and change >= 0:
            times.append(track.t[i])
            values.append(change / took)
    return Track(times, values)


def combine(tracks: Sequence[Track], how: str) -> Track:
    """Return several devices of a node as one.

    A moment counts when at least half of them were read at it: a lost GPU must not end the node's line.
    """
    if len(tracks) == 1:
        return tracks[0]
    at: dict[float, list[float]] = {}
    for track in tracks:
        for t, v in zip(track.t, track.v, strict=True):
            at.setdefault(t, []).append(v)
    most = max((len(values) for values in at.values()), default=0)
    times = [t for t in sorted(at) if 2 * len(at[t]) >= most]
    return Track(array("d", times), array("d", (_COMBINE[how](at[t]) for t in times)))


def period(tracks: Iterable[Track]) -> float:
    """Return the usual time between two readings, 1 s when there are too few to tell."""
    gaps: list[float] = []
    for track in tracks:
        gaps += [b - a for a, b in pairwise(track.t[:201]) if b > a]
    return median(gaps) or 1.0


def grid_for(tracks: Sequence[Track], start: float, end: float, limit: int) -> Grid:
    """Return a grid: one slot a reading within `limit` slots, else half as many bins with two slots each."""
    step, span = max(period(tracks), 1e-3), max(end - start, 1e-3)
    slots = math.ceil(span / step) + 1
    if slots <= limit:
        return Grid(start, step, slots, folded=False)
    bins = max(limit // 2, 1)
    width = span / bins
    return Grid(start + width / 4, width / 2, bins * 2, folded=True)


def fit(track: Track, grid: Grid) -> Values:
    """Return the track's values on the grid, None where nothing was read."""
    if grid.folded:
        return _folded(track, grid)
    return _placed(track, grid)


def _placed(track: Track, grid: Grid) -> Values:
    out: Values = [None] * grid.count
    for t, v in zip(track.t, track.v, strict=True):
        slot = round((t - grid.start) / grid.step)
        if 0 <= slot < grid.count and math.isfinite(v):
            out[slot] = v
    return out


def _folded(track: Track, grid: Grid) -> Values:
    bins = grid.count // 2
    # `grid_for` puts the first slot a quarter of a bin after the start, so that both slots of a bin lie evenly in it.
    width, origin = grid.step * 2, grid.start - grid.step / 2
    least: list[tuple[float, float] | None] = [None] * bins
    most: list[tuple[float, float] | None] = [None] * bins
    for t, v in zip(track.t, track.v, strict=True):
        slot = min(int((t - origin) / width), bins - 1)
        if t < origin or not math.isfinite(v):
            continue
        least[slot] = min(least[slot] or (v, t), (v, t))
        most[slot] = max(most[slot] or (v, t), (v, t))
    out: Values = []
    for low, high in zip(least, most, strict=True):
        if low is None or high is None:
            out += [None, None]
        else:
            out += [value for value, _ in sorted((low, high), key=lambda pair: pair[1])]
    return out


def band(lines: Sequence[Values]) -> Band:
    """Return the median and the 5th and 95th percentile of all lines, slot by slot."""
    shares: list[tuple[float | None, ...]] = []
    for slot in zip(*lines, strict=True):
        ordered = sorted(value for value in slot if value is not None)
        shares.append(tuple(quantile(ordered, share) for share in (0.5, 0.05, 0.95)))
    return Band(*map(list, zip(*shares, strict=True)))


def outliers(lines: Sequence[Values], middle: Values, most: int = 4) -> list[int]:
    """Return which lines stay far from the others, the farthest first.

    Far is more than six times the usual distance (median absolute deviation) and more than a tenth of the middle, so
    that 140 nodes which all do the same have none.
    """
    away = [_mean_distance(line, middle) for line in lines]
    usual = median([abs(d) for d in away if d is not None])
    if usual is None:
        return []
    size = mean([abs(m) for m in middle if m is not None]) or 0.0
    far = [(abs(d), i) for i, d in enumerate(away) if d is not None and abs(d) > max(6 * usual, 0.1 * size)]
    return [i for _, i in sorted(far, reverse=True)[:most]]


def _mean_distance(line: Values, middle: Values) -> float | None:
    return mean([v - m for v, m in zip(line, middle, strict=True) if v is not None and m is not None])


def short(values: Values) -> Values:
    """Keep four digits that count: more cannot be seen and would double the page."""
    return [_rounded(value) for value in values]


def _rounded(value: float | None) -> float | None:
    if value is None:
        return None
    rounded = float(f"{value:.4g}")
    return int(rounded) if rounded.is_integer() else rounded
