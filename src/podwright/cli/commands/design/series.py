"""`predict --series`: a law for anyone's measured sizes, what it is worth, and the sizes that a file asks for."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from podwright import design
from podwright.cli.terminal import figures, output
from podwright.cli.terminal.files import write_files

if TYPE_CHECKING:
    from podwright.design import Error, Series, SeriesPrediction

_BAR = 14


def print_series(path: Path, as_json: bool, drawing: Path | None = None) -> None:
    """Fit every series of a file, check each by its own middle sizes, and predict its rows without minutes."""
    from podwright.spec.source import decode, read_source

    prediction = design.SeriesPrediction.read(decode(read_source(path), str(path)), str(path))
    if drawing is not None:
        write_files({drawing.name: prediction.svg()}, drawing.parent)
        output.say("wrote", str(drawing))
    if as_json:
        return output.print_json(prediction.as_json())
    return print("\n".join(_lines(prediction)))


def _lines(prediction: SeriesPrediction) -> Iterator[str]:
    series, held_out = prediction.series, prediction.held_out
    sizes = sum(len(measured.points) for measured in series)
    yield from output.aligned("series", f"{len(series)} with {sizes} measured sizes", sys.stdout)
    if held_out:
        yield from output.aligned("check", prediction.summary, sys.stdout)
        yield from output.aligned("held", _coverage(prediction), sys.stdout)
    yield ""
    yield from _law_table(series)
    if held_out:
        yield ""
        yield from _check_table(held_out)
    if any(measured.asked for measured in series):
        yield ""
        yield from _forecast_table(series)
    for measured in series:
        for size in measured.refused:
            text = (
                f"{_named(measured.name, size.count)}: no prediction beyond {measured.turns_at}, where the curve turns"
            )
            yield from output.aligned("refused", text, sys.stdout)
    yield ""
    yield from output.aligned("origin", prediction.origin, sys.stdout)


def _coverage(prediction: SeriesPrediction) -> str:
    """Say how many left out sizes their intervals held; the true share lies in the brackets."""
    text = f"{prediction.between.text} middle sizes lie in their interval when left out;\n"
    text += f"{prediction.beyond.text} largest sizes"
    refused = prediction.between.refused + prediction.beyond.refused
    if refused:
        text += f"; {refused} not predicted, beyond a turn"
    return text


def _law_table(series: Sequence[Series]) -> list[str]:
    """Lay out what the time of the largest size is made of; errors on sizes that were fitted are called so."""
    rows = []
    for measured in series:
        largest = measured.points[-1]
        parts_s = measured.law.parts_s(largest.count, largest.batch, largest.samples)
        shares = [_share(part_s / sum(parts_s)) for part_s in parts_s]
        worst = max(measured.in_sample_errors, key=abs)
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
    forecasts = []
    for measured in series:
        forecasts += [(measured, forecast) for forecast in measured.forecasts]
    if not forecasts:
        return []
    longest_s = max(forecast.time_s.expected for _, forecast in forecasts)
    rows = []
    for measured, forecast in forecasts:
        time_min, asked = forecast.time_s.scaled(1 / 60), forecast.asked
        cells = [figures.NONE, figures.NONE]
        if measured.batch_known:
            cells = [f"{asked.batch:g}", f"{forecast.epochs:.4g}"]
        between = f"{time_min.low:.3g} to {time_min.high:.3g}"
        filled, _ = figures.bar(forecast.time_s.expected / longest_s, _BAR)
        rows.append([str(asked.count), *cells, f"{time_min.expected:.3g}", between, filled, measured.name])
    return output.table(["count", "batch", "epochs", "minutes", "between", "", "predicted"], rows)


def _named(series: str, count: int) -> str:
    if series:
        return f"{series} on {count}"
    return str(count)


def _share(value: float) -> str:
    return f"{value * 100:6.0f} %"


def _signed(value: float) -> str:
    return f"{value * 100:+6.1f} %"
