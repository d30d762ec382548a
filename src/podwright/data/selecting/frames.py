"""Samples as pictures for a page: the image, and its label laid over it where there is one."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from PIL import Image

from podwright.data.labels.counting import BROKEN, why_broken
from podwright.data.selecting.pool import DataSample
from podwright.data.selecting.selections import Selection
from podwright.data.tree.reading import NotReadError, RootsReader
from podwright.data.tree.roots import Roots

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
    """Yield some samples of a split."""
    samples = selection.splits[split].samples
    yield from pictures(selection.roots, [samples[at] for at in spread(len(samples), SHOWN)])


def spread(count: int, most: int) -> list[int]:
    """Return places from all over a list of so many, at most so many of them."""
    shown = min(most, count)
    return [(2 * number + 1) * count // (2 * shown) for number in range(shown)]


def pictures(roots: Roots, samples: Iterable[DataSample]) -> Iterator[FramePicture]:
    """Yield samples as pictures, in their order."""
    reader = RootsReader(roots)
    for sample in samples:
        yield _picture(reader, sample)


def _picture(reader: RootsReader, sample: DataSample) -> FramePicture:
    paths = {file.role: file.path_bytes for file in sample.files}
    title = sample.image.path
    try:
        with reader.opened(paths[sample.image.role]) as file, Image.open(file) as opened:
            opened.thumbnail(_SIZE)
            image = opened.convert("RGB")
        overlay = ""
        if "label" in paths and _is_picture(paths["label"]):
            with reader.opened(paths["label"]) as file, Image.open(file) as opened:
                label = opened.convert("RGB").resize(image.size, Image.Resampling.NEAREST)
            overlay = _address(Image.blend(image, label, _WEIGHT))
        return FramePicture(title, _address(image), overlay)
    except NotReadError as error:
        return FramePicture(title, why=str(error))
    except BROKEN as error:
        return FramePicture(title, why=why_broken(error))


def _is_picture(path: bytes) -> bool:
    """Say whether a label is a picture; those of YOLO and KITTI are texts."""
    return not path.endswith((b".txt", b".json", b".xml"))


def _address(image: Image.Image) -> str:
    data = io.BytesIO()
    image.save(data, "JPEG", quality=85)
    return f"data:image/jpeg;base64,{base64.b64encode(data.getvalue()).decode()}"
