"""Reads a file of measured trainings, one row for each size, and says where in it something is wrong."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from podwright.design.predict.scaling import ScalingPoint
from podwright.design.predict.series import AskedSize, Series
from podwright.spec.nearest import near
from podwright.spec.problems import Problem, Refusal, short

# Columns that name a series; a file without any holds one.
NAMING = ("series", "round", "submitter", "accelerator", "benchmark")
NUMBERS = ("count", "batch", "minutes", "epochs", "took", "evaluate_every")
NEEDED = ("count", "minutes")
# Nothing that is measured lies outside of these, and sums of such numbers stay exact enough.
_SMALLEST, _LARGEST = 1e-6, 1e15
_EXAMPLE = "the first line names the columns: count,batch,minutes,epochs"


class CellPlace(NamedTuple):
    """Where a cell stands, both counted from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class SizeRow:
    """A row of the file: the name of its series, its numbers where they are given, and where each cell stands."""

    series: str
    line: int
    numbers: dict[str, float]
    places: dict[str, CellPlace]

    @property
    def is_measured(self) -> bool:
        """Return whether it says how long the training took; a row that does not asks for that."""
        return "minutes" in self.numbers


def read_sizes(text: str, file: str) -> list[Series]:
    """Return the series of a file in their order, or refuse with every problem at once."""
    problems: list[Problem] = []
    rows = list(_rows(text, file, problems))
    groups: dict[str, list[SizeRow]] = {}
    for row in rows:
        groups.setdefault(row.series, []).append(row)
    for group in groups.values():
        problems += _group_problems(group, file)
    if not rows and not problems:
        problems.append(Problem(file, None, None, "", "holds no sizes", _EXAMPLE))
    if problems:
        raise Refusal(sorted(problems, key=lambda problem: (problem.line or 0, problem.column or 0)))
    return [_series(name, group) for name, group in groups.items()]


def _rows(text: str, file: str, problems: list[Problem]) -> Iterator[SizeRow]:
    """Yield the rows below the line of names; what is wrong with a row goes to `problems`. `#` starts a comment."""
    names: list[str] | None = None
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        try:
            cells = [cell.strip() for cell in next(csv.reader([line]))]
        except csv.Error as error:
            problems.append(Problem(file, number, 1, "", f"is no row of values: {error}", None))
            continue
        places = [CellPlace(number, column) for column in _columns(line, len(cells))]
        if names is None:
            names = cells
            problems += _head_problems(names, places, file)
            if problems:
                return
        elif len(cells) != len(names):
            message = f"has {len(cells)} cells, and there are {len(names)} columns"
            problems.append(Problem(file, number, 1, "", message, f"the columns are {', '.join(names)}"))
        else:
            yield _row(dict(zip(names, zip(cells, places, strict=True), strict=True)), number, file, problems)


def _columns(line: str, cells: int) -> list[int]:
    """Return the column at which each of so many cells begins; a comma inside quotes separates nothing."""
    columns, is_quoted = [1], False
    for column, character in enumerate(line, 1):
        if character == '"':
            is_quoted = not is_quoted
        elif character == "," and not is_quoted:
            columns.append(column + 1)
    # Quotes in the middle of a cell are text to the reader and count here: then only the line is sure.
    if len(columns) != cells:
        return [1] * cells
    return columns


def _head_problems(names: list[str], places: list[CellPlace], file: str) -> Iterator[Problem]:
    for name in NEEDED:
        if name not in names:
            close = near(name, names)
            hint = f"is `{close}` meant for it?" if close else _EXAMPLE
            yield Problem(file, places[0].line, 1, name, "there is no such column", hint)
    for index, name in enumerate(names):
        if name in names[:index]:
            yield Problem(file, *places[index], name, "stands twice in the line of names", "leave one of them out")


def _row(cells: dict[str, tuple[str, CellPlace]], line: int, file: str, problems: list[Problem]) -> SizeRow:
    numbers: dict[str, float] = {}
    places = {name: place for name, (_, place) in cells.items()}
    for name in NUMBERS:
        text, place = cells.get(name, ("", CellPlace(line, 1)))
        if text:
            value = _positive(text)
            if value is None or (name == "count" and value != int(value)):
                kind = "a whole positive number" if name == "count" else "a positive number"
                problems.append(Problem(file, *place, name, f'"{short(text)}" is not {kind}', None))
            else:
                numbers[name] = value
        elif name == "count":
            problems.append(Problem(file, *place, name, "is empty", "write the number of accelerators"))
    naming = [cells[name][0] for name in NAMING if name in cells]
    return SizeRow(" ".join(filter(None, naming)), line, numbers, places)


def _positive(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    if not _SMALLEST <= value <= _LARGEST:
        return None
    return value


def _group_problems(rows: list[SizeRow], file: str) -> Iterator[Problem]:
    """Check what rows of one series must have together."""
    measured = [row for row in rows if row.is_measured]
    counts = {row.numbers["count"] for row in measured if "count" in row.numbers}
    if len(counts) < 2:
        message = f"{rows[0].series or 'the series'} has fewer than two measured sizes"
        hint = "a law of scaling needs the minutes of two different counts"
        yield Problem(file, rows[0].line, 1, "minutes", message, hint)
    for name, other in (("batch", "epochs"), ("epochs", "batch")):
        for row in measured:
            if name not in row.numbers and other in row.numbers:
                hint = f"give it too, or leave out both {name} and {other} of all sizes: forecasts then say +-35 %"
                yield _missing(row, file, name, f"is missing where {other} is given", hint)
    has_batch = [row for row in measured if "batch" in row.numbers]
    for row in rows:
        if has_batch and "batch" not in row.numbers and "epochs" not in row.numbers:
            hint = "give it, or leave it out everywhere: forecasts then say +-35 %"
            yield _missing(row, file, "batch", "is missing, and other sizes have it", hint)


def _missing(row: SizeRow, file: str, name: str, message: str, hint: str) -> Problem:
    return Problem(file, *row.places.get(name, CellPlace(row.line, 1)), name, message, hint)


def _series(name: str, rows: list[SizeRow]) -> Series:
    measured = sorted((row for row in rows if row.is_measured), key=lambda row: row.numbers["count"])
    intervals = [row.numbers["evaluate_every"] for row in rows if "evaluate_every" in row.numbers]
    return Series(
        name=name,
        points=tuple(_point(row.numbers) for row in measured),
        batch_known="batch" in measured[0].numbers,
        evaluate_every=max(intervals, default=None),
        asked=tuple(_asked(row.numbers) for row in rows if not row.is_measured),
    )


def _point(numbers: dict[str, float]) -> ScalingPoint:
    """Return the point of a row: its epochs may be those of runs of `took` minutes; the mean run took its share."""
    count, time_s = int(numbers["count"]), numbers["minutes"] * 60
    if "batch" not in numbers:
        return ScalingPoint(count, time_s, 1.0, 1.0)
    epochs = numbers["epochs"] * numbers["minutes"] / numbers.get("took", numbers["minutes"])
    return ScalingPoint(count, time_s, numbers["batch"], epochs)


def _asked(numbers: dict[str, float]) -> AskedSize:
    if "batch" not in numbers:
        return AskedSize(int(numbers["count"]), 1.0, 1.0)
    return AskedSize(int(numbers["count"]), numbers["batch"], numbers.get("epochs"))
