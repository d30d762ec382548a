"""Made pictures of a few shapes, each with its box: disks, blocks, triangles and crosses on noise; no file is read."""

from __future__ import annotations

import numpy as np
import torch
from numpy.random import Generator
from PIL import Image, ImageDraw
from torch import Tensor

KINDS = ("disk", "block", "triangle", "cross")
SIDE = 64
MOST = 4
"""Shapes of a picture; each has one at least."""
SMALLEST, LARGEST = 14, 34
NOISE = 14
NOTHING = -1
Box = tuple[float, float, float, float]


def draw(canvas: ImageDraw.ImageDraw, kind: str, box: Box, ink: tuple[int, ...]) -> None:
    """Draw a shape that fills its box."""
    left, top, right, bottom = box
    middle, width, height = (left + right) / 2, (right - left) / 3, (bottom - top) / 3
    if kind == "disk":
        canvas.ellipse(box, ink)
    elif kind == "block":
        canvas.rectangle(box, ink)
    elif kind == "triangle":
        canvas.polygon([(left, bottom), (middle, top), (right, bottom)], ink)
    else:
        canvas.rectangle((left + width, top, right - width, bottom), ink)
        canvas.rectangle((left, top + height, right, bottom - height), ink)


def place(chance: Generator, taken: list[Box]) -> Box | None:
    """A box that lies apart from those that are taken; None where a few tries find no room."""
    for _ in range(20):
        width, height = chance.integers(SMALLEST, LARGEST, 2)
        left, top = chance.integers(0, SIDE - width), chance.integers(0, SIDE - height)
        box = (float(left), float(top), float(left + width), float(top + height))
        if not any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in taken):
            return box
    return None


def picture(chance: Generator) -> tuple[np.ndarray, list[Box], list[int]]:
    """One picture as bytes (height, width, colour), its boxes in pixels, and what is in each."""
    back = chance.integers(40, 160, 3)
    image = Image.new("RGB", (SIDE, SIDE), tuple(int(value) for value in back))
    canvas, boxes, kinds = ImageDraw.Draw(image), list[Box](), list[int]()
    for _ in range(chance.integers(1, MOST + 1)):
        box = place(chance, boxes)
        if box is not None:
            kind = int(chance.integers(len(KINDS)))
            ink = tuple(int(value) for value in (back + chance.integers(60, 190, 3)) % 256)
            draw(canvas, KINDS[kind], (box[0], box[1], box[2] - 1, box[3] - 1), ink)
            boxes.append(box)
            kinds.append(kind)
    pixels = np.asarray(image, np.float32) + chance.normal(0, NOISE, (SIDE, SIDE, 3))
    return np.clip(pixels, 0, 255).astype(np.uint8), boxes, kinds


def make(count: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    """Pictures (bytes, colour first), their boxes (left, top, right, bottom, as shares of the side), and the kinds.

    Every picture has `MOST` rows; those that it does not need are of the kind `NOTHING`.
    """
    chance = np.random.default_rng(seed)
    pixels = np.empty((count, SIDE, SIDE, 3), np.uint8)
    boxes, kinds = torch.zeros(count, MOST, 4), torch.full((count, MOST), NOTHING)
    for number in range(count):
        pixels[number], its_boxes, its_kinds = picture(chance)
        boxes[number, : len(its_boxes)] = torch.tensor(its_boxes) / SIDE
        kinds[number, : len(its_kinds)] = torch.tensor(its_kinds)
    return torch.from_numpy(pixels).permute(0, 3, 1, 2).contiguous(), boxes, kinds
