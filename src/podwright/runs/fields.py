"""Fields of a row that somebody else wrote: each reader gives a value of its type, or None for anything else.

A record may be torn, damaged, or written by another version; no reader raises, whatever the value is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from podwright.pilot.protocol import Epoch

LATEST_S = 250_000_000_000.0
"""In the year 9892: a later moment is no date that could be shown."""
NODES = 1 << 31
NUMBERS = 1 << 63
"""What Parquet and SQLite can hold; a greater number was not written by a pilot."""


def number(value: object) -> float | None:
    """Return a finite number; as it is, since a count must not turn into a fraction in JSON."""
    if not isinstance(value, float):
        return whole(value)
    if not math.isfinite(value):
        return None
    return value


def whole(value: object) -> int | None:
    """Return a whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    if not -NUMBERS <= value < NUMBERS:
        return None
    return value


def moment(value: object) -> float | None:
    """Return Unix seconds."""
    seconds = number(value)
    if seconds is None or not 0 <= seconds <= LATEST_S:
        return None
    return float(seconds)


def node(value: object) -> int | None:
    """Return the number of a node."""
    index = whole(value)
    if index is None or not 0 <= index < NODES:
        return None
    return index


def epoch(value: object) -> Epoch | None:
    """Return an epoch that was written as `[restart, retry]`."""
    if not isinstance(value, list) or len(value) != 2:
        return None
    restart, retry = whole(value[0]), node(value[1])
    if restart is None or restart < 0 or retry is None:
        return None
    return restart, retry


def text(value: object) -> str | None:
    """Return a text that can be printed: JSON may hold halves of characters, which no file or terminal takes."""
    if not isinstance(value, str):
        return None
    if value.isascii():
        return value
    return value.encode("utf-8", "replace").decode("utf-8")


def every(read: Callable[[object], Any]) -> Callable[[object], tuple[Any, ...] | None]:
    """Return a reader of lists: all items, or None when one of them is of another type."""

    def read_all(value: object) -> tuple[Any, ...] | None:
        if not isinstance(value, list):
            return None
        items = tuple(read(item) for item in value)
        if None in items:
            return None
        return items

    return read_all


def rows(value: object) -> tuple[Mapping[str, str | float], ...] | None:
    """Return a list of JSON objects, of which only texts and numbers are kept."""
    if not isinstance(value, list):
        return None
    return tuple(_texts_and_numbers(item) for item in value if isinstance(item, dict))


def _texts_and_numbers(row: Mapping[object, object]) -> dict[str, str | float]:
    kept: dict[str, str | float] = {}
    for key, item in row.items():
        name, value = text(key), text(item) or number(item)
        if name is not None and value is not None:
            kept[name] = value
    return kept


def numbers(value: object) -> dict[str, float] | None:
    """Return numbers by name, without entries that are none."""
    if not isinstance(value, dict):
        return None
    kept: dict[str, float] = {}
    for key, item in value.items():
        name, figure = text(key), number(item)
        if name is not None and figure is not None:
            kept[name] = figure
    return kept
