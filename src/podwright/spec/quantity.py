"""Sizes, rates, powers and times as people write them: `80GiB`, `400GB/s`, `6.5kW`, `1h30m`.

They are parsed here and nowhere else. A number without a unit is refused, since nobody can tell what was meant.
"""

from __future__ import annotations

import re
from decimal import Decimal

from podwright.spec.problems import Refusal, refuse, short

_SIZE_UNITS = {
    "B": 1,
    "kB": 1000,
    **{name: 1000**power for power, name in enumerate(("KB", "MB", "GB", "TB", "PB"), 1)},
    **{name: 1024**power for power, name in enumerate(("KiB", "MiB", "GiB", "TiB", "PiB"), 1)},
}
_BYTE_RATE_UNITS = {f"{name}/s": factor for name, factor in _SIZE_UNITS.items()}
_BIT_RATE_UNITS = {"Mb/s": Decimal("0.001"), "Gb/s": Decimal(1), "Tb/s": Decimal(1000)}
_POWER_UNITS = {"W": 1, "kW": 1000, "MW": 1000_000}
_TIME_UNITS = {
    "d": Decimal(86400),
    "h": Decimal(3600),
    "m": Decimal(60),
    "s": Decimal(1),
    "ms": Decimal("0.001"),
}
_TIME_NAMES = {
    **dict.fromkeys(("sec", "secs", "second", "seconds"), "s"),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), "m"),
    **dict.fromkeys(("hr", "hrs", "hour", "hours"), "h"),
    **dict.fromkeys(("day", "days"), "d"),
}

# Longer texts are no quantity, and a long run of digits would cost time to turn into a number.
_LONGEST = 40
_NUMBER = r"(\d+(?:\.\d+)?)"
_ONE = re.compile(_NUMBER + r"\s*([A-Za-z/]*)", re.ASCII)
_PERCENTAGE = re.compile(_NUMBER + r"\s*%", re.ASCII)
_TIME = re.compile(_NUMBER + r"\s*([A-Za-z]+)\s*", re.ASCII)


def size_bytes(text: str) -> int:
    """Return the bytes of a size (`80GiB`)."""
    return _whole_bytes(text, "size", "80GiB", _SIZE_UNITS)


def bandwidth_bytes_s(text: str) -> int:
    """Return the bytes per second of a bandwidth (`400GB/s`)."""
    return _whole_bytes(text, "bandwidth", "400GB/s", _BYTE_RATE_UNITS)


def speed_gbps(text: str) -> float:
    """Return the gigabits per second of a link's speed (`200Gb/s`)."""
    number, unit = _split(text, "speed", "200Gb/s")
    if unit not in _BIT_RATE_UNITS:
        raise _unit_refusal(text, number, unit, "speed", _BIT_RATE_UNITS)
    return float(number * _BIT_RATE_UNITS[unit])


def power_w(text: str) -> float:
    """Return the watts of a power (`6.5kW`)."""
    number, unit = _split(text, "power", "6.5kW")
    if unit not in _POWER_UNITS:
        raise _unit_refusal(text, number, unit, "power", _POWER_UNITS)
    return float(number * _POWER_UNITS[unit])


def duration_s(text: str) -> float:
    """Return the seconds of a time (`500ms`, `2h`, `1h30m`); its parts go from long to short."""
    position, seconds, last = 0, Decimal(0), Decimal("Infinity")
    stripped = _bounded(text, "time", "1h30m")
    while position < len(stripped):
        match = _TIME.match(stripped, position)
        if match is None:
            raise _time_refusal(text, stripped)
        factor = _TIME_UNITS.get(match[2])
        if factor is None or factor >= last:
            raise _time_refusal(text, stripped)
        seconds, last, position = seconds + Decimal(match[1]) * factor, factor, match.end()
    return float(seconds)


