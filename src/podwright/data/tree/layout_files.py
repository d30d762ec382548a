"""Layouts that a user writes: a path for each role of a sample, what is read from it in brackets, and the classes.

    files:
      image: "cam/{drive}/{frame:int}.jpg"
      label: "seg/{drive}/{frame:int}_mask.png"
    classes: {road: "#804080", car: ["#00008e", "#000046"], person: 11}
    group: drive

A catalog keeps the text of its layout, so it is read where the file is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from podwright.data.tree.layouts import FileRole, Layout, TypedColumn, grey_of
from podwright.spec.findings import Finding
from podwright.spec.forms import read_text
from podwright.spec.source import decode, read_source
from podwright.spec.types import Line, Name, Strict

EXAMPLE = "docs/data.md"
_ROLE = r"[a-z][a-z0-9_]{0,30}"
_PLACE = re.compile(r"\{([a-z][a-z0-9_]{0,30})(?::(int))?\}")
_PART = re.compile(rf"{_PLACE.pattern}|\*\*/|\*")
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")
_TAKEN = ("path", "folder", "name", "ext", "type", "size", "mtime", "owner", "group", "mode", "sha256", "class", "role")
_ROLE_COLUMN = "role"
_MAX_ID = 255


class LayoutFile(Strict):
    """A layout in ten lines."""

    name: Name | None = Field(default=None, description="left out: that of the file")
    files: dict[str, Line] = Field(min_length=1, description="the path of each role; the first is what a model sees")
    optional: tuple[str, ...] = Field(default=(), description="roles that a sample may lack")
    classes: dict[Line, str | int | tuple[str | int, ...]] = Field(
        default_factory=dict, description="of label images: colours such as `#804080`, or grey values"
    )
    group: str | None = Field(default=None, description="what is never torn apart by a split")
    beside: tuple[Line, ...] = Field(default=(), description="files below the root that programs want, too")


def read_layout(path: Path) -> Layout:
    """Return the layout of a file, or refuse it with every problem at once."""
    text = decode(read_source(path), str(path))
    return parse_layout(text, str(path), re.sub(r"[^a-z0-9._-]", "-", path.stem.lower()) or "layout")


def parse_layout(text: str, file: str, stem: str = "layout") -> Layout:
    """Return the layout of a text, which it has with it from then on."""
    written = read_text(LayoutFile, text, file, (_check,), example=EXAMPLE)
    if written.name is None:
        text = f"name: {stem}\n{text}"
    name = written.name or stem
    return Layout(
        name=name,
        mark="",
        least_share=0.0,
        columns=tuple(_columns(written.files)),
        key=tuple(_shared(written.files)),
        roles=tuple(FileRole(role, {_ROLE_COLUMN: role}) for role in written.files),
        needs=tuple(role for role in written.files if role not in written.optional),
        group=written.group,
        labels="colours" if written.classes else None,
        label_role="label" if "label" in written.files else next(iter(written.files)),
        classes=tuple((label, _colours(value)) for label, value in written.classes.items()),
        beside=written.beside,
        written=text,
    )


def _columns(files: Mapping[str, str]) -> Iterator[TypedColumn]:
    """Yield a column for each name in brackets, read from whichever path a file fits, and one for its role."""
    for name, kind in _places(files).items():
        patterns = [_pattern(path, name) for path in files.values() if name in _names(path)]
        yield TypedColumn(name, kind, "path", patterns[0], others=tuple(patterns[1:]))
    patterns = [_pattern(path, None) for path in files.values()]
    yield TypedColumn(_ROLE_COLUMN, "text", "path", patterns[0], others=tuple(patterns[1:]), values=tuple(files))


def _pattern(path: str, wanted: str | None) -> str:
    """Return the regular expression of a path, whose group is what stands in these brackets the first time."""
    parts, at, seen = ["^"], 0, False
    for match in _PART.finditer(path):
        parts.append(re.escape(path[at : match.start()]))
        at = match.end()
        inner = {"**/": "(?:[^/]+/)*", "*": "[^/]*"}.get(match[0], r"\d{1,18}" if match[2] else "[^/]+?")
        takes = match[1] == wanted and wanted is not None and not seen
        seen = seen or takes
        parts.append(f"({inner})" if takes else inner)
    return "".join([*parts, re.escape(path[at:]), "$"])


def _places(files: Mapping[str, str]) -> dict[str, Literal["text", "whole"]]:
    places: dict[str, Literal["text", "whole"]] = {}
    for path in files.values():
        for name, kind in _PLACE.findall(path):
            places.setdefault(name, "whole" if kind else "text")
    return places


def _names(path: str) -> set[str]:
    return {name for name, _ in _PLACE.findall(path)}


def _shared(files: Mapping[str, str]) -> Sequence[str]:
    """Return what all paths of a sample have in common."""
    if len(files) == 1:
        return []
    every = set.intersection(*map(_names, files.values()))
    return [name for name in _places(files) if name in every]


def _colours(value: str | int | Sequence[str | int]) -> tuple[int, ...]:
    several = [value] if isinstance(value, str | int) else value
    return tuple(grey_of(one) if isinstance(one, int) else int(one[1:], 16) for one in several)


def _check(tree: dict[str, Any]) -> Iterator[Finding]:
    """Find what no model of fields can: roles, brackets, colours, and names that nothing has."""
    files = tree.get("files")
    if not isinstance(files, dict) or not all(isinstance(path, str) for path in files.values()):
        return
    yield from _check_paths(files)
    columns = _places(files)
    if tree.get("group") is not None and tree["group"] not in columns:
        yield Finding(("group",), "is in no path", f"paths have {', '.join(columns) or 'no brackets'}")
    for index, role in enumerate(tree.get("optional") or ()):
        if role not in files:
            yield Finding(("optional", index), "is no role", f"roles are {', '.join(files)}")
    if len(files) > 1 and not _shared(files):
        hint = 'write what tells samples apart in all of them, as `{frame}` in "cam/{frame}.jpg" and "seg/{frame}.png"'
        yield Finding(("files",), "have nothing in brackets in common, so nothing joins them", hint)
    classes = tree.get("classes")
    for name, value in classes.items() if isinstance(classes, dict) else ():
        several = value if isinstance(value, list) else [value]
        if not several or not all(map(_is_colour, several)):
            yield Finding(
                ("classes", name), "is no colour", 'write "#804080", or the grey value of its pixels, 0 to 255'
            )


def _check_paths(files: Mapping[str, str]) -> Iterator[Finding]:
    for role, path in files.items():
        if not re.fullmatch(_ROLE, role):
            yield Finding(("files", role), "is no name of a role", "write it like `image` or `label`")
        if path.startswith("/") or ".." in path.split("/"):
            yield Finding(("files", role), "leads out of the dataset", "write it as it lies below the root")
        rest = _PART.sub("", path)
        if "{" in rest or "}" in rest:
            yield Finding(("files", role), "has brackets that are not `{name}` or `{name:int}`", "names are lower-case")
        for name in sorted(_names(path) & {*_TAKEN}):
            yield Finding(
                ("files", role), f"{name} is a column of every dataset", "give what is in brackets another name"
            )


def _is_colour(value: object) -> bool:
    if isinstance(value, str):
        return _COLOUR.fullmatch(value) is not None
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _MAX_ID
