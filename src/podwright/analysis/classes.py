"""Quality by class: IoU and what was taken for what. Pure."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import compress

from podwright.analysis.data import Confusion, ReportData
from podwright.theme import words

_MAX_MIXED = 12


@dataclass(frozen=True)
class ClassBar:
    """One class in the list of IoU bars; `swatch` is the class's colour in the label pictures."""

    name: str
    iou: float
    shown: str
    swatch: str = ""
    pixels: str = words.NONE
    recall: str = words.NONE
    precision: str = words.NONE


@dataclass(frozen=True)
class ConfusionCell:
    """One cell of the confusion matrix: how many pixels, and their share of the true class."""

    count: int
    share: float
    title: str

    @property
    def shade(self) -> int:
        """Return how much of the accent colour it gets, in per cent.

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
    """Return IoU per class, best first, and the classes that no frame held; from iou.json, else from the matrix."""
    iou = dict(data.iou)
    if not iou and data.confusion:
        iou = _iou(data.confusion)
    bars = [_class_bar(name, value, data.confusion) for name, value in iou.items() if value is not None]
    absent = [name for name, value in iou.items() if value is None]
    return sorted(bars, key=lambda bar: (-bar.iou, bar.name)), absent


def _class_bar(name: str, iou: float, confusion: Confusion | None) -> ClassBar:
    if confusion is None or name not in confusion.classes:
        return ClassBar(name, iou, words.score(iou))
    right, truth, predicted = confusion.counts(confusion.classes.index(name))
    return ClassBar(
        name,
        iou,
        words.score(iou),
        confusion.colors.get(name, ""),
        words.number(truth),
        words.percent(_share(right, truth)),
        words.percent(_share(right, predicted)),
    )


def _share(part: int, whole: int) -> float | None:
    if whole == 0:
        return None
    return part / whole


def _iou(confusion: Confusion) -> dict[str, float | None]:
    iou: dict[str, float | None] = {}
    for index, name in enumerate(confusion.classes):
        right, truth, predicted = confusion.counts(index)
        iou[name] = _share(right, truth + predicted - right)
    return iou


def in_use(confusion: Confusion) -> Confusion:
    """Return the matrix without classes that were neither there nor ever predicted."""
    is_used = [any(confusion.counts(index)) for index in range(len(confusion.classes))]
    names = tuple(compress(confusion.classes, is_used))
    matrix = tuple(tuple(compress(row, is_used)) for row in compress(confusion.matrix, is_used))
    return Confusion(names, matrix, {name: color for name, color in confusion.colors.items() if name in names})


def matrix_rows(confusion: Confusion) -> Iterator[MatrixRow]:
    """Yield the classes that were there, with every cell's share of its row, which is what is shaded."""
    for name, counts in zip(confusion.classes, confusion.matrix, strict=True):
        if sum(counts):
            cells = tuple(_cell(confusion, name, index, counts) for index in range(len(counts)))
            yield MatrixRow(name, sum(counts), cells)


def _cell(confusion: Confusion, truth: str, index: int, counts: tuple[int, ...]) -> ConfusionCell:
    count, share, taken = counts[index], counts[index] / sum(counts), confusion.classes[index]
    what = "rightly named" if taken == truth else f"taken for {taken}"
    title = f"{truth}, {what}: {words.number(count)} pixels, {words.percent(share, 1)} of {truth}"
    return ConfusionCell(count, share, title)


def most_mixed(confusion: Confusion) -> list[Mixed]:
    """Return the mistakes that cost most, by share of the true class."""
    mistakes: list[tuple[ConfusionCell, str, str]] = []
    for row in matrix_rows(confusion):
        for taken_for, cell in zip(confusion.classes, row.cells, strict=True):
            if taken_for != row.name and cell.count:
                mistakes.append((cell, row.name, taken_for))
    mistakes.sort(key=lambda mistake: (-mistake[0].share, mistake[1]))
    return [
        Mixed(truth, taken_for, words.number(cell.count), words.percent(cell.share, 1))
        for cell, truth, taken_for in mistakes[:_MAX_MIXED]
    ]
