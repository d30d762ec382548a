"""Quality by class: IoU and what was taken for what. Pure."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from podwright.analysis.data import Confusion, ReportData
from podwright.theme import words

_MAX_MIXED = 12


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
        return ClassBar(name, iou, words.score(iou), "", words.NONE, words.NONE, words.NONE)
    at = confusion.classes.index(name)
    right = confusion.matrix[at][at]
    truth = sum(confusion.matrix[at])
    predicted = sum(row[at] for row in confusion.matrix)
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
    for at, name in enumerate(confusion.classes):
        right = confusion.matrix[at][at]
        union = sum(confusion.matrix[at]) + sum(row[at] for row in confusion.matrix) - right
        iou[name] = _share(right, union)
    return iou


def in_use(confusion: Confusion) -> Confusion:
    """Return the matrix without classes that were neither there nor ever predicted."""
    columns = list(zip(*confusion.matrix, strict=True))
    kept = [i for i, row in enumerate(confusion.matrix) if any(row) or any(columns[i])]
    names = tuple(confusion.classes[i] for i in kept)
    matrix = tuple(_picked(confusion.matrix[i], kept) for i in kept)
    return Confusion(names, matrix, {name: color for name, color in confusion.colors.items() if name in names})


def _picked(row: Sequence[int], places: Sequence[int]) -> tuple[int, ...]:
    return tuple(row[place] for place in places)


def matrix_rows(confusion: Confusion) -> list[MatrixRow]:
    """Return the classes that were there, with every cell's share of its row, which is what is shaded."""
    rows = []
    for name, counts in zip(confusion.classes, confusion.matrix, strict=True):
        if sum(counts):
            cells = tuple(_cell(confusion, name, at, counts) for at in range(len(counts)))
            rows.append(MatrixRow(name, sum(counts), cells))
    return rows


def _cell(confusion: Confusion, truth: str, at: int, counts: tuple[int, ...]) -> ConfusionCell:
    share = counts[at] / sum(counts)
    taken = confusion.classes[at]
    what = f"{truth}, taken for {taken}"
    if taken == truth:
        what = f"{truth}, rightly named"
    return ConfusionCell(
        counts[at], share, f"{what}: {words.number(counts[at])} pixels, {words.percent(share, 1)} of {truth}"
    )


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
