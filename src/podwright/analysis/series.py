"""Readings made fit to be drawn: rates, one grid per chart, bands over many nodes. Pure."""

import math
import statistics
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from podwright.analysis.data import Track

Values = list[float | None]

_COMBINE: Mapping[str, Callable[[list[float]], float]] = {"sum": math.fsum, "mean": statistics.fmean, "max": max}


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
    """A counter as change per second; where it falls its source began anew and no rate is known."""
    times, values = array("d"), array("d")
    for i in range(1, len(track.t)):
        took, change = track.t[i] - track.t[i - 1], track.v[i] - track.v[i - 1]
        if took > 0 and change >= 0:
            times.append(track.t[i])
            values.append(change / took)
    return Track(times, values)


def combine(tracks: Sequence[Track], how: str) -> Track:
    """Several devices of a node as one.

    A moment counts when at least half of them were read at it: a lost GPU must not end the node's line.
    """
    if len(tracks) == 1:
        return tracks[0]
    at: dict[float, list[float]] = {}
    for track in tracks:
        for t, v in zip(track.t, track.v, strict=True):
            at.setdefault(t, []).append(v)
    whole = max((len(found) for found in at.values()), default=0)
    kept = [t for t in sorted(at) if 2 * len(at[t]) >= whole]
    return Track(array("d", kept), array("d", (_COMBINE[how](at[t]) for t in kept)))


def period(tracks: Iterable[Track]) -> float:
    """The usual time between two readings, 1 s when there are too few to tell."""
    gaps = [b - a for track in tracks for a, b in zip(track.t[:200], track.t[1:201], strict=False) if b > a]
    return statistics.median(gaps) if gaps else 1.0


def grid_for(tracks: Sequence[Track], start: float, end: float, limit: int) -> Grid:
    """One slot a reading while that stays within `limit` slots, else half as many bins with two slots each."""
    step, span = max(period(tracks), 1e-3), max(end - start, 1e-3)
    slots = math.ceil(span / step) + 1
    if slots <= limit:
        return Grid(start, step, slots, folded=False)
    bins = max(limit // 2, 1)
    width = span / bins
    return Grid(start + width / 4, width / 2, bins * 2, folded=True)


def fit(track: Track, grid: Grid) -> Values:
    """The track's values on the grid, None where nothing was read."""
    return _folded(track, grid) if grid.folded else _placed(track, grid)


def _placed(track: Track, grid: Grid) -> Values:
    out: Values = [None] * grid.count
    for t, v in zip(track.t, track.v, strict=True):
        slot = round((t - grid.start) / grid.step)
        if 0 <= slot < grid.count and math.isfinite(v):
            out[slot] = v
    return out


def _folded(track: Track, grid: Grid) -> Values:
    bins = grid.count // 2
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
        first, second = sorted((low, high), key=lambda pair: pair[1]) if low and high else (None, None)
        out += [first[0] if first else None, second[0] if second else None]
    return out


def band(lines: Sequence[Values]) -> Band:
    """The median and the 5th and 95th percentile of all lines, slot by slot."""
    rows = [sorted(v for v in slot if v is not None) for slot in zip(*lines, strict=True)]
    return Band(*([_quantile(row, q) for row in rows] for q in (0.5, 0.05, 0.95)))


def _quantile(row: Sequence[float], q: float) -> float | None:
    if not row:
        return None
    place = q * (len(row) - 1)
    below = math.floor(place)
    above = min(below + 1, len(row) - 1)
    return row[below] + (row[above] - row[below]) * (place - below)


def outliers(lines: Sequence[Values], middle: Values, most: int = 4) -> list[int]:
    """Which lines stay far from the others, the farthest first.

    Far is more than six times the usual distance (median absolute deviation) and more than a tenth of the middle, so
    that 140 nodes which all do the same have none.
    """
    away = [_mean_distance(line, middle) for line in lines]
    known = [abs(d) for d in away if d is not None]
    if not known:
        return []
    usual = statistics.median(known)
    size = statistics.fmean([abs(m) for m in middle if m is not None] or [0.0])
    far = [(abs(d), i) for i, d in enumerate(away) if d is not None and abs(d) > max(6 * usual, 0.1 * size)]
    return [i for _, i in sorted(far, reverse=True)[:most]]


def _mean_distance(line: Values, middle: Values) -> float | None:
    gaps = [v - m for v, m in zip(line, middle, strict=True) if v is not None and m is not None]
    return statistics.fmean(gaps) if gaps else None


def short(values: Values) -> Values:
    """Four digits that count: more cannot be seen and would double the page."""
    return [None if v is None else _tidy(float(f"{v:.4g}")) for v in values]


def _tidy(value: float) -> float:
    return int(value) if value == int(value) else value
