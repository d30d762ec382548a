"""Pictures of a folder: CLASS/NAME.jpg, or what samples.jsonl says of a selection that has classes.

Bytes are read and decoded by processes, a core each (kit/decoding.py). A JPEG that is much larger than what is cut out
of it is decoded at a half, a quarter or an eighth, which a decoder does by leaving out work.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import Dataset

from kit.decoding import Key, Picture
from kit.loader import SampleFolder

HELD_OUT_EVERY = 20
SMALLEST_SHARE = 0.08
"""Of a picture's area that is cut out to train on, as all who train on ImageNet do."""
MIDDLE = 0.875
"""Of its shorter side, to score."""
Box = tuple[float, float, float, float]


class Photos(Dataset[tuple[Tensor, int]]):
    """Pictures (side, side, 3) as bytes, and the number of what each shows; the draw of a key cuts out and mirrors."""

    def __init__(self, samples: SampleFolder, numbers: Sequence[int], classes: Sequence[str], side: int) -> None:
        self.samples, self.numbers, self.side = samples, numbers, side
        self.number_of = {name: number for number, name in enumerate(classes)}
        self.draws = False

    def __len__(self) -> int:
        return len(self.numbers)

    def __getitem__(self, key: int | Key) -> tuple[Tensor, int]:
        number, *draws = key if isinstance(key, tuple) else (key,)
        sample = self.samples[self.numbers[number]]
        return decode(picture_of(sample), self.side, draws), self.number_of[sample["class"]]

    def write(self, key: Key, place: Picture) -> int:
        """Decode a picture into its place in a batch; returns the number of what it shows."""
        number, draw = key
        sample = self.samples[self.numbers[number]]
        place[:] = cut_out(picture_of(sample), self.side, [draw])
        return self.number_of[sample["class"]]


def picture_of(sample: dict[str, Any]) -> bytes:
    """The bytes of a sample's picture, whatever its role is called."""
    data: bytes = next(value for role, value in sample.items() if role not in ("class", "split", "key"))
    return data


def decode(data: bytes, side: int, draws: Sequence[int]) -> Tensor:
    """A square of a picture: by chance where there is a draw, else its middle."""
    return torch.from_numpy(cut_out(data, side, draws).copy())


def cut_out(data: bytes, side: int, draws: Sequence[int]) -> Picture:
    """The same as an array, which may be a view."""
    with Image.open(io.BytesIO(data)) as image:
        width, height = image.size
        box, mirrored = middle_of(width, height), False
        for draw in draws:
            box, mirrored = drawn(width, height, np.random.default_rng(draw))
        shrink = int(min(box[2] - box[0], box[3] - box[1]) // side)
        if shrink >= 2:
            image.draft("RGB", (width // shrink, height // shrink))
            across, down = image.size[0] / width, image.size[1] / height
            box = (box[0] * across, box[1] * down, box[2] * across, box[3] * down)
        square = image.convert("RGB").resize((side, side), Image.Resampling.BILINEAR, box)
    pixels = np.asarray(square)
    return pixels[:, ::-1] if mirrored else pixels


def middle_of(width: int, height: int) -> Box:
    """The middle square of a picture."""
    edge = MIDDLE * min(width, height)
    left, top = (width - edge) / 2, (height - edge) / 2
    return left, top, left + edge, top + edge


def drawn(width: int, height: int, chance: np.random.Generator) -> tuple[Box, bool]:
    """A part of a picture, of 8 % to all of it and of 3:4 to 4:3, and whether it is mirrored."""
    area = width * height * chance.uniform(SMALLEST_SHARE, 1)
    slope = np.exp(chance.uniform(np.log(3 / 4), np.log(4 / 3)))
    across, down = min(width, np.sqrt(area * slope)), min(height, np.sqrt(area / slope))
    left, top = chance.uniform(0, width - across), chance.uniform(0, height - down)
    return (left, top, left + across, top + down), bool(chance.random() < 0.5)


def read(folder: str, side: int) -> tuple[Photos, Photos, list[str]]:
    """Pictures to train on, every twentieth to score on, and the classes."""
    samples = SampleFolder(folder)
    names = [samples.labels(number).get("class", "") for number in range(len(samples))]
    classes = sorted(set(names))
    if len(names) < 2 * HELD_OUT_EVERY or len(classes) < 2:
        raise SystemExit(
            f"{folder}: {len(names)} pictures of {len(classes)} classes; 40 of two are the least\n\n"
            "hint: a folder for each class, FOLDER/CLASS/NAME.jpg, or a selection whose samples have a class"
        )
    held = range(0, len(names), HELD_OUT_EVERY)
    rest = [number for number in range(len(names)) if number % HELD_OUT_EVERY]
    train, score = Photos(samples, rest, classes, side), Photos(samples, held, classes, side)
    train.draws = True
    return train, score, classes
