"""One training on several sizes: what its time is made of, and what another size would take.

Time = start-up + epochs x evaluation + steps x fixed + samples of one accelerator x per sample. A series of a few sizes
cannot tell all four apart, so that each term has its price: one that the sizes do not ask for stays near nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import ceil, isclose, log2

from podwright.design.predict.scaling import Range, ScalingPoint

# What a published mean time is good to.
NOISE = 0.02
# The price of a term's share of the time at the largest size: start-up, evaluation, fixed, per sample. With any one of
# the published series left out, the others choose prices that predict it as well.
PRICES = (4.0, 4.0, 1.0, 0.3)

# Nineteen of twenty published sizes lie within these of what a law fitted on others says: between those others, and for
# each doubling beyond them; then the same where no batch is known. A test computes all of them again.
KNOWN_ERROR, KNOWN_DOUBLING = 0.25, 0.15
UNKNOWN_BATCH_ERROR, UNKNOWN_BATCH_DOUBLING = 0.35, 0.20

# A size that takes so much longer than the one before, and than the law says, is where a curve turns.
TURN = 0.2
# Of fewer sizes none can be left out and the others still say how the time changes with the size.
LEAST_HELD_OUT = 3


@dataclass(frozen=True, slots=True)
class AskedSize:
    """A size that nobody has measured: accelerators, its whole batch, and its epochs where they are known."""

    count: int
    batch: float
    epochs: float | None = None


@dataclass(frozen=True, slots=True)
class Series:
    """A training on several sizes, the smallest first, and sizes to predict; `samples` of a point are epochs here.

    Without batches these and the epochs are taken as the same throughout.
    """

    name: str
    points: tuple[ScalingPoint, ...]
    batch_known: bool
    evaluate_every: float | None = None
    asked: tuple[AskedSize, ...] = ()

    @property
    def error(self) -> float:
        """Return the error to expect between its sizes: the published one, or its own where that is more.

        Its own is what the law is off by on sizes that were left out of its fit, and on those that were not.
        """
        usual = KNOWN_ERROR
        if not self.batch_known:
            usual = UNKNOWN_BATCH_ERROR
        own = [*self.in_sample_errors, *(_left_out(self.points, place) for place in range(1, len(self.points) - 1))]
        return max(usual, *map(abs, own))

    @property
    def turns_at(self) -> int | None:
        """Return the largest size that the law can follow; None where it follows all.

        More accelerators take longer beyond it, and no term of the law does: what comes next it cannot know.
        """
        law = self.law
        for before, after in pairwise(self.points):
            told = after.time_s / before.time_s
            modelled = _time(law, after) / _time(law, before)
            if told > 1 + TURN and told > modelled * (1 + TURN):
                return before.count
        return None

    @property
    def refused(self) -> list[AskedSize]:
        """Return the sizes that nothing can be said about: beyond where the curve turns."""
        last = self.turns_at
        return [size for size in self.asked if last is not None and size.count > last]

    @property
    def law(self) -> TrainingLaw:
        """Return the law that its sizes follow best."""
        return fit_training(self.points)

    @property
    def forecasts(self) -> list[SizeForecast]:
        """Return what the sizes that were asked for should take, but for those that nothing can be said about."""
        refused = self.refused
        return [forecast_size(self, size) for size in self.asked if size not in refused]

    @property
    def in_sample_errors(self) -> list[float]:
        """Return what the law is off by on each of the sizes that it is fitted on; no measure of a prediction."""
        law = self.law
        return [law.time_s(point.count, point.batch, point.samples) / point.time_s - 1 for point in self.points]

    @property
    def doubling_error(self) -> float:
        """Return what each doubling beyond its sizes adds: as published, or as its own largest size, left out, says."""
        usual = KNOWN_DOUBLING if self.batch_known else UNKNOWN_BATCH_DOUBLING
        if len(self.points) < LEAST_HELD_OUT:
            return usual
        *_, before, largest = self.points
        missed = 1 + abs(_left_out(self.points, len(self.points) - 1))
        beyond = log2(largest.count / before.count)
        return max(usual, missed ** (1 / beyond) - 1) if beyond > 0 else usual


@dataclass(frozen=True, slots=True)
class TrainingLaw:
    """Seconds of start-up and of an epoch's evaluation; an epoch's steps times batch, and its samples times count."""

    startup_s: float
    evaluation_s: float
    fixed_s: float
    sample_s: float

    def parts_s(self, count: float, batch: float, epochs: float) -> tuple[float, float, float, float]:
        """Return the four terms of a training in seconds."""
        steps_s, samples_s = self.fixed_s * epochs / batch, self.sample_s * epochs / count
        return self.startup_s, self.evaluation_s * epochs, steps_s, samples_s

    def time_s(self, count: float, batch: float, epochs: float) -> float:
        """Return the seconds of a training."""
        return sum(self.parts_s(count, batch, epochs))


@dataclass(frozen=True, slots=True)
class SizeForecast:
    """An asked size: the epochs it is taken to need, and its time in seconds."""

    asked: AskedSize
    epochs: float
    time_s: Range


def _time(law: TrainingLaw, point: ScalingPoint) -> float:
    return law.time_s(point.count, point.batch, point.samples)


def _left_out(points: Sequence[ScalingPoint], place: int) -> float:
    """Return what a law fitted on all other sizes is off by on this one."""
    left_out = points[place]
    others = [point for number, point in enumerate(points) if number != place]
    return _time(fit_training(others), left_out) / left_out.time_s - 1


def fit_training(points: Sequence[ScalingPoint]) -> TrainingLaw:
    """Fit the four terms, none of them negative, to relative errors and prices at once.

    The unknowns are the terms' shares of the largest size's time, so that their prices compare.
    """
    largest = points[-1]
    units = _amounts(largest)
    rows = []
    for point in points:
        scale = largest.time_s / point.time_s / NOISE
        rows.append([amount / unit * scale for amount, unit in zip(_amounts(point), units, strict=True)])
    columns = list(zip(*rows, strict=True))
    squares = []
    for term, column in enumerate(columns):
        squares.append([_product(column, other) for other in columns])
        squares[term][term] += PRICES[term] ** 2
    wanted = [sum(column) / NOISE for column in columns]
    shares = _least(squares, wanted)
    return TrainingLaw(*(share * largest.time_s / unit for share, unit in zip(shares, units, strict=True)))


def forecast_size(series: Series, asked: AskedSize) -> SizeForecast:
    """Predict a size from all measured ones; epochs that are not given follow from those of other batches."""
    epochs = asked.epochs
    if epochs is None:
        epochs = epochs_at(series.points, asked.batch, series.evaluate_every)
    time_s = fit_training(series.points).time_s(asked.count, asked.batch, epochs)
    counts = [point.count for point in series.points]
    beyond = max(log2(asked.count / max(counts)), log2(min(counts) / asked.count), 0.0)
    factor = (1 + series.error) * (1 + series.doubling_error) ** beyond
    return SizeForecast(asked, epochs, Range(time_s / factor, time_s, time_s * factor))


def epochs_at(points: Sequence[ScalingPoint], batch: float, evaluate_every: float | None = None) -> float:
    """Return the epochs to converge at a batch: in a line between the batches beside it, beyond them on from the ends.

    A line is the form S x (1 + batch / critical batch) of gradient noise theory. A training ends with an evaluation, so
    that its epochs are rounded up to the next one.
    """
    means = _epochs_by_batch(points)
    if len(means) == 1:
        epochs = means[0][1]
    else:
        sections = [pair for pair in pairwise(means) if pair[0][0] <= batch <= pair[1][0]]
        low, high = (sections or [(means[0], means[-1])])[0]
        slope = (high[1] - low[1]) / (high[0] - low[0])
        epochs = max(low[1] + slope * (batch - low[0]), min(mean for _, mean in means) / 2)
    if evaluate_every is None:
        return epochs
    return ceil(round(epochs / evaluate_every, 9)) * evaluate_every


def _epochs_by_batch(points: Sequence[ScalingPoint]) -> list[tuple[float, float]]:
    """Return each batch with the mean of its epochs, the smallest batch first."""
    epochs: dict[float, list[float]] = {}
    for point in points:
        near = [batch for batch in epochs if isclose(batch, point.batch)]
        epochs.setdefault(near[0] if near else point.batch, []).append(point.samples)
    return sorted((batch, sum(values) / len(values)) for batch, values in epochs.items())


def _amounts(point: ScalingPoint) -> tuple[float, float, float, float]:
    """Return how much of each term a point has."""
    return TrainingLaw(1.0, 1.0, 1.0, 1.0).parts_s(point.count, point.batch, point.samples)


def _least(squares: list[list[float]], wanted: list[float]) -> list[float]:
    """Minimise x'Qx - 2b'x over x >= 0.

    The prices make Q definite: there is one minimum, and its positive terms are among the few sets there are.
    """
    best, best_value = [0.0] * 4, 0.0
    for size in range(1, 5):
        for terms in combinations(range(4), size):
            solution = _solved([_part(squares[i], terms) for i in terms], _part(wanted, terms))
            value = -_product(_part(wanted, terms), solution)
            if min(solution) >= 0 and value < best_value:
                best_value, best = value, [0.0] * 4
                for i, share in zip(terms, solution, strict=True):
                    best[i] = share
    return best


def _product(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def _part(row: Sequence[float], terms: Sequence[int]) -> list[float]:
    return [row[i] for i in terms]


def _solved(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Solve a definite system by elimination, which needs no pivots; what rounding made indefinite has no solution."""
    rows = [[*row, value] for row, value in zip(matrix, right, strict=True)]
    for i in range(len(rows)):
        pivot = rows[i]
        if pivot[i] <= 0:
            return [-1.0] * len(rows)
        for j, row in enumerate(rows):
            if j != i:
                factor = row[i] / pivot[i]
                rows[j] = [a - factor * b for a, b in zip(row, pivot, strict=True)]
    return [row[-1] / row[i] for i, row in enumerate(rows)]
