"""`predict --series`: a law for anyone's measured sizes, what it is worth, and the sizes that a file asks for."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podwright.cli.terminal import figures, output

if TYPE_CHECKING:
    from podwright.design.predict.scaling_errors import Error
    from podwright.design.predict.series import Series

_BAR = 14


def print_series(path: Path, as_json: bool, drawing: Path | None = None) -> None:
    """Fit every series of a file, check each by its own middle sizes, and predict its rows without minutes."""
    from podwright.design.predict.scaling_errors import errors
    from podwright.design.predict.series_file import read_sizes
    from podwright.spec.source import decode, read_source

    series = read_sizes(decode(read_source(path), str(path)), str(path))
    held_out = errors(series)
    if drawing is not None:
        _draw(series, drawing)
    if as_json:
        return output.print_json(_document(series, held_out))
    return print("\n".join(_lines(series, held_out)))


def _draw(series: Sequence[Series], path: Path) -> None:
    from podwright import theme
    from podwright.cli.terminal.files import write_files
    from podwright.design.exports.series_drawing import series_svg

    write_files({path.name: series_svg(series, theme.asset("tokens.css"))}, path.parent)
    output.say("wrote", str(path))


def _lines(series: Sequence[Series], held_out: Sequence[Error]) -> Iterator[str]:
    from podwright.design.predict.scaling_errors import summary

    sizes = sum(len(measured.points) for measured in series)
    yield from output.aligned("series", f"{len(series)} with {sizes} measured sizes", sys.stdout)
    if held_out:
        yield from output.aligned("check", summary(held_out), sys.stdout)
    yield ""
    yield from _law_table(series)
    if held_out:
        yield ""
        yield from _check_table(held_out)
    if any(measured.asked for measured in series):
        yield ""
        yield from _forecast_table(series)
    yield ""
    yield from output.aligned("origin", _origin(series), sys.stdout)


def _law_table(series: Sequence[Series]) -> list[str]:
    """Lay out what the time of the largest size is made of; errors on sizes that were fitted are called so."""
    from podwright.design.predict.series import fit_training, in_sample_errors

    rows = []
    for measured in series:
        largest = measured.points[-1]
        law = fit_training(measured.points)
        parts_s = law.parts_s(largest.count, largest.batch, largest.samples)
        shares = [_share(part_s / sum(parts_s)) for part_s in parts_s]
        worst = max(in_sample_errors(measured), key=abs)
        rows.append([*shares, _signed(worst), _named(measured.name, largest.count)])
    return output.table(["start-up", "evaluation", "steps", "samples", "in sample", "largest size"], rows)


def _check_table(held_out: Sequence[Error]) -> list[str]:
    rows = []
    for error in held_out:
        minutes = [f"{error.measured_s / 60:.2f}", f"{error.predicted_s / 60:.2f}"]
        both = [_signed(error.error), _signed(error.guessed_error)]
        rows.append([*minutes, *both, _named(error.series, error.count)])
    return output.table(["minutes", "predicted", "held out", "ends alone", "middle size"], rows)


def _forecast_table(series: Sequence[Series]) -> list[str]:
    """Lay out the sizes that were asked for; the bar is the expected time against the longest of them."""
    from podwright.design.predict.series import forecast_size

    forecasts = []
    for measured in series:
        forecasts += [(measured, forecast_size(measured, asked)) for asked in measured.asked]
    longest_s = max(forecast.time_s.expected for _, forecast in forecasts)
    rows = []
    for measured, forecast in forecasts:
        time_min, asked = forecast.time_s.scaled(1 / 60), forecast.asked
        given = [figures.NONE, figures.NONE]
        if measured.batch_known:
            given = [f"{asked.batch:g}", f"{forecast.epochs:.4g}"]
        between = f"{time_min.low:.3g} to {time_min.high:.3g}"
        filled, _ = figures.bar(forecast.time_s.expected / longest_s, _BAR)
        rows.append([str(asked.count), *given, f"{time_min.expected:.3g}", between, filled, measured.name])
    return output.table(["count", "batch", "epochs", "minutes", "between", "", "predicted"], rows)


def _origin(series: Sequence[Series]) -> str:
    from podwright.design.predict import series as law

    lines = [
        f"modelled; {law.KNOWN_ERROR * 100:.0f} % either way holds 19 of 20 published sizes between",
        f"fitted ones, and {law.KNOWN_DOUBLING * 100:.0f} % more for each doubling beyond them",
    ]
    if not all(measured.batch_known for measured in series):
        lines.append("where no batch is known it is taken as the same throughout:")
        wide, more = law.UNKNOWN_BATCH_ERROR * 100, law.UNKNOWN_BATCH_DOUBLING * 100
        lines.append(f"+-{wide:.0f} %, and {more:.0f} % more for each doubling")
    if not any(measured.asked for measured in series):
        lines.append("a row without minutes is predicted: count, batch, and epochs if known")
    return "\n".join(lines)


def _document(series: Sequence[Series], held_out: Sequence[Error]) -> dict[str, Any]:
    from podwright.design.predict.scaling_errors import series_met

    return {
        "series": [_series_json(measured, held_out) for measured in series],
        "within_10_percent": len(series_met(held_out)),
        "within_10_percent_ends_alone": len(series_met(held_out, guessed=True)),
        "origin": {"kind": "modelled", "note": _origin(series).replace("\n", " ")},
    }


def _series_json(measured: Series, held_out: Sequence[Error]) -> dict[str, Any]:
    from podwright.design.predict.series import fit_training, in_sample_errors

    law = fit_training(measured.points)
    checks = [error for error in held_out if error.series == measured.name]
    return {
        "name": measured.name,
        "batch_known": measured.batch_known,
        "sizes": [
            {"count": point.count, "minutes": point.time_s / 60, "in_sample_error": error}
            for point, error in zip(measured.points, in_sample_errors(measured), strict=True)
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
            for error in checks
        ],
        "error": measured.error,
        "forecasts": _forecasts_json(measured),
    }


def _forecasts_json(measured: Series) -> list[dict[str, Any]]:
    from podwright.design.predict.series import forecast_size

    documents = []
    for asked in measured.asked:
        forecast = forecast_size(measured, asked)
        time_min = forecast.time_s.scaled(1 / 60)
        document: dict[str, Any] = {"count": asked.count, "batch": None, "epochs": None}
        if measured.batch_known:
            document |= {"batch": asked.batch, "epochs": forecast.epochs}
        document["minutes"] = {"low": time_min.low, "expected": time_min.expected, "high": time_min.high}
        documents.append(document)
    return documents


def _named(series: str, count: int) -> str:
    if series:
        return f"{series} on {count}"
    return str(count)


def _share(value: float) -> str:
    return f"{value * 100:6.0f} %"


def _signed(value: float) -> str:
    return f"{value * 100:+6.1f} %"
