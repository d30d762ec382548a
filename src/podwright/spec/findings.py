"""Turns what the model check found into problems: our words, a place, and the nearest thing that is allowed.

The allowed names and the descriptions come from the JSON schema, so that they are written once, at the fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from podwright.spec.nearest import near, one_of
from podwright.spec.problems import Problem, short
from podwright.spec.yaml_document import Document, Path, SourcePlace, field_name, trap_hint


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong at a path.

    `on_key`: the key is at fault and not its value. `trap`: the value is of the wrong kind, and YAML may be the cause.
    """

    path: Path
    message: str
    hint: str | None = None
    on_key: bool = False
    trap: bool = False


class ModelShape:
    """A JSON schema that can be walked along a path; made only when there is something to say."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema

    def at(self, path: Iterable[str | int], tree: Any) -> dict[str, Any]:
        """Return the schema of the value at a path; the tree decides where a list has several kinds of entries."""
        node = self._open(self._schema, tree)
        for part in path:
            tree = _child(tree, part)
            if isinstance(part, int):
                node = node.get("items", {})
            else:
                node = node.get("properties", {}).get(part) or node.get("additionalProperties") or {}
            # `additionalProperties: true` allows anything and says nothing.
            if not isinstance(node, dict):
                node = {}
            node = self._open(node, tree)
        return node

    def _open(self, node: dict[str, Any], tree: Any) -> dict[str, Any]:
        """Follow references and pick the alternative that fits, keeping the field's own description."""
        description = node.get("description")
        while True:
            choices = node.get("anyOf") or node.get("oneOf") or []
            if "$ref" in node:
                node = self._schema["$defs"][node["$ref"].rpartition("/")[2]]
            elif "discriminator" in node:
                mapping = node["discriminator"]["mapping"]
                tag = _child(tree, node["discriminator"]["propertyName"])
                node = {}
                if isinstance(tag, str) and tag in mapping:
                    node = {"$ref": mapping[tag]}
            elif choices and not node.get("properties"):
                node = next((choice for choice in choices if "$ref" in choice or "items" in choice), choices[0])
            elif description:
                return {**node, "description": description}
            else:
                return node


def findings(errors: Iterable[Any], tree: Any, shape: Callable[[], ModelShape]) -> Iterator[Finding]:
    """Yield our words for each error of the model check."""
    for error in errors:
        path, on_key = _path(error, tree)
        speak = _WORDS.get(error["type"], _other)
        finding = speak(error, path, on_key, (shape(), tree))
        yield replace(finding, trap=not finding.on_key)


def problems(findings: Iterable[Finding], document: Document) -> list[Problem]:
    """Give findings their places, in the order of the file; those of the command line come last."""
    placed = [_placed(finding, document) for finding in findings if not _under(finding.path, document.broken)]
    return sorted(dict.fromkeys([*document.problems, *placed]), key=_order)


def _path(error: Any, tree: Any) -> tuple[Path, bool]:
    """Take the marks of unions out of an error's path, which the user never wrote."""
    parts: list[str | int] = []
    node, on_key = tree, False
    last = len(error["loc"]) - 1
    for index, part in enumerate(error["loc"]):
        if part == "[key]" and index == last:
            on_key = True
        elif _child(node, part, missing=...) is not ... or (index == last and error["type"] == "missing"):
            parts.append(part)
            node = _child(node, part)
    return tuple(parts), on_key


def _child(node: Any, part: str | int, missing: Any = None) -> Any:
    if isinstance(node, dict):
        return node.get(part, missing)
    if isinstance(node, list) and isinstance(part, int) and part < len(node):
        return node[part]
    return missing


def _under(path: Path, broken: set[Path]) -> bool:
    return any(path[:length] in broken for length in range(len(path) + 1))


def _order(problem: Problem) -> tuple[bool, int, int]:
    return problem.line is None, problem.line or 0, problem.column or 0


def _placed(finding: Finding, document: Document) -> Problem:
    path = finding.path
    place = document.places.get(path)
    while place is None and path:
        path = path[:-1]
        place = document.places.get(path)
    place = place or SourcePlace(document.file, None, None, None, None)
    line, column, hint = place.line, place.column, finding.hint
    if finding.on_key:
        line, column = place.key_line, place.key_column
    if finding.trap and path == finding.path and place.text is not None:
        hint = trap_hint(place.text) or hint
    return Problem(place.file, line, column, field_name(finding.path), finding.message, hint)


