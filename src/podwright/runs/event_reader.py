"""Reads rows of a run's files into events and samples; no row, whatever it is, makes a reader raise.

A field without a default is one that an event means nothing without: where it is missing, or of another type, the event
cannot be understood. Any other field that is missing or of another type counts as not told. A kind that no class has
was written by a newer version, and cannot be understood either.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from podwright.pilot.protocol import KEY_EPOCH, KEY_KIND, KEY_NODE, KEY_SEQUENCE, KEY_TIME, KEY_VALUES
from podwright.runs import fields
from podwright.runs.events import Event, PilotEvent, ResultTold, Sample, fields_of
from podwright.runs.states import BY_END


def _kinds(base: type[Event]) -> Iterator[type[Event]]:
    for kind in base.__subclasses__():
        if kind.kind:
            yield kind
        if kind is not PilotEvent:
            yield from _kinds(kind)


OF_PILOTS: Mapping[str, type[Event]] = {kind.kind: kind for kind in _kinds(PilotEvent)}
OF_OTHERS: Mapping[str, type[Event]] = {kind.kind: kind for kind in _kinds(Event)}
"""Kinds without a node. An `end` is the pilots' own when it names one, else the engine's."""

KEYS = {
    "time": KEY_TIME,
    "epoch": KEY_EPOCH,
    "node": KEY_NODE,
    "sequence": KEY_SEQUENCE,
    "at_node": "node",
    "size_bytes": "bytes",
    "mllog": "values",
}
"""The key of a field in a row, where it is not the field's own name."""


def _end_state(value: object) -> str | None:
    """Read how a run ended: by a state that nobody knows an end cannot be understood, and must not change the run's."""
    if not isinstance(value, str) or value not in BY_END:
        return None
    return value


def _mllog(values: object) -> str | None:
    """Read the key of an MLLOG line, which pilots put among its numbers."""
    if not isinstance(values, dict):
        return None
    return fields.text(values.get("mllog"))


Reader = Callable[[object], Any]
READERS: Mapping[str, Reader] = {
    "EndState": _end_state,
    "Epoch": fields.epoch,
    "Rows": fields.rows,
    "Values": fields.numbers,
    "float": fields.number,
    "int": fields.whole,
    "str": fields.text,
    "tuple[int, ...]": fields.every(fields.whole),
    "tuple[str, ...]": fields.every(fields.text),
}
"""How a field is read, by its type as it is written in the class."""
NAMED_READERS: Mapping[str, Reader] = {
    "time": fields.moment,
    "node": fields.node,
    "at_node": fields.node,
    "mllog": _mllog,
}


class Slot(NamedTuple):
    """Where a field of an event comes from."""

    name: str
    key: str
    read: Reader
    is_required: bool


_SLOTS: dict[type[Event], tuple[Slot, ...]] = {}


def slots_of(kind: type[Event]) -> tuple[Slot, ...]:
    """Return where each field of a kind comes from; worked out when the first of the kind is read."""
    if kind in _SLOTS:
        return _SLOTS[kind]
    slots = []
    for name, (written, is_required) in fields_of(kind).items():
        reader = NAMED_READERS.get(name) or READERS[written.removesuffix(" | None")]
        slots.append(Slot(name, KEYS.get(name, name), reader, is_required))
    _SLOTS[kind] = tuple(slots)
    return _SLOTS[kind]


def parse_event(row: object) -> Event | None:
    """Return the event that a row holds, or None when it cannot be understood."""
    if not isinstance(row, dict):
        return None
    kinds: Mapping[str, type[Event]] = OF_PILOTS if KEY_NODE in row else OF_OTHERS
    kind = kinds.get(fields.text(row.get(KEY_KIND)) or "")
    if kind is None:
        return None
    values: dict[str, Any] = {}
    for slot in slots_of(kind):
        value = slot.read(row.get(slot.key))
        if value is not None:
            values[slot.name] = value
        elif slot.is_required:
            return None
    return kind(**values)


def parse_sample(row: object) -> Sample | None:
    """Return the sample that a row holds, without values that are no numbers; None when it cannot be understood."""
    if not isinstance(row, dict):
        return None
    time, node = fields.moment(row.get(KEY_TIME)), fields.node(row.get(KEY_NODE))
    epoch, values = fields.epoch(row.get(KEY_EPOCH)), fields.numbers(row.get(KEY_VALUES))
    if time is None or node is None or epoch is None or values is None:
        return None
    return Sample(time, epoch, node, values)


def last_results(events: Iterable[Event]) -> list[Event]:
    """Return events, and of the values that each rank told only the last: one who joins late needs no history."""
    others: list[Event] = []
    last: dict[int, ResultTold] = {}
    for event in events:
        if not isinstance(event, ResultTold):
            others.append(event)
        elif event.rank in last:
            values = {**last[event.rank].values, **event.values}
            last[event.rank] = ResultTold(**{**vars(event), "values": values})
        else:
            last[event.rank] = event
    return [*others, *last.values()]
