"""What measured sizes of trainings say: the law of each, what it is worth on their own middle sizes, and forecasts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from podwright import theme
from podwright.design.exports.series_drawing import series_svg
from podwright.design.predict.coverage import PUBLISHED_BETWEEN, PUBLISHED_BEYOND, Coverage, between, beyond
from podwright.design.predict.scaling_errors import Error, errors, series_met, summary
from podwright.design.predict.series import (
    KNOWN_DOUBLING,
    KNOWN_ERROR,
    UNKNOWN_BATCH_DOUBLING,
    UNKNOWN_BATCH_ERROR,
    Series,
    SizeForecast,
)
from podwright.design.predict.series_file import read_sizes


@dataclass(frozen=True, slots=True)
class SeriesPrediction:
    """The series of a file, and their middle sizes predicted from their ends."""

    series: tuple[Series, ...]
    held_out: tuple[Error, ...]

    @classmethod
    def read(cls, text: str, name: str) -> SeriesPrediction:
        """Fit the series of a file's text, or refuse it with every problem at once; `name` is the file's."""
        series = read_sizes(text, name)
        return cls(tuple(series), tuple(errors(series)))

    @property
    def summary(self) -> str:
        """Return how many series are met with their epochs known, and with those from the ends."""
        return summary(self.held_out)

    @property
    def between(self) -> Coverage:
        """Return how many of its own middle sizes lay in their intervals when they were left out."""
        return between(self.series)

    @property
    def beyond(self) -> Coverage:
        """Return the same of its largest sizes."""
        return beyond(self.series)

    @property
    def origin(self) -> str:
        """Return what the forecasts rest on, in lines."""
        lines = [
            f"modelled; {KNOWN_ERROR * 100:.0f} % either way between fitted sizes,"
            f" {KNOWN_DOUBLING * 100:.0f} % more for each",
            "doubling beyond them; of published sizes that were left out this held",
            f"{PUBLISHED_BETWEEN.text} between others, {PUBLISHED_BEYOND.text} beyond",
        ]
        if not all(measured.batch_known for measured in self.series):
            lines.append("where no batch is known it is taken as the same throughout:")
            wide, more = UNKNOWN_BATCH_ERROR * 100, UNKNOWN_BATCH_DOUBLING * 100
            lines.append(f"+-{wide:.0f} %, and {more:.0f} % more for each doubling")
        if not any(measured.asked for measured in self.series):
            lines.append("a row without minutes is predicted: count, batch, and epochs if known")
        return "\n".join(lines)

    def svg(self) -> str:
        """Return the drawing of `predict --svg`."""
        return series_svg(self.series, theme.asset("tokens.css"))

    def as_json(self) -> dict[str, Any]:
        """Return the document of `predict --series`."""
        return {
            "series": [_series_json(measured, self.held_out) for measured in self.series],
            "within_10_percent": len(series_met(self.held_out)),
            "within_10_percent_ends_alone": len(series_met(self.held_out, guessed=True)),
            "coverage": _coverage_json(self.between, self.beyond),
            "published_coverage": _coverage_json(PUBLISHED_BETWEEN, PUBLISHED_BEYOND),
            "origin": {"kind": "modelled", "note": self.origin.replace("\n", " ")},
        }


def _coverage_json(inside: Coverage, outside: Coverage) -> dict[str, Any]:
    return {"interpolation": inside.as_json(), "extrapolation": outside.as_json()}


def _series_json(measured: Series, held_out: Sequence[Error]) -> dict[str, Any]:
    law = measured.law
    return {
        "name": measured.name,
        "batch_known": measured.batch_known,
        "sizes": [
            {"count": point.count, "minutes": point.time_s / 60, "in_sample_error": error}
            for point, error in zip(measured.points, measured.in_sample_errors, strict=True)
        ],
        "law": {
            "startup_s": law.startup_s,
            "evaluation_s_per_epoch": law.evaluation_s,
            "steps_s_per_epoch_times_batch": law.fixed_s,
            "samples_s_per_epoch_times_count": law.sample_s,
        },
        "held_out": [
            {
                "count": error.count,
                "minutes": error.measured_s / 60,
                "predicted_minutes": error.predicted_s / 60,
                "error": error.error,
                "error_ends_alone": error.guessed_error,
            }
            for error in held_out
            if error.series == measured.name
        ],
        "error": measured.error,
        "no_prediction_beyond": measured.turns_at,
        "forecasts": [_forecast_json(measured, forecast) for forecast in measured.forecasts],
        "not_predicted": [{"count": size.count, "batch": size.batch} for size in measured.refused],
    }


def _forecast_json(measured: Series, forecast: SizeForecast) -> dict[str, Any]:
    size = forecast.asked
    document: dict[str, Any] = {"count": size.count, "batch": size.batch, "epochs": forecast.epochs}
    if not measured.batch_known:
        document |= {"batch": None, "epochs": None}
    return {**document, "minutes": asdict(forecast.time_s.scaled(1 / 60))}
