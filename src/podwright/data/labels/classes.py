"""Which classes a dataset's labels have: in label images each has colours, elsewhere a name."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

from podwright.data.labels.images import LabelClass
from podwright.data.tree.layouts import Layout
from podwright.spec.problems import refuse

CLASS_LIST = ("class_list.json", "camera_lidar_semantic/class_list.json")
"""Where A2D2 has its list, below the root."""
_COLOUR = re.compile(r"#[0-9a-fA-F]{6}")


def classes_of(layout: Layout, root: Path) -> list[LabelClass]:
    """Return the classes that are known before any label was read, in the dataset's order."""
    if layout.labels != "colours":
        return []
    if layout.classes:
        return [LabelClass(name, colours) for name, colours in layout.classes]
    for name in CLASS_LIST:
        path = root / name
        if path.is_file():
            return grouped(_class_list(path))
    return published_classes()


def published_classes() -> list[LabelClass]:
    """Return the classes of A2D2, as it was published."""
    return grouped(_published())


def grouped(labels: Mapping[str, str]) -> list[LabelClass]:
    """Return the classes of a list of colours: `Car 1` to `Car 4` tell instances apart and are one class."""
    by_name: dict[str, list[int]] = {}
    for colour, label in labels.items():
        name = re.sub(r" \d+$", "", label.strip())
        by_name.setdefault(name, []).append(int(colour[1:], 16))
    return [LabelClass(name, tuple(colours)) for name, colours in by_name.items()]


def _published() -> dict[str, str]:
    text = files("podwright.data.labels").joinpath("a2d2_classes.csv").read_text(encoding="utf-8")
    return {row["colour"]: row["label"] for row in csv.DictReader(text.splitlines())}


def _class_list(path: Path) -> dict[str, str]:
    try:
        text = path.read_bytes()
    except OSError as error:
        raise refuse(f"cannot be read: {error}", hint="A2D2's list is JSON", file=str(path)) from None
    return parse_class_list(text, str(path))


def parse_class_list(text: bytes, path: str) -> dict[str, str]:
    """Return the names of a list of colours, or refuse its file."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise refuse(f"cannot be read: {error}", hint="A2D2's list is JSON", file=path) from None
    if not isinstance(document, dict) or not all(map(_is_entry, document.items())):
        hint = 'write it like {"#ff0000": "Car 1"}'
        raise refuse("is no list of colours and their names", hint=hint, file=path)
    return document


def _is_entry(entry: tuple[object, object]) -> bool:
    colour, label = entry
    return isinstance(colour, str) and _COLOUR.fullmatch(colour) is not None and isinstance(label, str)
