"""JSON objects that somebody else may have written, read into our classes with the type of every field checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from functools import cache
from typing import Any, NamedTuple

from podwright.runs import fields as readers
from podwright.spec.problems import Refusal
from podwright.spec.quantity import duration_s

OPTIONAL = " | None"
DEFAULT_GRACE = "30s"


def _mapping(value: object) -> dict[str, Any] | None:
    if not isinstance(value, dict):
        return None
    return value


def texts(value: object) -> list[str] | None:
    """Return a list of texts; None for anything else."""
    items = readers.every(readers.text)(value)
    if items is None:
        return None
    return list(items)


Reader = Callable[[object], Any]
BY_TYPE: Mapping[str, Reader] = {
    "str": readers.text,
    "int": readers.node,
    "float": readers.number,
    "dict[str, Any]": _mapping,
    "dict[str, float]": readers.numbers,
    "list[str]": texts,
    "tuple[str, ...]": readers.every(readers.text),
    "tuple[int, int]": readers.epoch,
}
"""How a field is read, by its type as it is written in the class. Whole numbers count something: none is negative."""
BY_NAME: Mapping[str, Reader] = {
    "created_at": readers.moment,
    "started_at": readers.moment,
    "ended_at": readers.moment,
    "exit_code": readers.whole,
}


class FieldReader(NamedTuple):
    """How a field is read."""

    name: str
    read: Reader
    may_be_none: bool
    is_required: bool


@cache
def _readers_of(kind: type) -> tuple[FieldReader, ...]:
    slots = []
    for field in fields(kind):
        written = str(field.type)
        read = BY_NAME.get(field.name) or BY_TYPE[written.removesuffix(OPTIONAL)]
        is_required = field.default is MISSING and field.default_factory is MISSING
        slots.append(FieldReader(field.name, read, written.endswith(OPTIONAL), is_required))
    return tuple(slots)


def read_fields(kind: type, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of a dataclass by name; ValueError says in words what is wrong. Names unknown are left out."""
    values = {}
    for slot in _readers_of(kind):
        if slot.name not in row:
            if slot.is_required:
                raise ValueError(f"{slot.name} is missing")
            continue
        given = row[slot.name]
        values[slot.name] = slot.read(given)
        is_none = given is None and slot.may_be_none
        if values[slot.name] is None and not is_none:
            raise ValueError(f"{slot.name} is of another type")
    return values


def goal_of(value: object) -> dict[str, Any] | None:
    """Return the goal of a workload; None where there is none, or what stands there is none."""
    if not isinstance(value, dict) or readers.text(value.get("metric")) is None:
        return None
    bounds = [value.get("at_least"), value.get("at_most")]
    given = [bound for bound in bounds if bound is not None]
    if not given or any(readers.number(bound) is None for bound in given):
        return None
    return value


def grace_s_of(workload: Mapping[str, Any]) -> float:
    """Return how long ranks of a workload have to end, from the word to the kill."""
    try:
        return duration_s(str(workload.get("grace", DEFAULT_GRACE)))
    except Refusal:
        return duration_s(DEFAULT_GRACE)
