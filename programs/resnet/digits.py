"""Made pictures of digits: the font that Pillow carries, turned, shifted, scaled, on noise; no file is read."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from numpy.random import Generator
from PIL import Image, ImageDraw, ImageFont
from torch import Tensor

CLASSES = 10
SIDE = 24
DRAWN = 2 * SIDE  # drawn at twice the size, for smooth edges
MAX_TURNED_DEGREES = 20
NOISE = 16


font_of = lru_cache(ImageFont.load_default)
"""The font in a size; to load it takes longer than to draw with it."""


def draw(digit: int, chance: Generator) -> np.ndarray:
    """One picture, as bytes: height, width, colour."""
    back, ink = chance.integers(0, 100, 3), chance.integers(156, 256, 3)
    picture = Image.new("RGB", (DRAWN, DRAWN), tuple(int(value) for value in back))
    font = font_of(float(chance.integers(28, 44)))
    middle = tuple(DRAWN / 2 + chance.uniform(-6, 6, 2))
    ImageDraw.Draw(picture).text(middle, str(digit), tuple(int(value) for value in ink), font, anchor="mm")
    angle = chance.uniform(-MAX_TURNED_DEGREES, MAX_TURNED_DEGREES)
    picture = picture.rotate(angle, Image.Resampling.BILINEAR, fillcolor=picture.getpixel((0, 0)))
    pixels = np.asarray(picture.resize((SIDE, SIDE), Image.Resampling.BILINEAR), np.float32)
    return np.clip(pixels + chance.normal(0, NOISE, pixels.shape), 0, 255).astype(np.uint8)


def make(count: int, seed: int) -> tuple[Tensor, Tensor]:
    """Pictures (bytes, colour first) and their digits, all alike often."""
    chance = np.random.default_rng(seed)
    digits = np.arange(count) % CLASSES
    pictures = np.stack([draw(int(digit), chance) for digit in digits])
    return torch.from_numpy(pictures).permute(0, 3, 1, 2).contiguous(), torch.from_numpy(digits)
