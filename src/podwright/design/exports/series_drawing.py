"""Measured and predicted sizes of trainings as a drawing: minutes over accelerators, both in doublings."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log2

from podwright.design.exports.svg import Drawing
from podwright.design.predict.series import Series, SizeForecast

LEFT, TOP, WIDTH, HEIGHT = 80.0, 72.0, 560.0, 220.0
PANEL = HEIGHT + 88
DOT = 6.0


def series_svg(series: Sequence[Series], tokens: str) -> str:
    """Return a panel for each series: squares were measured, the line is the law, bars are intervals of predictions."""
    drawing = Drawing("trainings on several sizes", tokens)
    drawing.words(24, 32, "minutes over accelerators", 20)
    text = "filled: measured; line: the law fitted on them; bar: where a size that was asked for should lie"
    drawing.words(24, 52, text, 12, "soft")
    for number, measured in enumerate(series):
        _Panel(drawing, measured, TOP + 24 + number * PANEL).draw()
    return drawing.text()


class _Panel:
    """One series, both axes in doublings."""

    def __init__(self, drawing: Drawing, measured: Series, top: float) -> None:
        self.drawing, self.measured, self.top = drawing, measured, top
        self.forecasts = measured.forecasts
        counts = [point.count for point in measured.points] + [size.count for size in measured.asked]
        times = [point.time_s / 60 for point in measured.points]
        for forecast in self.forecasts:
            times += [forecast.time_s.low / 60, forecast.time_s.high / 60]
        self.first_x, self.last_x = floor(log2(min(counts))), ceil(log2(max(counts)))
        self.first_y, self.last_y = floor(log2(min(times))), ceil(log2(max(times)))

    def draw(self) -> None:
        self.drawing.words(LEFT, self.top - 8, self.measured.name, 12)
        self._axes()
        law = self.measured.law
        line = []
        for point in self.measured.points:
            line.append(self._at(point.count, law.time_s(point.count, point.batch, point.samples)))
        self.drawing.line("frame", line)
        for point in self.measured.points:
            hover = f"{point.count}: {point.time_s / 60:.3g} min"
            self._dot("leaf", self._at(point.count, point.time_s), hover)
        for forecast in self.forecasts:
            self._forecast(forecast)

    def _axes(self) -> None:
        for power in range(self.first_x, self.last_x + 1):
            x, _ = self._at(2.0**power, 60 * 2.0**self.first_y)
            self.drawing.line("hair", [(x, self.top), (x, self.top + HEIGHT)])
            self.drawing.words(x, self.top + HEIGHT + 16, f"{2**power:,}", 11, "soft", "middle")
        for power in range(self.first_y, self.last_y + 1):
            _, y = self._at(2.0**self.first_x, 60 * 2.0**power)
            self.drawing.line("hair", [(LEFT, y), (LEFT + WIDTH, y)])
            self.drawing.words(LEFT - 8, y + 4, f"{2.0**power:g} min", 11, "soft", "end")

    def _forecast(self, forecast: SizeForecast) -> None:
        time_s, count = forecast.time_s, forecast.asked.count
        (x, low), (_, high) = self._at(count, time_s.low), self._at(count, time_s.high)
        hover = f"{count}: {time_s.expected / 60:.3g} min, {time_s.low / 60:.3g} to {time_s.high / 60:.3g}"
        self.drawing.box("spine", x - 3, high, 6, low - high, hover)
        self._dot("spine", self._at(count, time_s.expected), hover)

    def _dot(self, kind: str, point: tuple[float, float], hover: str) -> None:
        self.drawing.box(kind, point[0] - DOT / 2, point[1] - DOT / 2, DOT, DOT, hover)

    def _at(self, count: float, time_s: float) -> tuple[float, float]:
        """Return where a size and its time lie, in tenths of a pixel."""
        across = (log2(count) - self.first_x) / max(self.last_x - self.first_x, 1)
        up = (log2(time_s / 60) - self.first_y) / max(self.last_y - self.first_y, 1)
        return round(LEFT + WIDTH * across, 1), round(self.top + HEIGHT * (1 - up), 1)