_Context = tuple[ModelShape, Any]


def _own(error: Any, path: Path, on_key: bool, context: _Context) -> Finding:
    return Finding(path, error["ctx"]["message"], error["ctx"]["hint"], on_key)


def _missing(error: Any, path: Path, on_key: bool, context: _Context) -> Finding:
    shape, tree = context
    description = shape.at(path, tree).get("description")
    hint = f"add `{path[-1]}:`"
    if description:
        hint += f" ({description})"
    return Finding(path, "is missing", hint)


def _unknown(error: Any, path: Path, on_key: bool, context: _Context) -> Finding:
    shape, tree = context
    name, allowed = str(path[-1]), shape.at(path[:-1], tree).get("properties", {})
    close = near(name, allowed)
    if close:
        hint = f"did you mean `{close}`?"
    elif inner := _inner_field(name, path[:-1], allowed, context):
        hint = f"did you mean `{field_name(inner)}`?"
    else:
        hint = f"{short(name)}: fields here are {', '.join(allowed)}"
    return Finding(path, "unknown field", hint, on_key=True)


def _inner_field(name: str, path: Path, allowed: Iterable[str], context: _Context) -> Path | None:
    """Return the field of this name, or else of one near it, that lies in one of these fields."""
    shape, tree = context
    inner = {key: shape.at((*path, key), tree).get("properties", {}) for key in allowed}
    for key, fields in inner.items():
        if name in fields:
            return (*path, key, name)
    for key, fields in inner.items():
        if close := near(name, fields):
            return (*path, key, close)
    return None


def _choice(error: Any, path: Path, on_key: bool, context: _Context) -> Finding:
    shape, tree = context
    value, noun = error["input"], _noun(path)
    allowed = [str(name) for name in shape.at(path, tree).get("enum", [])]
    shown = f'"{short(value)}"' if isinstance(value, str) else "this"
    return Finding(path, f"{shown} is not a {noun}", one_of(str(value), noun, allowed))


def _wrong_kind(error: Any, path: Path, on_key: bool, context: _Context) -> Finding:
    tag = error["ctx"]["tag"]
    name = error["ctx"]["discriminator"].strip("'")
    allowed = [part.strip(" '") for part in error["ctx"]["expected_tags"].split(",")]
    return Finding((*path, name), f'"{short(tag)}" is not a {name}', one_of(tag, name, allowed))


def _no_kind(error: Any, path: Path, on_key: bool, context: _Context) -> Finding:
    name = error["ctx"]["discriminator"].strip("'")
    return Finding((*path, name), "is missing", f"add `{name}:`")


def _mapping(error: Any, path: Path, on_key: bool, context: _Context) -> Finding:
    shape, tree = context
    names = list(shape.at(path, tree).get("properties", {}))
    hint = "write it as `name: value`"
    if names:
        hint = f"write it as names and values; its fields are {', '.join(names)}"
    return Finding(path, "must be a mapping", hint)


def _list(error: Any, path: Path, on_key: bool, context: _Context) -> Finding:
    return Finding(path, "must be a list", "write it as `[a, b]`, or as lines that start with `- `")


def _out_of_bounds(error: Any, path: Path, on_key: bool, context: _Context) -> Finding:
    bounds = {"ge": "{:g} or more", "gt": "more than {:g}", "le": "{:g} or less"}
    limits = [text.format(error["ctx"][name]) for name, text in bounds.items() if name in error["ctx"]]
    return Finding(path, f"must be {limits[0]}")


def _other(error: Any, path: Path, on_key: bool, context: _Context) -> Finding:
    return Finding(path, "is not of the right kind", on_key=on_key)


def _noun(path: Path) -> str:
    name = next((part for part in reversed(path) if isinstance(part, str)), "value")
    if isinstance(path[-1], int):
        return name.removesuffix("s")
    return name


_WORDS: dict[str, Callable[[Any, Path, bool, _Context], Finding]] = {
    "podwright": _own,
    "missing": _missing,
    "extra_forbidden": _unknown,
    "literal_error": _choice,
    "union_tag_invalid": _wrong_kind,
    "union_tag_not_found": _no_kind,
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), _mapping),
    **dict.fromkeys(("list_type", "tuple_type"), _list),
    **dict.fromkeys(("greater_than_equal", "greater_than", "less_than_equal"), _out_of_bounds),
}
