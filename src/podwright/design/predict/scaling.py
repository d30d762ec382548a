"""How long a training takes on another number of nodes: time = samples(batch) / batch x step.

A step is `fixed + per_sample x local batch`. The fixed part holds what does not shrink with the local batch: kernel
launches, the optimiser, stragglers, and communication that no computation hides. On published series it says more than
a model of the all-reduce alone, which is a few per cent of a step where the whole falls short by half.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from math import exp, isclose, log1p, log2
from operator import attrgetter
from statistics import median

# Of published sizes nineteen of twenty lie within this of a law fitted on two: between them, and for each doubling
# beyond. A test computes both again.
INSIDE_ERROR, DOUBLING_ERROR = 0.25, 0.15

# Of one measured step alone nobody can tell the fixed part. Its share on the smallest size of the published series:
# lowest quarter, median, highest quarter.
FIXED_SHARES = (0.10, 0.16, 0.26)
# Samples to converge grow like batch to this power between the ends of the published series: lowest quarter, median,
# highest quarter.
SAMPLE_POWERS = (0.13, 0.27, 0.35)


@dataclass(frozen=True, slots=True)
class ScalingPoint:
    """One training, published or measured: accelerators, seconds, whole batch, samples until it was good enough."""

    count: int
    time_s: float
    batch: float
    samples: float

    @property
    def local_batch(self) -> float:
        """Return the samples of one step on one accelerator."""
        return self.batch / self.count

    @property
    def step_s(self) -> float:
        """Return the seconds of one step, with evaluations and all that lies between steps spread over them."""
        return self.time_s * self.batch / self.samples


@dataclass(frozen=True, slots=True)
class StepLaw:
    """Seconds of a step: a fixed part, a part for each sample on an accelerator, and what each doubling adds."""

    fixed_s: float
    sample_s: float
    doubling_s: float = 0.0
    base_count: int = 1

    def step_s(self, count: float, batch: float) -> float:
        """Return the seconds of a step with this many accelerators and this whole batch."""
        growth_s = self.doubling_s * log2(count / self.base_count)
        return self.fixed_s + self.sample_s * batch / count + growth_s

    def time_s(self, count: float, batch: float, samples: float) -> float:
        """Return the seconds of a training of this many samples."""
        return samples / batch * self.step_s(count, batch)


def fit(small: ScalingPoint, large: ScalingPoint) -> StepLaw:
    """Fit the law to two sizes.

    Where both have the same local batch they say nothing about the fixed part; what the larger is slower by is then
    taken as growing with each doubling, as the depth of a tree and the odds of a straggler do.
    """
    if isclose(small.local_batch, large.local_batch, rel_tol=0.01):
        doublings = log2(large.count / small.count)
        growth_s = 0.0
        if doublings:
            growth_s = (large.step_s - small.step_s) / doublings
        return StepLaw(0.0, small.step_s / small.local_batch, growth_s, small.count)
    sample_s = (small.step_s - large.step_s) / (small.local_batch - large.local_batch)
    return StepLaw(small.step_s - sample_s * small.local_batch, sample_s)


def step_from_marks(marks: Iterable[tuple[float, float]]) -> float | None:
    """Return the median seconds of a step from (second, step) marks; None where no step followed another.

    The median leaves out evaluations and checkpoints, which stretch the few steps they lie between.
    """
    pairs = [(after[0] - before[0], after[1] - before[1]) for before, after in pairwise(marks)]
    step_times = [seconds / steps for seconds, steps in pairs if steps > 0 and seconds > 0]
    if not step_times:
        return None
    return median(step_times)


@dataclass(frozen=True, slots=True)
class Measured:
    """What a run tells: accelerators, seconds of a step, and where known its batch and its seconds to the goal."""

    count: int
    step_s: float
    batch: float | None = None
    time_to_train_s: float | None = None


@dataclass(frozen=True, slots=True)
class Range:
    """An expected value and the bounds it should lie in."""

    low: float
    expected: float
    high: float

    def scaled(self, factor: float) -> Range:
        """Return the range in another unit."""
        return Range(self.low * factor, self.expected * factor, self.high * factor)

    def inverse(self, of: float) -> Range:
        """Return what a number is in these units: a speed of times, the longest of which is the slowest."""
        return Range(of / self.high, of / self.expected, of / self.low)


@dataclass(frozen=True, slots=True)
class Forecast:
    """One number of accelerators: a step and a training, with the local batch kept and with the whole batch kept.

    Times to train are None when the run did not reach its goal.
    """

    count: int
    same_local_step_s: Range
    same_batch_step_s: Range
    same_local_train_s: Range | None
    same_batch_train_s: Range | None

    def speed_up(self, base: Measured) -> Range:
        """Return the samples per second against the run, with the local batch kept."""
        return self.same_local_step_s.inverse(self.count / base.count * base.step_s)


def forecast(base: Measured, count: int, all_reduce_s: tuple[float, float]) -> Forecast:
    """Predict from one run.

    `all_reduce_s`: the modelled all-reduce of the gradients on the run's nodes and on the asked ones. Best it hides
    behind computation, worst none of its growth does; to both the error on published series is added.
    """
    growth_s = max(0.0, all_reduce_s[1] - all_reduce_s[0])
    same_local = Range(base.step_s, base.step_s + growth_s / 2, base.step_s + growth_s)
    shares = sorted(share + (1 - share) * base.count / count for share in FIXED_SHARES)
    extras = (0.0, growth_s / 2, growth_s)
    shrunk = Range(*(base.step_s * share + extra for share, extra in zip(shares, extras, strict=True)))
    return _forecast(base, count, _widened(same_local), _widened(shrunk))


def forecast_from_two(first: Measured, second: Measured, count: int) -> Forecast:
    """Predict from two runs of the same training on different sizes: the fixed part is then measured."""
    small, large = sorted((first, second), key=attrgetter("count"))
    law = fit(_one_step(small), _one_step(large))
    small_batch = small.batch or 0.0
    local = _around(law.step_s(count, small_batch * count / small.count), small, large, count)
    same_batch = _around(law.step_s(count, small_batch), small, large, count)
    return _forecast(small, count, local, same_batch)


def _one_step(run: Measured) -> ScalingPoint:
    """Return a run as a training of one step: of as many samples as its batch has."""
    batch = run.batch or 0.0
    return ScalingPoint(run.count, run.step_s, batch, batch)


def _forecast(base: Measured, count: int, local: Range, same_batch: Range) -> Forecast:
    """Add the time to train to both ways to grow, where the run that it starts from reached its goal."""
    train_s = base.time_to_train_s
    if train_s is None:
        return Forecast(count, local, same_batch, None, None)
    return Forecast(
        count, local, same_batch, _train(base, count, local, train_s), same_batch.scaled(train_s / base.step_s)
    )


def width_at(count: int, smallest: int, largest: int) -> float:
    """Return the factor either way that a law fitted on two sizes is good to."""
    beyond = max(log2(count / largest), log2(smallest / count), 0.0)
    return (1 + INSIDE_ERROR) * exp(beyond * log1p(DOUBLING_ERROR))


def _train(base: Measured, count: int, step: Range, train_s: float) -> Range:
    """Return the time to train with a batch that grows with the accelerators: fewer steps, but more samples."""
    growth = count / base.count
    fewest, usual, most = sorted(growth**power / growth for power in SAMPLE_POWERS)
    steps = train_s / base.step_s
    return Range(steps * fewest * step.low, steps * usual * step.expected, steps * most * step.high)


def _widened(step: Range) -> Range:
    return Range(step.low / (1 + INSIDE_ERROR), step.expected, step.high * (1 + INSIDE_ERROR))


def _around(step_s: float, small: Measured, large: Measured, count: int) -> Range:
    """Return the range around a figure: the published error between measured sizes, more with each doubling beyond."""
    width = width_at(count, small.count, large.count)
    return Range(step_s / width, step_s, step_s * width)