def percentage(text: str) -> float:
    """Return the part of one that a percentage is (`30%`)."""
    match = _PERCENTAGE.fullmatch(text.strip()[: _LONGEST + 1])
    if match is None:
        raise refuse(f'"{short(text)}" is not a percentage', hint="write it like `30%`")
    return float(Decimal(match[1]) / 100)


def exact_percentage(part: float) -> str:
    """Return the text that `percentage` reads back as exactly this number."""
    return f"{(Decimal(repr(part)) * 100).normalize():f}%"


def exact_size(size: int) -> str:
    """Return the shortest text that `size_bytes` reads back as exactly this number."""
    units = ("PiB", "PB", "TiB", "TB", "GiB", "GB", "MiB", "MB", "KiB", "kB")
    fitting = next((unit for unit in units if size and size % _SIZE_UNITS[unit] == 0), "B")
    return f"{size // _SIZE_UNITS[fitting]}{fitting}"


def exact_duration(seconds: float) -> str:
    """Return a text that `duration_s` reads back as exactly this number, whole units where they fit."""
    if seconds != int(seconds):
        milliseconds = Decimal(repr(seconds)) * 1000
        return f"{milliseconds.normalize():f}ms"
    rest, parts = int(seconds), []
    for unit in ("d", "h", "m", "s"):
        count, rest = divmod(rest, int(_TIME_UNITS[unit]))
        if count:
            parts.append(f"{count}{unit}")
    return "".join(parts) or "0s"


def _bounded(text: str, what: str, example: str) -> str:
    stripped = text.strip()
    if not stripped or len(stripped) > _LONGEST:
        raise refuse(f"must be a {what} with a unit", hint=f"write it like `{example}`")
    return stripped


def _split(text: str, what: str, example: str) -> tuple[Decimal, str]:
    match = _ONE.fullmatch(_bounded(text, what, example))
    if match is None:
        raise refuse(f'"{short(text)}" is not a {what}', hint=f"a {what} is a number and a unit, like `{example}`")
    if not match[2]:
        raise refuse(f'"{short(text)}" has no unit', hint=f"write the {what} with its unit, like `{example}`")
    return Decimal(match[1]), match[2]


def _whole_bytes(text: str, what: str, example: str, units: dict[str, int]) -> int:
    number, unit = _split(text, what, example)
    if unit not in units:
        raise _unit_refusal(text, number, unit, what, units)
    value = number * units[unit]
    if value != int(value):
        raise refuse(f'"{short(text)}" is not a whole number of bytes', hint="write it in a smaller unit")
    return int(value)


def _unit_refusal(
    text: str, number: Decimal, unit: str, what: str, units: dict[str, int] | dict[str, Decimal]
) -> Refusal:
    folded = {known.lower(): known for known in units}
    if what == "size" and len(unit) == 1 and unit.upper() in "KMGTP":
        decimal, binary = f"{unit.upper()}B", f"{unit.upper()}iB"
        if unit.upper() == "K":
            decimal = "kB"
        hint = f"write `{number}{decimal}` (powers of 1000) or `{number}{binary}` (powers of 1024)"
    elif unit.lower() in folded or unit.lower() + "b" in folded:
        hint = f"did you mean `{number}{folded.get(unit.lower()) or folded[unit.lower() + 'b']}`?"
    else:
        hint = f"units of a {what} are {', '.join(units)}"
    return refuse(f'"{short(text)}" has no unit of a {what}', hint=hint)


def _time_refusal(text: str, stripped: str) -> Refusal:
    match = _ONE.fullmatch(stripped)
    hint = "write it like `30s`, `2h` or `1h30m`; units are d, h, m, s, ms"
    if match is not None:
        if not match[2]:
            return refuse(f'"{short(text)}" has no unit', hint=f"did you mean `{match[1]}s`? units are d, h, m, s, ms")
        unit = _TIME_NAMES.get(match[2].lower())
        if unit is not None:
            hint = f"did you mean `{match[1]}{unit}`?"
    return refuse(f'"{short(text)}" is not a time', hint=hint)
