"""What a further kind of file is made of: field types, findings, and one call that checks a text against a model.

Pod and workload are built of the same parts; whoever adds a third kind of file needs no more than this module.
"""

from __future__ import annotations

from collections.abc import Iterable

from podwright.spec.check import Check, Model, checked, mapping, no_gaps
from podwright.spec.findings import Finding
from podwright.spec.problems import refuse
from podwright.spec.types import Bandwidth, Count, Duration, Line, Name, Number, Ratio, Size, Speed, Strict, Whole
from podwright.spec.yaml_document import parse

__all__ = [
    "Bandwidth",
    "Count",
    "Duration",
    "Finding",
    "Line",
    "Name",
    "Number",
    "Ratio",
    "Size",
    "Speed",
    "Strict",
    "Whole",
    "read_text",
]


def read_text(model: type[Model], text: str, file: str, checks: Iterable[Check] = (), *, example: str = "") -> Model:
    """Return the model of a YAML text, or refuse with every problem at once, each with its place."""
    document = parse(text, file)
    if document.value is None and not document.problems:
        hint = f"{example} shows what goes in" if example else None
        raise refuse("is empty", hint=hint, file=file)
    return checked(model, document, checks, no_gaps(mapping(document)))
