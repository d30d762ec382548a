"""Pictures of a result: the confusion matrix, and frames with truth and prediction. Needs Pillow only."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from classes import IGNORE, rgb_of

INK, FAINT, PAPER, ACCENT = (32, 36, 42), (120, 126, 134), (255, 255, 255), (0, 114, 178)
CELL, GAP, SWATCH = 44, 12, 12
Font = ImageFont.FreeTypeFont | ImageFont.ImageFont


def paint(ids: np.ndarray, colours: Sequence[str]) -> Image.Image:
    """Class ids in the colours of their classes; ignored pixels are black."""
    palette = np.zeros((256, 3), dtype=np.uint8)
    for number, colour in enumerate(colours):
        palette[number] = rgb_of(colour)
    palette[IGNORE] = 0
    return Image.fromarray(palette[ids])


def side_by_side(images: Sequence[Image.Image], least_width: int = 384) -> Image.Image:
    """Images of one size in a row, enlarged by whole pixels when small."""
    width, height = images[0].size
    times = max(1, least_width // width)
    width, height = width * times, height * times
    row = Image.new("RGB", (len(images) * (width + 4) - 4, height), PAPER)
    for place, image in enumerate(images):
        row.paste(image.resize((width, height), Image.Resampling.NEAREST), (place * (width + 4), 0))
    return row


def confusion_picture(matrix: np.ndarray, names: Sequence[str], colours: Sequence[str]) -> Image.Image:
    """The matrix as shares of each true class, in per cent; rows are the truth, columns what was said."""
    small, large = ImageFont.load_default(13), ImageFont.load_default(16)
    margin = 3 * GAP + SWATCH + max((int(small.getlength(name)) for name in names), default=0)
    top = margin + 2 * GAP + 16
    side = CELL * len(names)
    image = Image.new("RGB", (margin + side + 2 * GAP, top + side + 2 * GAP), PAPER)
    draw = ImageDraw.Draw(image)
    draw.text((GAP, GAP), "Truth in rows, prediction in columns; per cent of each row", INK, large)
    for place, (name, colour) in enumerate(zip(names, colours, strict=True)):
        _row_name(draw, (margin, top + place * CELL), name, colour, small)
        _column_name(image, (margin + place * CELL, top), name, colour, small)
    shares = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    for (row, column), part in np.ndenumerate(shares):
        _cell(draw, (margin + column * CELL, top + row * CELL), float(part), small)
    return image


def _row_name(draw: ImageDraw.ImageDraw, corner: tuple[int, int], name: str, colour: str, font: Font) -> None:
    x, y = corner
    middle = y + CELL // 2
    draw.rectangle((x - GAP - SWATCH, middle - SWATCH // 2, x - GAP, middle + SWATCH // 2), rgb_of(colour), FAINT)
    draw.text((x - 2 * GAP - SWATCH, middle), name, INK, font, anchor="rm")


def _column_name(image: Image.Image, corner: tuple[int, int], name: str, colour: str, font: Font) -> None:
    x, y = corner
    label = Image.new("RGB", (int(font.getlength(name)) + GAP + SWATCH + 2, 18), PAPER)
    draw = ImageDraw.Draw(label)
    draw.rectangle((0, 3, SWATCH, 3 + SWATCH), rgb_of(colour), FAINT)
    draw.text((SWATCH + GAP // 2, 9), name, INK, font, anchor="lm")
    turned = label.rotate(90, expand=True)
    image.paste(turned, (x + (CELL - 18) // 2, y - GAP - turned.height))


def _cell(draw: ImageDraw.ImageDraw, corner: tuple[int, int], part: float, font: Font) -> None:
    """One cell: shaded by its share, with the number where there is one to speak of."""
    x, y = corner
    # The root lifts small confusions into sight; equal shades would hide all but the diagonal.
    shade = part**0.5
    fill = tuple(round(p + (a - p) * shade) for p, a in zip(PAPER, ACCENT, strict=True))
    draw.rectangle((x, y, x + CELL - 2, y + CELL - 2), (fill[0], fill[1], fill[2]), (228, 230, 233))
    if part >= 0.005:
        draw.text(
            (x + CELL // 2 - 1, y + CELL // 2), f"{100 * part:.0f}", PAPER if shade > 0.6 else INK, font, anchor="mm"
        )


def save_png(image: Image.Image, path: Path) -> None:
    """Write a picture whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}")
    image.save(fresh, format="PNG", optimize=True)
    fresh.replace(path)
