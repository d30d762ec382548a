"""Numbers as a person reads them in the terminal: values, ages, bars and small curves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

_BLOCKS = "▁▂▃▄▅▆▇█"
# What tells how far a run is, and not how good.
PROGRESS_NAMES = frozenset({"step", "steps", "epoch", "epochs", "mllog", "time_ms"})


def value(number: object) -> str:
    """Gives three significant digits, whole numbers whole, and no exponent where a plain number is as short."""
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        return str(number)
    if isinstance(number, int) or (number.is_integer() and abs(number) < 1e6):
        return str(int(number))
    return f"{number:.0f}" if 1000 <= abs(number) < 1e6 else f"{number:.3g}"


def results(values: Mapping[str, object], limit: int | None = None) -> str:
    """Gives `name value` pairs, without those that only tell how far the run is."""
    shown = [f"{name} {value(number)}" for name, number in values.items() if name not in PROGRESS_NAMES]
    return "  ".join(shown[:limit])


def duration(seconds: float | None) -> str:
    """Gives `2m 11s`, or `-` for what did not happen."""
    from podwright.theme.words import format_duration

    return "-" if seconds is None else format_duration(seconds)


def size(count: float | None) -> str:
    """Gives `3.1 GiB`, or `-` for what was not read."""
    from podwright.theme.words import format_size

    return "-" if count is None else format_size(int(count))


def seconds_between(start: str | None, end: str | None, now: datetime | None = None) -> float | None:
    """Gives the seconds from one ISO 8601 time to another, or to now; None when it has not begun."""
    if start is None:
        return None
    until = datetime.fromisoformat(end) if end else (now or datetime.now(UTC))
    return max(0.0, (until - datetime.fromisoformat(start)).total_seconds())


def percent(number: float | None) -> str:
    """Gives a whole percentage, four characters wide."""
    return "   -" if number is None else f"{round(number):>3}%"


def curve(values: Iterable[float], width: int, top: float = 100.0) -> str:
    """Draws the latest values as a row of blocks, `width` wide, oldest left; blank where there is nothing yet."""
    latest = list(values)[-width:]
    blocks = (_BLOCKS[min(7, max(0, int(item / top * 8)))] for item in latest)
    return "".join(blocks).rjust(width)


def bar(share: float, width: int) -> tuple[str, str]:
    """Gives the done and the open part of a progress bar; told apart by shape, so that no colour is needed."""
    filled = round(min(1.0, max(0.0, share)) * width)
    return "━" * filled, "╌" * (width - filled)


def median(values: Sequence[float]) -> float:
    """Gives the middle value; of an even count the mean of both middle ones."""
    ordered, half = sorted(values), len(values) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def spread(values: Sequence[float], count: int) -> list[float]:
    """Gives at most `count` of the values from least to greatest, evenly picked: the shape of a whole cluster."""
    ordered = sorted(values)
    if len(ordered) <= count:
        return ordered
    return [ordered[round(index * (len(ordered) - 1) / (count - 1))] for index in range(count)]
