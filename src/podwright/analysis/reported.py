"""What the program told, as a report shows it: curves of bounded length out of any number of values. Pure."""

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from math import isnan, nan
from operator import attrgetter
from typing import NamedTuple

from podwright.runs.goodput.classes import TOLD_AS
from podwright.runs.series import ToldValue

MAX_POINTS = 2_000
PROGRESS = frozenset({"step", "steps", "epoch", "epochs"})
NO_CURVE = PROGRESS | {"mllog", "time_ms", "work_slowest_rank", *TOLD_AS}


class CurvePoint(NamedTuple):
    """One value a rank told, when, and at which step if it said so."""

    t: float
    step: float | None
    value: float


@dataclass(frozen=True)
class Told:
    """The curve of each name, by the lowest rank that told it, and how far the training was at last."""

    curves: Mapping[str, tuple[CurvePoint, ...]] = field(default_factory=dict)
    progress: Mapping[str, float] = field(default_factory=dict)


class ToldTrack:
    """One name of one rank over time: all its points, or of many the least and the greatest of every stretch.

    It holds a bounded number of points. When they are full the stretches become twice as long.
    """

    def __init__(self, most: int = MAX_POINTS) -> None:
        self._most = most
        self._times, self._steps, self._values = array("d"), array("d"), array("d")
        self._width = 1
        self._stretch: list[CurvePoint] = []
        self._count = 0
        self._last: CurvePoint | None = None

    def add(self, point: CurvePoint) -> None:
        """Take the next point."""
        self._last = point
        self._count += 1
        self._stretch = _ends([*self._stretch, point])
        if self._count % self._width:
            return
        self._keep(self._stretch)
        self._stretch = []
        if len(self._values) >= self._most:
            self._fold()

    def _keep(self, points: Iterable[CurvePoint]) -> None:
        for point in points:
            self._times.append(point.t)
            self._steps.append(nan if point.step is None else point.step)
            self._values.append(point.value)

    def _fold(self) -> None:
        """Keep two of every four points: those of two stretches, or four single ones."""
        points = self._kept()
        self._times, self._steps, self._values = array("d"), array("d"), array("d")
        for at in range(0, len(points), 4):
            self._keep(_ends(points[at : at + 4]))
        self._width = max(4, self._width * 2)

    def _kept(self) -> list[CurvePoint]:
        rows = zip(self._times, self._steps, self._values, strict=True)
        return [CurvePoint(t, None if isnan(step) else step, value) for t, step, value in rows]

    def points(self) -> tuple[CurvePoint, ...]:
        """Return what is kept, the very last point among it, in the order of time."""
        points = [*self._kept(), *self._stretch]
        if self._last is not None and self._last not in points[-2:]:
            points.append(self._last)
        return tuple(sorted(points, key=attrgetter("t")))


def _ends(points: list[CurvePoint]) -> list[CurvePoint]:
    """Return the least and the greatest of some points, as they came."""
    if len(points) < 3:
        return points
    indices = range(len(points))
    low = min(indices, key=lambda index: points[index].value)
    high = max(indices, key=lambda index: points[index].value)
    return [points[index] for index in sorted({low, high})]


def summed_up(values: Iterable[ToldValue]) -> Told:
    """Return what any number of values, rank by rank, make on a page.

    When several ranks tell the same value the lowest rank's is drawn: ranks of one training tell the same story.
    """
    tracks: dict[str, tuple[int, ToldTrack]] = {}
    progress: dict[str, tuple[float, float]] = {}
    for value in values:
        name = value.name
        if name in PROGRESS:
            before = progress.get(name)
            if before is None or value.t >= before[0]:
                progress[name] = (value.t, value.value)
        if name in NO_CURVE or name.startswith("iou."):
            continue
        if name not in tracks or value.rank < tracks[name][0]:
            tracks[name] = (value.rank, ToldTrack())
        rank, track = tracks[name]
        if value.rank == rank:
            track.add(CurvePoint(value.t, value.step, value.value))
    curves = {name: track.points() for name, (_, track) in tracks.items()}
    return Told(curves, {name: value for name, (_, value) in progress.items()})
