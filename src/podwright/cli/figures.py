"""Numbers as a person reads them in the terminal: values, ages, bars and small curves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime

_BLOCKS = "▁▂▃▄▅▆▇█"
# What tells how far a run is; shown as progress and not once more as a result.
PROGRESS_NAMES = frozenset({"step", "steps", "epoch", "epochs"})


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
    """Gives `2m 11s`: the two largest units; `-` for what did not happen."""
    if seconds is None:
        return "-"
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole}s" if seconds >= 10 or whole == seconds else f"{max(0.0, seconds):.1f}s"
    for size, unit, below, small in ((86400, "d", 3600, "h"), (3600, "h", 60, "m"), (60, "m", 1, "s")):
        if whole >= size:
            return f"{whole // size}{unit} {whole % size // below}{small}"
    return f"{whole}s"


def size(count: float | None) -> str:
    """Gives bytes in binary units with two or three digits: `3.1GiB`."""
    if count is None:
        return "-"
    unit = 0
    while count >= 999.5 and unit < 5:
        count, unit = count / 1024, unit + 1
    number = f"{count:.1f}" if count < 9.95 and unit else f"{count:.0f}"
    return number + ("B", "KiB", "MiB", "GiB", "TiB", "PiB")[unit]


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
