"""Quality by class: IoU and what was taken for what. Pure."""

import math
from dataclasses import dataclass

from podwright.analysis.data import Confusion, ReportData
from podwright.theme import words

_MOST_MIXED = 12


@dataclass(frozen=True)
class ClassBar:
    """One class in the list of IoU bars; `swatch` is the class's colour in the label pictures."""

    name: str
    iou: float
    shown: str
    swatch: str
    pixels: str
    recall: str
    precision: str


@dataclass(frozen=True)
class ConfusionCell:
    """One cell of the confusion matrix: how many pixels, and their share of the true class."""

    count: int
    share: float
    title: str

    @property
    def shade(self) -> int:
        """How much of the accent colour, in per cent.

        Small shares are lifted, since mistakes are what one looks for; the top stays low enough for ink to be read.
        """
        return round(52 * math.pow(self.share, 0.6))


@dataclass(frozen=True)
class MatrixRow:
    """The pixels of one true class."""

    name: str
    total: int
    cells: tuple[ConfusionCell, ...]


@dataclass(frozen=True)
class Mixed:
    """One mistake of the model, in words."""

    truth: str
    taken_for: str
    pixels: str
    share: str


def class_bars(data: ReportData) -> tuple[list[ClassBar], list[str]]:
    """IoU per class, best first, and the names of classes that no frame held; from iou.json, else from the matrix."""
    iou = dict(data.iou) or (_iou(data.confusion) if data.confusion else {})
    bars = [_class_bar(name, value, data.confusion) for name, value in iou.items() if value is not None]
    absent = [name for name, value in iou.items() if value is None]
    return sorted(bars, key=lambda bar: (-bar.iou, bar.name)), absent


def _class_bar(name: str, iou: float, confusion: Confusion | None) -> ClassBar:
    if confusion is None or name not in confusion.classes:
        return ClassBar(name, iou, words.score(iou), "", words.NONE, words.NONE, words.NONE)
    at = confusion.classes.index(name)
    right = confusion.matrix[at][at]
    truth, told = sum(confusion.matrix[at]), sum(row[at] for row in confusion.matrix)
    return ClassBar(
        name,
        iou,
        words.score(iou),
        confusion.colors.get(name, ""),
        words.number(truth),
        words.percent(right / truth if truth else None),
        words.percent(right / told if told else None),
    )


def _iou(confusion: Confusion) -> dict[str, float | None]:
    out: dict[str, float | None] = {}
    for at, name in enumerate(confusion.classes):
        right = confusion.matrix[at][at]
        union = sum(confusion.matrix[at]) + sum(row[at] for row in confusion.matrix) - right
        out[name] = right / union if union else None
    return out


def in_use(confusion: Confusion) -> Confusion:
    """The matrix without classes that were neither there nor ever predicted."""
    kept = [i for i, row in enumerate(confusion.matrix) if sum(row) or any(other[i] for other in confusion.matrix)]
    names = tuple(confusion.classes[i] for i in kept)
    matrix = tuple(tuple(confusion.matrix[i][j] for j in kept) for i in kept)
    return Confusion(names, matrix, {name: color for name, color in confusion.colors.items() if name in names})


def matrix_rows(confusion: Confusion) -> list[MatrixRow]:
    """The classes that were there, with every cell's share of its row, which is what is shaded."""
    return [
        MatrixRow(name, sum(counts), tuple(_cell(confusion, name, at, counts) for at in range(len(counts))))
        for name, counts in zip(confusion.classes, confusion.matrix, strict=True)
        if sum(counts)
    ]


def _cell(confusion: Confusion, truth: str, at: int, counts: tuple[int, ...]) -> ConfusionCell:
    share = counts[at] / sum(counts)
    taken = confusion.classes[at]
    what = f"{truth}, rightly named" if taken == truth else f"{truth}, taken for {taken}"
    return ConfusionCell(
        counts[at], share, f"{what}: {words.number(counts[at])} pixels, {words.percent(share, 1)} of {truth}"
    )


def most_mixed(confusion: Confusion) -> list[Mixed]:
    """The mistakes that cost most, by share of the true class."""
    pairs = [
        (row.cells[at].share, row, at)
        for row in matrix_rows(confusion)
        for at in range(len(row.cells))
        if confusion.classes[at] != row.name and row.cells[at].count
    ]
    pairs.sort(key=lambda pair: (-pair[0], pair[1].name))
    return [
        Mixed(row.name, confusion.classes[at], words.number(row.cells[at].count), words.percent(share, 1))
        for share, row, at in pairs[:_MOST_MIXED]
    ]
