"""One call that checks the text of a further kind of file against a model of the types that pod and workload have."""

from __future__ import annotations

from collections.abc import Iterable

from podwright.spec.check import Check, Model, checked, mapping, no_gaps
from podwright.spec.problems import refuse
from podwright.spec.yaml_document import parse


def read_text(model: type[Model], text: str, file: str, checks: Iterable[Check] = (), *, example: str = "") -> Model:
    """Return the model of a YAML text, or refuse with every problem at once, each with its place."""
    document = parse(text, file)
    if document.value is None and not document.problems:
        hint = f"{example} shows what goes in" if example else None
        raise refuse("is empty", hint=hint, file=file)
    return checked(model, document, checks, no_gaps(mapping(document)))
