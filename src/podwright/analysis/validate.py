"""Events as the report may rely on them: every field of its own type, in the order of time. Pure."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from podwright.analysis.data import Event


def _whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _text(value: object) -> bool:
    return isinstance(value, str)


def _wholes(value: object) -> bool:
    return isinstance(value, list) and all(_whole(item) for item in value)


def _texts(value: object) -> bool:
    return isinstance(value, list) and all(_text(item) for item in value)


def _rows(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, Mapping) for item in value)


_KINDS_OF_FIELD: Mapping[str, Callable[[object], bool]] = {
    **dict.fromkeys(("n", "q", "rank", "local_rank", "node", "attempt", "world_size", "of", "gpu"), _whole),
    **dict.fromkeys(("t", "took_s", "after_s", "silent_s", "bytes", "memory_bytes", "value", "exit_code"), _number),
    **dict.fromkeys(("k", "host", "why", "text", "what", "name", "reason", "state", "metric", "error"), _text),
    **dict.fromkeys(("e", "cores", "stopped"), _wholes),
    **dict.fromkeys(("hosts", "tail", "nics"), _texts),
    "gpus": _rows,
    "values": lambda value: isinstance(value, Mapping),
}


def tidy(events: Iterable[Mapping[str, Any]]) -> tuple[Event, ...]:
    """The events without fields of a wrong type, which count as not told; an event without a time or kind is none.

    A record may be torn, or written by another version; one odd value must not cost the page.
    """
    kept = ({name: value for name, value in event.items() if _fits(name, value)} for event in events)
    return tuple(sorted((event for event in kept if "t" in event and "k" in event), key=_when))


def _fits(name: str, value: object) -> bool:
    fits = _KINDS_OF_FIELD.get(name)
    return fits is None or (value is None and name not in ("t", "k", "n")) or fits(value)


def _when(event: Event) -> tuple[float, int]:
    return float(event["t"]), int(event.get("q") or 0)
