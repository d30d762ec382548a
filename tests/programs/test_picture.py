"""Pictures of results."""

from __future__ import annotations

import numpy as np
from PIL import Image

from classes import IGNORE
from picture import ACCENT, CELL, PAPER, confusion_picture, paint, side_by_side


def test_paint_in_class_colours() -> None:
    image = paint(np.array([[0, 1, IGNORE]], np.uint8), ["#ff0000", "#87ceff"])
    assert [image.getpixel((x, 0)) for x in range(3)] == [(255, 0, 0), (0x87, 0xCE, 0xFF), (0, 0, 0)]


def test_small_images_are_enlarged_by_whole_pixels() -> None:
    row = side_by_side([Image.new("RGB", (100, 50), (i, i, i)) for i in range(3)])
    assert row.size == (3 * 300 + 2 * 4, 150)
    assert [row.getpixel((x, 75)) for x in (150, 302, 454)] == [(0, 0, 0), PAPER, (1, 1, 1)]


def test_the_matrix_is_shaded_by_row() -> None:
    image = confusion_picture(np.array([[8, 0], [50, 50]]), ["Sky", "Car"], ["#87ceff", "#ff0000"])
    left, top = image.width - 24 - 2 * CELL, image.height - 24 - 2 * CELL
    corners = [[image.getpixel((left + c * CELL + 4, top + r * CELL + 4)) for c in (0, 1)] for r in (0, 1)]
    assert corners[0] == [ACCENT, PAPER]
    assert corners[1][0] == corners[1][1] not in (ACCENT, PAPER)


def test_an_empty_matrix_is_a_picture_too() -> None:
    assert confusion_picture(np.zeros((0, 0)), [], []).width > 0
