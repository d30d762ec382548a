"""What lists of runs are filtered and sorted by: each fact of a record by its name, as the index keeps it. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from podwright.spec.filter_fields import Field

if TYPE_CHECKING:
    from podwright.runs.record import Record

Value = str | float
"""SQLite keeps each as what it is, and every text lies above every number."""
COLUMNS = {"id": "id", "state": "state", "created": "created_at"}
"""Facts that the table of runs has a column for."""
FIELDS: dict[str, Field] = {
    field.name: field
    for field in (
        Field("id", "text", "column"),
        Field("name", "text", "fact"),
        Field("state", "text", "column"),
        Field("target", "text", "fact"),
        Field("user", "text", "fact"),
        Field("team", "text", "fact"),
        Field("tag", "text", "tag"),
        Field("created", "time", "column"),
        Field("duration_s", "duration", "fact"),
        Field("goodput", "number", "fact"),
        Field("cost", "number", "fact"),
    )
}
"""What a filter may name without a prefix, whatever programs call their values."""
PLACES = ("matrix", "results")
_LONGEST = 256
"""A longer name or text is no word that anybody would filter by."""


def place_field(place: str, name: str) -> Field:
    """Return the field of what was varied, or of what programs told: a text or a number."""
    return Field(f"{place}.{name}", "tag", "fact")


def facts_of(record: Record) -> Iterator[tuple[str, Value]]:
    """Yield the facts of a record, tags one by one; what is not known is left out."""
    fields = {name: getattr(record, name) for name in ("name", "target", "user", "team", "duration_s")}
    fields["cost"] = (record.cost or {}).get("amount")
    fields["goodput"] = (record.goodput or {}).get("share")
    for tag in record.tags:
        yield "tag", tag
    fields |= {f"matrix.{name}": value for name, value in (record.matrix or {}).items()}
    fields |= {f"results.{name}": value for name, value in record.results.items()}
    for name, value in fields.items():
        plain = _plain(value)
        if plain is not None and len(name) <= _LONGEST:
            yield name, plain


def _plain(value: Any) -> Value | None:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, str) and value and len(value) <= _LONGEST:
        return value.encode("utf-8", "replace").decode("utf-8")
    return None


def fact(record: Record, name: str) -> Any:
    """Return one fact of a record as it is shown; None where it is not known."""
    place, _, rest = name.partition(".")
    if place in PLACES and rest:
        return (getattr(record, place) or {}).get(rest)
    readers = {
        "created": record.created_at,
        "cost": (record.cost or {}).get("amount"),
        "goodput": (record.goodput or {}).get("share"),
        "tag": " ".join(record.tags) or None,
    }
    return readers[name] if name in readers else getattr(record, name)
