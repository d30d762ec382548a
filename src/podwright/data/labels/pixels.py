"""Counts the pixels of each class in a label image; about as fast as the image can be decoded."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from PIL import Image

from podwright.data.labels.images import LabelClass

Counts = np.ndarray[Any, np.dtype[np.uint64]]
_RGB = 0xFFFFFF


class ColourTable:
    """Which class each of all 16.7 million colours means; one table serves all threads."""

    def __init__(self, classes: Sequence[LabelClass]) -> None:
        self.classes = len(classes)
        # Pixels are compared as they lie in memory, with red in the lowest byte.
        self._places = np.full(_RGB + 1, self.classes, dtype=np.uint16)
        for index, label in enumerate(classes):
            for colour in label.colours:
                self._places[_turned(colour)] = index

    def count(self, image: Image.Image) -> Counts:
        """Return the pixels of each class; the last value counts pixels whose colour means nothing."""
        if image.mode == "P":
            return self._of_palette(image)
        if image.mode != "RGB":
            image = image.convert("RGB")
        return self._of_runs(_packed(image))

    def _of_runs(self, pixels: np.ndarray[Any, Any]) -> Counts:
        """Look up one pixel of each run of equal ones: labels are areas, so there are few runs."""
        if not len(pixels):
            return np.zeros(self.classes + 1, dtype=np.uint64)
        starts = np.concatenate(([0], _places_of(pixels[1:] != pixels[:-1]) + 1))
        lengths = np.diff(starts, append=len(pixels))
        return self._summed(self._places[pixels[starts] & _RGB], lengths)

    def _of_palette(self, image: Image.Image) -> Counts:
        palette = image.getpalette("RGB") or []
        colours = [palette[at] | palette[at + 1] << 8 | palette[at + 2] << 16 for at in range(0, len(palette), 3)]
        counts = np.array(image.histogram()[: len(colours)], dtype=np.int64)
        return self._summed(self._places[np.array(colours, dtype=np.int64)], counts)

    def _summed(self, places: np.ndarray[Any, Any], lengths: np.ndarray[Any, Any]) -> Counts:
        # Weights are floating-point numbers, which are exact up to 2^53 pixels.
        return np.bincount(places, weights=lengths, minlength=self.classes + 1).astype(np.uint64)


def _places_of(marks: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return where few of very many marks are set: only bytes of eight of them that have any are looked into."""
    packed = np.packbits(marks)
    some = np.flatnonzero(packed != 0)
    inside = np.flatnonzero(np.unpackbits(packed[some]).view(bool))
    return np.asarray(some[inside >> 3] * 8 + (inside & 7))


def _packed(image: Image.Image) -> np.ndarray[Any, Any]:
    """Return pixels of four bytes each as they lie in Pillow's memory; an image in several pieces is copied."""
    if hasattr(image, "__arrow_c_array__"):
        with suppress(ValueError, ImportError):
            import pyarrow

            return np.asarray(pyarrow.array(image).flatten().to_numpy()).view("<u4")
    return np.frombuffer(image.tobytes("raw", "RGBX"), dtype="<u4")


def _turned(colour: int) -> int:
    return colour >> 16 | colour & 0xFF00 | (colour & 0xFF) << 16
