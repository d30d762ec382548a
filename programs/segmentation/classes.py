"""The classes of A2D2: which colour of a label image means what.

`classes.csv` holds all 55 colours of the data set's `class_list.json`. Colours that differ only by a trailing number
("Car 1" ... "Car 4") tell instances apart; for semantic segmentation they are one class, which leaves 38.
"""

from __future__ import annotations

import csv
import json
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

IGNORE = 255  # the class id of a pixel that counts neither in the loss nor in the score
TABLE = Path(__file__).with_name("classes.csv")


@dataclass(frozen=True)
class Classes:
    """A class list: colour ("#rrggbb") to label name, in the order of the file."""

    labels: dict[str, str]

    @cached_property
    def names(self) -> list[str]:
        """Class names by class id, in order of first appearance."""
        return list(dict.fromkeys(map(class_of, self.labels.values())))

    @cached_property
    def ids(self) -> dict[int, int]:
        """Class id by colour, the colour as one number (0xrrggbb)."""
        return {number_of(colour): self.names.index(class_of(name)) for colour, name in self.labels.items()}

    @cached_property
    def colours(self) -> list[str]:
        """One colour per class id, to draw it with: the first of its colours."""
        first: dict[str, str] = {}
        for colour, name in self.labels.items():
            first.setdefault(class_of(name), colour)
        return list(first.values())


def class_of(label: str) -> str:
    """The class of a label: "Car 3" is a Car."""
    return re.sub(r" \d+$", "", label.strip())


def number_of(colour: str) -> int:
    """The number 0xrrggbb of "#rrggbb"."""
    if not re.fullmatch(r"#[0-9a-fA-F]{6}", colour):
        raise ValueError(f'"{colour}" is not a colour like "#rrggbb"')
    return int(colour[1:], 16)


def rgb_of(colour: str) -> tuple[int, int, int]:
    """Red, green and blue of "#rrggbb"."""
    number = number_of(colour)
    return number >> 16, number >> 8 & 255, number & 255


def slug_of(name: str) -> str:
    """A class name fit for a metric: "Obstacles / trash" becomes "obstacles-trash"."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


def a2d2_classes() -> Classes:
    """The published class list, which travels with the program."""
    with TABLE.open(newline="") as file:
        return Classes({row["colour"]: row["label"] for row in csv.DictReader(file)})


def read_classes(root: Path) -> Classes:
    """The class list beside the frames, else the published one."""
    path = root / "class_list.json"
    if not path.is_file():
        return a2d2_classes()
    try:
        labels = {str(colour): str(name) for colour, name in json.loads(path.read_text()).items()}
        classes = Classes(labels)
        classes.ids  # noqa: B018  (a bad colour is refused here, with the file's name)
    except (ValueError, AttributeError) as error:
        raise ValueError(f"{path}: {error}") from error
    return classes
