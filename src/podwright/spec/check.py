"""Checks a document against a model and gives all that is wrong with it at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from podwright.spec.findings import Finding, ModelShape, findings, problems
from podwright.spec.problems import Refusal, refuse
from podwright.spec.yaml_document import Document, Path, walk

Model = TypeVar("Model", bound=BaseModel)
Check = Callable[[dict[str, Any]], Iterable[Finding]]


def checked(
    model: type[Model], document: Document, checks: Iterable[Check] = (), before: Iterable[Finding] = ()
) -> Model:
    """Return the model of a document, or refuse with every problem of YAML, fields and checks together."""
    tree = mapping(document)
    wrong = [*before]
    value: Model | None = None
    try:
        value = model.model_validate(tree)
    except ValidationError as error:
        taken = {finding.path for finding in wrong}
        by_model = findings(error.errors(include_url=False), tree, lambda: shape(model))
        wrong += [finding for finding in by_model if finding.path not in taken]
    for check in checks:
        wrong += check(tree)
    placed = problems(wrong, document)
    if placed or value is None:
        raise Refusal(placed)
    return value


def mapping(document: Document) -> dict[str, Any]:
    """Return the top of the document, which must be a mapping."""
    if isinstance(document.value, dict):
        return document.value
    if document.problems:
        raise Refusal(document.problems)
    if document.value is None:
        raise refuse(
            "is empty",
            hint="`podwright schema workload` and `podwright schema pod` say what goes in",
            file=document.file,
        )
    kind = "a list" if isinstance(document.value, list) else "a single value"
    raise refuse(f"holds {kind} at the top, not fields", hint="write `name: value` lines", file=document.file)


@cache
def shape(model: type[BaseModel]) -> ModelShape:
    """Return the model's fields with their descriptions, to word problems with."""
    return ModelShape(model.model_json_schema(by_alias=True))


def no_gaps(tree: dict[str, Any], free: Path | None = None) -> Iterator[Finding]:
    """Find fields without a value and numbers that are none; below `free` anything goes."""
    for path, value in walk(tree):
        if value is None and (free is None or path[: len(free)] != free):
            yield Finding(path, "has no value", "give it one, or take the line out")
        elif isinstance(value, float) and value - value != 0:
            yield Finding(path, "must be a finite number")
