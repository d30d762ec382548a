"""Workbooks as spreadsheets open them (ECMA-376, Office Open XML): sheets of text and numbers under a fixed head."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

Cell = str | float | None

# What a spreadsheet takes: rows of a sheet, letters of a sheet's name, and none of these letters in it.
MAX_ROWS, MAX_NAME = 1_048_576, 31
_NOT_IN_NAMES = re.compile(r"[\[\]:*?/\\]")
_NOT_IN_XML = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# A column is at most so wide, in letters.
WIDEST = 48
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>\n'
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_PARTS = "application/vnd.openxmlformats-officedocument.spreadsheetml"
# The same bytes for the same workbook: the earliest moment that a zip file can say.
_EPOCH = (1980, 1, 1, 0, 0, 0)
# Style 0 is plain, style 1 is a head.
_STYLES = (
    f'<styleSheet xmlns="{_MAIN}"><fonts count="2"><font><sz val="10"/><name val="Arial"/></font>'
    '<font><b/><sz val="10"/><name val="Arial"/></font></fonts>'
    '<fills count="2"><fill><patternFill patternType="none"/></fill><fill><patternFill patternType="gray125"/></fill>'
    '</fills><borders count="1"><border><left/><right/><top/><bottom/><diagonal/></border></borders>'
    '<cellStyleXfs count="1"><xf numFmtId="0" fontId="0" fillId="0" borderId="0"/></cellStyleXfs>'
    '<cellXfs count="2"><xf numFmtId="0" fontId="0" fillId="0" borderId="0" xfId="0"/>'
    '<xf numFmtId="0" fontId="1" fillId="0" borderId="0" xfId="0" applyFont="1"/></cellXfs>'
    '<cellStyles count="1"><cellStyle name="Normal" xfId="0" builtinId="0"/></cellStyles></styleSheet>'
)


class Sheet(NamedTuple):
    """A sheet: its name, the title that is printed on each page, its head and its rows."""

    name: str
    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]


def write_xlsx(sheets: Sequence[Sheet]) -> bytes:
    """Return a workbook; a sheet with more rows than a spreadsheet takes goes on in another one."""
    parts = list(chain.from_iterable(map(_parts_of, sheets)))
    names = list(_names(sheet.name for sheet in parts))
    held = io.BytesIO()
    with ZipFile(held, "w", ZIP_DEFLATED) as archive:
        for path, text in _frame(names):
            archive.writestr(_entry(path), text)
        for number, sheet in enumerate(parts, 1):
            archive.writestr(_entry(f"xl/worksheets/sheet{number}.xml"), _sheet(sheet))
    return held.getvalue()


def _entry(path: str) -> ZipInfo:
    entry = ZipInfo(path, _EPOCH)
    entry.compress_type = ZIP_DEFLATED
    return entry


def _parts_of(sheet: Sheet) -> Iterator[Sheet]:
    for first in range(0, max(len(sheet.rows), 1), MAX_ROWS - 1):
        yield sheet._replace(rows=sheet.rows[first : first + MAX_ROWS - 1])


def _names(wanted: Iterable[str]) -> Iterator[str]:
    """Yield a name for each sheet that a spreadsheet takes, none of them twice: letters alike in case are one."""
    taken: set[str] = set()
    for name in wanted:
        plain = _NOT_IN_NAMES.sub("-", name).strip("'")[:MAX_NAME] or "sheet"
        chosen, number = plain, 1
        while chosen.lower() in taken:
            number += 1
            end = f" ({number})"
            chosen = plain[: MAX_NAME - len(end)] + end
        taken.add(chosen.lower())
        yield chosen


def _frame(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield what a workbook has beside its sheets, by path."""
    numbers = range(1, len(names) + 1)
    types = "".join(
        f'<Override PartName="/xl/worksheets/sheet{number}.xml" ContentType="{_PARTS}.worksheet+xml"/>'
        for number in numbers
    )
    yield (
        "[Content_Types].xml",
        f'{_HEAD}<Types xmlns="{_PACKAGE}/content-types">'
        '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
        f'<Override PartName="/xl/workbook.xml" ContentType="{_PARTS}.sheet.main+xml"/>'
        f'<Override PartName="/xl/styles.xml" ContentType="{_PARTS}.styles+xml"/>{types}</Types>',
    )
    yield "_rels/.rels", _relations([("officeDocument", "xl/workbook.xml")])
    listed = "".join(
        f'<sheet name={quoteattr(name)} sheetId="{number}" r:id="rId{number}"/>'
        for number, name in zip(numbers, names, strict=True)
    )
    # The head of each sheet is printed on each of its pages.
    titles = "".join(
        f'<definedName name="_xlnm.Print_Titles" localSheetId="{number}">{escape(_quoted(name))}!$1:$1</definedName>'
        for number, name in enumerate(names)
    )
    yield (
        "xl/workbook.xml",
        f'{_HEAD}<workbook xmlns="{_MAIN}" xmlns:r="{_OFFICE}"><sheets>{listed}</sheets>'
        f"<definedNames>{titles}</definedNames></workbook>",
    )
    links = [("worksheet", f"worksheets/sheet{number}.xml") for number in numbers]
    yield "xl/_rels/workbook.xml.rels", _relations([*links, ("styles", "styles.xml")])
    yield "xl/styles.xml", f"{_HEAD}{_STYLES}"


