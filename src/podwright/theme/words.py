"""Numbers and names as a person reads them."""

import math
from collections.abc import Iterable
from datetime import UTC, datetime

_NAMES = {"mean_iou": "mean IoU", "iou": "IoU", "lr": "learning rate", "images_per_s": "images per second"}
_PLAIN_UNITS = {"percent": "%", "watts": "W", "celsius": "°C", "mhz": "MHz", "seconds": "s"}
NONE = "–"  # noqa: RUF001  an en dash stands for "no value" in every table


def format_size(size: int) -> str:
    """Return a size for people, in binary units with three figures: `2 GiB`, `1.46 TiB`."""
    value, unit = float(size), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        if abs(value) < 1023.95:
            break
        value, unit = value / 1024, larger
    if unit == "B" or abs(value) >= 100:
        return f"{value:.0f} {unit}"
    return f"{value:.3g} {unit}"


MOST_S = 1e10
"""Three hundred years: of longer times, which somebody typed, only the size is said."""


def format_duration(seconds: float) -> str:
    """Return a time for people, as two units at most: `0.42 s`, `12.3 s`, `2m 11s`, `1h 30m`, `2d 4h`."""
    if seconds <= -0.005:
        return "-" + format_duration(-seconds)
    seconds = abs(seconds)
    if seconds >= MOST_S:
        return f"{seconds / 86400:.3g} days"
    if seconds < 1:
        return f"{seconds:.2f} s"
    # Each test is on the rounded time: 59.96 s is `1m 0s`, never `60 s`.
    if round(seconds, 1) < 60:
        return f"{seconds:.1f} s".replace(".0 ", " ")
    whole = round(seconds)
    if whole < 3600:
        return f"{whole // 60}m {whole % 60}s"
    minutes = round(seconds / 60)
    if minutes < 1440:
        return f"{minutes // 60}h {minutes % 60}m"
    hours = round(seconds / 3600)
    return f"{hours // 24}d {hours % 24}h"


def duration(seconds: float | None, none: str = NONE) -> str:
    """Return `2m 11s`, or a dash for what did not happen; a terminal has a dash of its own."""
    if seconds is None or not math.isfinite(seconds):
        return none
    return format_duration(seconds)


def size(count: float | None, none: str = NONE) -> str:
    """Return `3.1 GiB`, or a dash for what was not read."""
    if count is None or not math.isfinite(count):
        return none
    return format_size(int(count))


def number(value: float | None, digits: int = 3) -> str:
    """Return a figure with `digits` that count, grouped by commas when large."""
    if value is None or not math.isfinite(value):
        return NONE
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    if 10**digits <= abs(value) < 1e15:
        return f"{value:,.0f}"
    text = f"{value:.{digits}g}"
    if "e" in text:
        return f"{value:.2e}"
    return text


def value(item: object) -> str:
    """Return a value that a program gave: numbers with three figures that count, whole ones whole, none grouped.

    There is no exponent where a plain number is as short.
    """
    if isinstance(item, bool) or not isinstance(item, (int, float)):
        return str(item)
    if isinstance(item, int) or (item.is_integer() and abs(item) < 1e6):
        return str(int(item))
    if 1000 <= abs(item) < 1e6:
        return f"{item:.0f}"
    return f"{item:.3g}"


def score(value: float | None) -> str:
    """Return a quality in [0, 1] with two places, as papers print it."""
    if value is None or not math.isfinite(value):
        return NONE
    return f"{value:.2f}" if 0 <= value <= 1 else number(value)


def percent(share: float | None, places: int = 0) -> str:
    """Return `71 %` for 0.712."""
    if share is None or not math.isfinite(share):
        return NONE
    return f"{100 * share:.{places}f} %"


def quantity(value: float | None, unit: str) -> str:
    """Return a value with its unit, scaled where the unit has multiples."""
    if value is None or not math.isfinite(value):
        return NONE
    if unit == "bytes":
        return format_size(int(value))
    if unit == "bytes_per_s":
        return _per_second(value)
    if unit == "watts" and abs(value) >= 10_000:
        return f"{number(value / 1000)} kW"
    word = _PLAIN_UNITS.get(unit, unit)
    return f"{number(value)} {word}".rstrip()


def _per_second(value: float) -> str:
    for unit in ("B/s", "kB/s", "MB/s", "GB/s"):
        if abs(value) < 1000:
            return f"{number(value)} {unit}"
        value /= 1000
    return f"{number(value)} TB/s"


def clock(t: float | None) -> str:
    """Return Unix seconds as a time of day, UTC."""
    if t is None:
        return NONE
    return _moment(t).strftime("%H:%M:%S")


def date_and_clock(t: float | None) -> str:
    """Return Unix seconds as date and time of day, UTC."""
    if t is None:
        return NONE
    return _moment(t).strftime("%Y-%m-%d %H:%M:%S UTC")


def _moment(t: float) -> datetime:
    # A record may hold any number; `datetime` takes the years 1 to 9999 only.
    return datetime.fromtimestamp(max(0.0, min(t, 2.5e11)), UTC)


def unix(text: object) -> float | None:
    """Return ISO 8601 as Unix seconds, None when it is no time; a time without a zone is UTC."""
    if isinstance(text, int | float):
        return float(text)
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return moment.timestamp()


def metric_name(name: str) -> str:
    """Return `mean IoU` for `mean_iou`."""
    return _NAMES.get(name, name.replace("_", " "))


def count(number: int, noun: str, plural: str = "", grouped: bool = True) -> str:
    """Return `1 node`, `2 nodes`; thousands are grouped by commas unless told otherwise."""
    if number != 1:
        noun = plural or f"{noun}s"
    if grouped:
        return f"{number:,} {noun}"
    return f"{number} {noun}"


def fold(numbers: Iterable[int]) -> str:
    """Return `0-2, 4` for 0, 1, 2, 4."""
    ranges: list[list[int]] = []
    for member in sorted(set(numbers)):
        if ranges and member == ranges[-1][-1] + 1:
            ranges[-1] = [ranges[-1][0], member]
        else:
            ranges.append([member])
    return ", ".join("-".join(map(str, ends)) for ends in ranges)


def sentence(text: str) -> str:
    """Return a text with one full stop at its end."""
    return text if text.endswith((".", "!", "?")) else f"{text}."
