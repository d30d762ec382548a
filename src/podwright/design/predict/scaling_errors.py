"""What the law of trainings is off by on whole series: each fitted on its ends, its middle predicted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter

from podwright.design.predict.series import Series, epochs_at, fit_training

# Within so much a size is called met.
MET = 0.10


@dataclass(frozen=True, slots=True)
class Error:
    """A middle size of a series: measured and predicted seconds, and predicted with epochs from the ends as well."""

    series: str
    count: int
    measured_s: float
    predicted_s: float
    guessed_s: float
    # What the epochs from the ends are off by.
    epochs_error: float

    @property
    def error(self) -> float:
        """Return the error of the prediction that knows how many epochs this batch needs."""
        return self.predicted_s / self.measured_s - 1

    @property
    def guessed_error(self) -> float:
        """Return the error of the prediction that takes these epochs from the ends as well."""
        return self.guessed_s / self.measured_s - 1


def errors(series: Iterable[Series]) -> list[Error]:
    """Predict every middle size from its series' ends."""
    predictions = []
    for measured in series:
        small, *middle, large = measured.points
        law = fit_training((small, large))
        for point in middle:
            epochs = epochs_at((small, large), point.batch, measured.evaluate_every)
            known = law.time_s(point.count, point.batch, point.samples)
            guessed = law.time_s(point.count, point.batch, epochs)
            off = epochs / point.samples - 1
            predictions.append(Error(measured.name, point.count, point.time_s, known, guessed, off))
    return predictions


def series_met(errors: Sequence[Error], guessed: bool = False) -> list[str]:
    """Return the series whose every middle size is met."""
    of = attrgetter("guessed_error" if guessed else "error")
    missed = {error.series for error in errors if abs(of(error)) > MET}
    return [name for name in _names(errors) if name not in missed]


def summary(errors: Sequence[Error]) -> str:
    """Return how many series are met with their epochs known, and with those from the ends."""
    total = len(_names(errors))
    known, guessed = len(series_met(errors)), len(series_met(errors, guessed=True))
    return (
        f"{known} of {total} series have every middle size within 10 %, given their ends;\n"
        f"{guessed} of {total} where the epochs are taken from the ends as well"
    )


def _names(errors: Sequence[Error]) -> list[str]:
    return list(dict.fromkeys(error.series for error in errors))
