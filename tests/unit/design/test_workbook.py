"""The cable plan as a workbook: read back by the format's own rules, and held against the tables."""

from __future__ import annotations

import csv
import io
from collections import Counter
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree
from zipfile import ZipFile

import pytest

from podwright.cli.main import main
from podwright.design.exports.tables import cable_plan, label_list
from podwright.design.xlsx import Sheet, write_xlsx
from tests.unit.design.pods import designed

MAIN = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
OFFICE = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
PACKAGE = "{http://schemas.openxmlformats.org/package/2006/relationships}"


class Book(NamedTuple):
    """What is in a workbook: rows of each sheet, found as programs find them."""

    sheets: dict[str, list[list[str]]]

    @classmethod
    def of(cls, data: bytes) -> Book:
        with ZipFile(io.BytesIO(data)) as archive:
            assert archive.testzip() is None
            links = ElementTree.fromstring(archive.read("xl/_rels/workbook.xml.rels"))
            targets = {link.get("Id"): link.get("Target") for link in links.iter(f"{PACKAGE}Relationship")}
            types = archive.read("[Content_Types].xml").decode()
            sheets = {}
            for sheet in ElementTree.fromstring(archive.read("xl/workbook.xml")).iter(f"{MAIN}sheet"):
                path = f"xl/{targets[sheet.get(f'{OFFICE}id')]}"
                assert f'PartName="/{path}"' in types
                sheets[sheet.get("name") or ""] = rows_of(ElementTree.fromstring(archive.read(path)))
        return cls(sheets)


def rows_of(sheet: ElementTree.Element) -> list[list[str]]:
    """The cells of each row at their columns; one that is not there is empty."""
    rows = []
    for row in sheet.iter(f"{MAIN}row"):
        cells: dict[int, str] = {}
        for cell in row:
            letters = (cell.get("r") or "").rstrip("0123456789")
            column = 0
            for letter in letters:
                column = column * 26 + ord(letter) - ord("A") + 1
            cells[column] = "".join(cell.itertext())
        rows.append([cells.get(number, "") for number in range(1, max(cells) + 1)])
    return rows


def test_every_plug_is_in_the_sheet_of_its_rack() -> None:
    design = designed(20)
    book = Book.of(design.workbook())
    plan = list(csv.DictReader(io.StringIO(cable_plan(design))))
    expected: Counter[tuple[str, str, str, str]] = Counter()
    for cable in plan:
        for near, far in (("a", "b"), ("b", "a")):
            rack = cable[f"rack_{near}"] or "no rack"
            expected[(rack, cable[f"device_{near}"], cable[f"device_{far}"], cable["label"])] += 1
    found: Counter[tuple[str, str, str, str]] = Counter()
    for name, (head, *rows) in book.sheets.items():
        if name not in ("racks", "labels"):
            assert head[:4] == ["unit", "device", "port", "far rack"]
            for row in rows:
                found[(name, row[1], row[5], row[7])] += 1
    assert found == expected
    racks = [rack.name for rack in design.floor.racks]
    assert [row[0] for row in book.sheets["racks"][1:]] == racks
    assert int(sum(float(row[9]) for row in book.sheets["racks"][1:])) == sum(expected.values()) - sum(
        count for key, count in expected.items() if key[0] == "no rack"
    )


def test_labels_are_those_of_the_list() -> None:
    design = designed(8, "dgx-h100")
    assert Book.of(design.workbook()).sheets["labels"] == list(csv.reader(io.StringIO(label_list(design))))


def test_the_same_design_gives_the_same_bytes() -> None:
    assert designed(4).workbook() == designed(4).workbook()


def test_the_command_writes_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["design", "--nodes", "2", "--model", "dgx-a100", "--out", str(tmp_path)]) == 0
    assert "racks" in Book.of((tmp_path / "cables.xlsx").read_bytes()).sheets


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["A01", "a01"], ["A01", "a01 (2)"]),
        (["a/b:c"], ["a-b-c"]),
        (["x" * 40, "x" * 40], ["x" * 31, "x" * 27 + " (2)"]),
        (["'"], ["sheet"]),
    ],
)
def test_names_that_a_spreadsheet_takes(names: list[str], expected: list[str]) -> None:
    data = write_xlsx([Sheet(name, "title", ("head",), [("cell",)]) for name in names])
    assert list(Book.of(data).sheets) == expected


def test_any_text_and_number_comes_back() -> None:
    rows: list[tuple[str | float | None, ...]] = [
        ("<a & 'b'>", 1.5, None, "\x00x\x07"),
        (" two  spaces ", 7, None, "é"),
    ]
    book = Book.of(write_xlsx([Sheet("s & t", "a & b", ("w", "x", "y", "z"), rows)]))
    assert book.sheets["s & t"][1:] == [["<a & 'b'>", "1.5", "", "x"], [" two  spaces ", "7", "", "é"]]


def test_rows_beyond_a_sheet_go_on_in_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podwright.design.xlsx.MAX_ROWS", 3)
    book = Book.of(write_xlsx([Sheet("s", "t", ("n",), [(float(n),) for n in range(5)])]))
    assert {name: len(rows) for name, rows in book.sheets.items()} == {"s": 3, "s (2)": 3, "s (3)": 2}
