"""The page of a dataset: samples that a filter chose, which classes they hold, and pictures of some of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podwright.report.page import page
from podwright.report.write import write_page
from podwright.theme import words

if TYPE_CHECKING:
    from podwright.data import Gallery

_SECTIONS = (("verdict", "Dataset"), ("classes", "Classes"), ("frames", "Frames"))


def write_dataset_page(gallery: Gallery, path: Path) -> Path:
    """Write the page of a dataset and return its path."""
    return write_page(path, render_dataset(gallery, time.time()))


def render_dataset(gallery: Gallery, now: float) -> str:
    """Return the page of a dataset."""
    view = {**view_of_gallery(gallery), "sections": _SECTIONS, "read_at": words.date_and_clock(now)}
    return page("dataset.html.j2", view, {})


def view_of_gallery(gallery: Gallery) -> dict[str, Any]:
    """Return what pages show of a dataset."""
    chosen = f" where {gallery.where}" if gallery.where else ""
    return {
        "title": gallery.dataset,
        "sentence": f"{words.count(gallery.samples, 'sample')} of {gallery.dataset}{chosen}",
        "facts": list(_facts(gallery)),
        "classes": list(_class_rows(gallery)),
        "cards": list(_cards(gallery)),
    }


def _facts(gallery: Gallery) -> Iterator[tuple[str, str]]:
    yield "root", gallery.root
    yield "layout", gallery.layout
    yield "generation", str(gallery.generation)
    if gallery.where:
        yield "filter", gallery.where
    yield "shown", f"{len(gallery.pictures)} of {gallery.samples}, from all over them"


def _class_rows(gallery: Gallery) -> Iterator[dict[str, Any]]:
    widest = max((max(chosen, whole) for _, chosen, whole in gallery.classes), default=0.0)
    for name, *shares in gallery.classes:
        cells = [{"text": words.percent(share, 2), "width": round(100 * share / widest, 1)} for share in shares]
        yield {"name": name, "cells": cells}


def _cards(gallery: Gallery) -> Iterator[dict[str, Any]]:
    for card in gallery.pictures:
        holds = ", ".join(f"{name} {words.percent(share, 0)}" for name, share in card.holds)
        yield {"picture": card.picture, "holds": holds}
