"""The page of a selection: where its samples come from, which classes its splits hold, and some of its frames."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podwright.report.page import page
from podwright.report.write import write_page
from podwright.theme import words

if TYPE_CHECKING:
    from podwright.data.selecting.frames import FramePicture
    from podwright.data.selecting.selections import Selection

_SECTIONS = (("verdict", "Selection"), ("splits", "Splits"), ("classes", "Classes"), ("frames", "Frames"))


def write_selection_page(selection: Selection, path: Path) -> Path:
    """Write the page of a selection, with pictures of its frames, and return its path."""
    return write_page(path, render_selection(selection, _pictures(selection), time.time()))


def _pictures(selection: Selection) -> dict[str, list[FramePicture]]:
    # Lazily: Pillow and NumPy are slow to import.
    from podwright.data.selecting.frames import pictures_of

    return {name: list(pictures_of(selection, name)) for name in selection.splits}


def view_of_selection(selection: Selection) -> dict[str, Any]:
    """Return what the pages of others than the report show of a selection."""
    return _view(selection, _pictures(selection))


def render_selection(selection: Selection, pictures: Mapping[str, Sequence[FramePicture]], now: float) -> str:
    """Return the page of a selection."""
    view = {**_view(selection, pictures), "sections": _SECTIONS, "read_at": words.date_and_clock(now)}
    return page("selection.html.j2", view, {})


def _view(selection: Selection, pictures: Mapping[str, Sequence[FramePicture]]) -> dict[str, Any]:
    splits = selection.splits
    samples = sum(len(split.samples) for split in splits.values())
    return {
        "title": selection.name,
        "sentence": f"{words.count(samples, 'sample')} of {selection.dataset} in {words.count(len(splits), 'split')}",
        "facts": list(_facts(selection)),
        "splits": [_split_row(name, selection) for name in splits],
        "names": list(splits),
        "classes": list(_class_rows(selection)),
        "absent": _absent(selection),
        "pictures": pictures,
    }


def _facts(selection: Selection) -> Iterator[tuple[str, str]]:
    lineage = selection.lineage
    yield "digest", selection.digest
    yield "dataset", f"{selection.dataset}, generation {lineage.get('generation')}"
    if lineage.get("catalog"):
        yield "catalog", str(lineage["catalog"])
    yield "seed", str(selection.seed)
    yield "frozen", words.date_and_clock(selection.created_at)
    if lineage.get("where"):
        yield "filter", str(lineage["where"])
    if lineage.get("representative"):
        yield "representative", "classes as in the whole, rare ones kept"
    if lineage.get("by"):
        yield "never torn apart", f"one {lineage['by']}"
    for kind in ("confusion", "uncertainty"):
        if lineage.get(kind):
            chosen = lineage[kind]
            classes = " and ".join(chosen.get("classes", ()))
            of_classes = f", {classes}" if classes else ""
            yield f"by {kind}", f"of {chosen['run']}{of_classes}; ranked by {chosen['ranked_by']}"


def _split_row(name: str, selection: Selection) -> dict[str, Any]:
    split = selection.splits[name]
    distance = words.NONE if split.distance is None else f"{split.distance:.3f}"
    groups = {sample.group for sample in split.samples if sample.group}
    return {"name": name, "samples": len(split.samples), "groups": len(groups) or words.NONE, "distance": distance}


def _class_rows(selection: Selection) -> Iterator[dict[str, Any]]:
    """Yield the classes that some split holds, the most frequent first, with their share of each split's pixels."""
    shares = [_shares(split.pixels, len(selection.classes)) for split in selection.splits.values()]
    rows = dict(zip(selection.classes, zip(*shares, strict=True), strict=True))
    widest = max(map(max, rows.values()), default=0.0)
    for name, values in sorted(rows.items(), key=lambda row: -max(row[1])):
        if any(values):
            cells = [{"text": words.percent(share, 2), "width": round(100 * share / widest, 1)} for share in values]
            yield {"name": name, "cells": cells}


def _shares(pixels: Sequence[int], classes: int) -> list[float]:
    total = sum(pixels)
    if not total:
        return [0.0] * classes
    return [count / total for count in pixels]


def _absent(selection: Selection) -> list[str]:
    shown = {row["name"] for row in _class_rows(selection)}
    return [name for name in selection.classes if name not in shown]
