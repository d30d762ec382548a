"""Settings of the command line (`--set resources.gpus=4`), laid over a file's values before they are checked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from podwright.spec.problems import Problem, Refusal, short
from podwright.spec.yaml_document import DEEPEST, Document, SourcePlace, parse

SOURCE = "--set"

_HINT = "write it like `--set resources.gpus=4`"


def apply_sets(document: Document, sets: Iterable[str]) -> None:
    """Lay the settings over the document; what is wrong with one is a problem of the document."""
    for setting in sets:
        name, equals, text = setting.partition("=")
        parts = tuple(name.strip().split("."))
        if not equals or not all(parts) or len(parts) > DEEPEST:
            _say(document, "", f'"{short(setting)}" is not a setting', _HINT)
            continue
        try:
            given = parse(text, SOURCE)
        except Refusal as refusal:
            _say(document, name, refusal.problems[0].message, refusal.problems[0].hint)
            continue
        document.problems += [replace(problem, line=None, column=None, field=name) for problem in given.problems]
        _put(document, parts, given)


def _put(document: Document, parts: tuple[str, ...], given: Document) -> None:
    node: Any = document.value
    for index, part in enumerate(parts[:-1]):
        if node.get(part) is None:
            node[part] = {}
            document.places[parts[: index + 1]] = SourcePlace(SOURCE, None, None, None, None)
        node = node[part]
        if not isinstance(node, dict):
            _say(document, ".".join(parts), f"`{'.'.join(parts[: index + 1])}` has no fields to set", _HINT)
            return
    _forget(document, parts)
    if given.value is None:
        node.pop(parts[-1], None)
        return
    node[parts[-1]] = given.value
    for path, place in given.places.items():
        document.places[(*parts, *path)] = SourcePlace(SOURCE, None, None, None, None, place.text)


def _forget(document: Document, parts: tuple[str, ...]) -> None:
    """Forget what the file said there, and what was wrong with it."""
    for path in [path for path in document.places if path[: len(parts)] == parts]:
        del document.places[path]
    document.broken = {path for path in document.broken if path[: len(parts)] != parts}


def _say(document: Document, name: str, message: str, hint: str | None) -> None:
    document.problems.append(Problem(SOURCE, None, None, short(name), message, hint))