def _quoted(name: str) -> str:
    doubled = name.replace("'", "''")
    return f"'{doubled}'"


def _relations(targets: Iterable[tuple[str, str]]) -> str:
    links = "".join(
        f'<Relationship Id="rId{number}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(targets, 1)
    )
    return f'{_HEAD}<Relationships xmlns="{_PACKAGE}/relationships">{links}</Relationships>'


def _sheet(sheet: Sheet) -> str:
    rows = [_row(1, sheet.head, ' s="1"')]
    rows += [_row(number, row, "") for number, row in enumerate(sheet.rows, 2)]
    columns = "".join(
        f'<col min="{number}" max="{number}" width="{width}" customWidth="1"/>'
        for number, width in enumerate(_widths(sheet), 1)
    )
    last = f"{letters(len(sheet.head) - 1)}{len(sheet.rows) + 1}"
    return (
        f'{_HEAD}<worksheet xmlns="{_MAIN}"><sheetPr><pageSetUpPr fitToPage="1"/></sheetPr><sheetViews>'
        '<sheetView workbookViewId="0"><pane ySplit="1" topLeftCell="A2" activePane="bottomLeft" state="frozen"/>'
        f"</sheetView></sheetViews><cols>{columns}</cols><sheetData>{''.join(rows)}</sheetData>"
        f'<autoFilter ref="A1:{last}"/><pageSetup paperSize="9" orientation="landscape" fitToHeight="0"/>'
        f"<headerFooter><oddHeader>{_text('&L' + sheet.title.replace('&', '&&') + '&RPage &P of &N')}</oddHeader>"
        "</headerFooter></worksheet>"
    )


def _widths(sheet: Sheet) -> Iterator[int]:
    for column, head in enumerate(sheet.head):
        longest = max((len(str(row[column] or "")) for row in sheet.rows), default=0)
        yield min(max(longest, len(head)) + 2, WIDEST)


def _row(number: int, cells: Sequence[Cell], style: str) -> str:
    return f'<row r="{number}">{"".join(_cells(number, cells, style))}</row>'


def _cells(number: int, cells: Sequence[Cell], style: str) -> Iterator[str]:
    for column, value in enumerate(cells):
        place = f'r="{letters(column)}{number}"{style}'
        if isinstance(value, str) and value:
            yield f'<c {place} t="inlineStr"><is><t xml:space="preserve">{_text(value)}</t></is></c>'
        elif value is not None and value != "":
            yield f"<c {place}><v>{value}</v></c>"


def _text(value: str) -> str:
    return escape(_NOT_IN_XML.sub("", value))


def letters(column: int) -> str:
    """Count in letters as spreadsheets name columns, from 0: A to Z, then AA."""
    text = ""
    column += 1
    while column:
        column, letter = divmod(column - 1, 26)
        text = chr(ord("A") + letter) + text
    return text
