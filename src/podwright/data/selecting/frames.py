"""Frames of a selection as pictures for a page: the image, and its label laid over it where there is one."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from PIL import Image

from podwright.data.labels.counting import BROKEN, why_broken
from podwright.data.selecting.pool import DataSample
from podwright.data.selecting.selections import Selection

SHOWN = 6
"""Of each split, from all over it."""
_SIZE = (640, 640)
_WEIGHT = 0.4
"""Of the label in what is laid over."""


@dataclass(frozen=True)
class FramePicture:
    """A sample as a page shows it: addresses that hold the pictures themselves, or why there are none."""

    title: str
    image: str = ""
    overlay: str = ""
    why: str = ""


def pictures_of(selection: Selection, split: str) -> Iterator[FramePicture]:
    """Yield some samples of a split; none of a dataset that lies behind an address."""
    samples = selection.splits[split].samples
    if urlsplit(os.fsdecode(selection.root)).scheme:
        return
    count = min(SHOWN, len(samples))
    for number in range(count):
        yield _picture(selection, samples[(2 * number + 1) * len(samples) // (2 * count)])


def _picture(selection: Selection, sample: DataSample) -> FramePicture:
    paths = {file.role: selection.root + b"/" + file.path_bytes for file in sample.files}
    title = sample.image.path
    try:
        with Image.open(paths[sample.image.role]) as opened:
            opened.thumbnail(_SIZE)
            image = opened.convert("RGB")
        overlay = ""
        if "label" in paths:
            with Image.open(paths["label"]) as opened:
                label = opened.convert("RGB").resize(image.size, Image.Resampling.NEAREST)
            overlay = _address(Image.blend(image, label, _WEIGHT))
        return FramePicture(title, _address(image), overlay)
    except BROKEN as error:
        return FramePicture(title, why=why_broken(error))


def _address(image: Image.Image) -> str:
    data = io.BytesIO()
    image.save(data, "JPEG", quality=85)
    return f"data:image/jpeg;base64,{base64.b64encode(data.getvalue()).decode()}"
