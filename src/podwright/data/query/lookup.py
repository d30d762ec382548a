"""Answers a condition from the indexes of one file of a generation, as the set of its rows.

A set may be too large (`exact` is false): then it holds every row that fits, and SQL has to look at its rows alone.
Where no index helps there is none.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from pyroaring import BitMap

from podwright.data.query.bitmaps import bitmap_of, blocks_table, class_field, runs_of, tag_field
from podwright.data.query.conditions import Condition
from podwright.data.query.trigrams import BLOCK_ROWS, terms_of
from podwright.spec.filter_fields import FieldTest, FieldTests, Joint

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "~": lambda whole, part: part in whole,
}
_PATHS = ("path", "folder", "name")
_MAX_KEPT = 512
_AT_ONCE = 64
"""Sets that one query reads: each by its place, since DuckDB goes through all of them for a list of places."""
WORTH = 8
"""Rows are looked at one by one where an index leaves no more than this part of them."""


class BrokenIndex(ValueError):
    """An index holds what no scan writes."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """Rows that may fit, or that do."""

    rows: BitMap
    exact: bool = True


@dataclass(frozen=True, slots=True)
class _Span:
    """A block of rows in the order of their numbers: the part it lies in, and its place there."""

    chunk: int
    row_id: int
    least: int
    most: int

    @property
    def key(self) -> tuple[int, int]:
        """Return what tells it from any other."""
        return self.chunk, self.row_id


class Lookup:
    """The indexes of one file; what was read is kept."""

    def __init__(self, connection: DuckDBPyConnection, alias: str, rows: int) -> None:
        self._connection, self._alias = connection, alias
        self._every = BitMap()
        self._every.add_range(0, rows)
        self._bitmaps: dict[int, BitMap] = {}
        self._blocks: dict[tuple[int, int], tuple[Any, Any]] = {}
        self._ranges: dict[tuple[str, int, int], BitMap] = {}
        self._postings: dict[int, BitMap] = {}
        self._terms: dict[int, int] = {}

    def candidates(self, condition: Condition) -> Candidates | None:
        """Return the rows that a condition chooses, as far as indexes know."""
        if condition.tests is None:
            return Candidates(self._every)
        # A catalog of somebody else may hold anything: sets that are none, no numbers, rows that there are not.
        try:
            answer = self._of(condition.tests)
        except (ValueError, TypeError, LookupError, OverflowError) as error:
            raise BrokenIndex(f"an index is not what a scan makes: {error}") from None
        if answer is None or answer.rows <= self._every:
            return answer
        raise BrokenIndex("an index names files that there are not")

    def _of(self, tests: FieldTests) -> Candidates | None:
        if isinstance(tests, Joint):
            return self._joint(tests)
        return _READERS[tests.field.kind](self, tests)

    def _joint(self, tests: Joint) -> Candidates | None:
        every = [self._of(part) for part in tests.parts]
        answers = [answer for answer in every if answer is not None]
        exact = len(answers) == len(every) and all(answer.exact for answer in answers)
        if tests.word == "or":
            if len(answers) < len(every):
                return None
            return Candidates(BitMap.union(*[answer.rows for answer in answers]), exact)
        if not answers:
            return None
        # The smallest first: what is left only shrinks.
        return Candidates(BitMap.intersection(*sorted([answer.rows for answer in answers], key=len)), exact)

    def facet(self, field: str) -> dict[str, int]:
        """Return how many files have each value of a field; of one with too many values, none."""
        return {value: files for of, value, files, _ in self._heads if of == field and value is not None}

    @cached_property
    def _heads(self) -> list[tuple[str, str | None, int, int]]:
        query = f"SELECT field, value, files, rowid FROM {self._alias}.bitmap"
        return self._connection.execute(query).fetchall()

    @cached_property
    def _values(self) -> dict[str, dict[str | None, int]]:
        """Return the place of each bitmap in its table, by field and value."""
        every: dict[str, dict[str | None, int]] = {}
        for field, value, _, row_id in self._heads:
            every.setdefault(field, {})[value] = row_id
        return every

    @cached_property
    def _spans(self) -> dict[str, list[_Span]]:
        every: dict[str, list[_Span]] = {}
        query = f"SELECT field, part, place, least, most FROM {self._alias}.span ORDER BY part, place"
        for field, chunk, row_id, least, most in self._connection.execute(query).fetchall():
            # These two stand in SQL again, and a catalog of somebody else may hold anything.
            every.setdefault(field, []).append(_Span(int(chunk), int(row_id), least, most))
        return every

    def _bitmap(self, row_id: int) -> BitMap:
        return self._sets("bitmap", "rows", [row_id], self._bitmaps)[0]

    def _sets(self, table: str, column: str, row_ids: list[int], cache: dict[int, BitMap]) -> list[BitMap]:
        """Return the sets at these places of a table."""
        sets = {row_id: cache[row_id] for row_id in row_ids if row_id in cache}
        missing = [row_id for row_id in row_ids if row_id not in sets]
        for start in range(0, len(missing), _AT_ONCE):
            query = " UNION ALL ".join(
                f"SELECT rowid, {column} FROM {self._alias}.{table} WHERE rowid = {row_id}"
                for row_id in missing[start : start + _AT_ONCE]
            )
            for row_id, blob in self._connection.execute(query).fetchall():
                _make_room(cache)
                sets[row_id] = cache[row_id] = BitMap.deserialize(bytes(blob))
        return [sets[row_id] for row_id in row_ids]

    def _few(self, test: FieldTest, kind: Callable[[str], Any] = str) -> Candidates | None:
        """Answer for a field that has a bitmap for each value."""
        row_ids = self._values.get(test.field.name)
        if row_ids is None:
            return None
        fits = _COMPARE[test.operator]
        rows = self._united(
            [at for value, at in row_ids.items() if value is not None and fits(kind(value), test.value)]
        )
        return self._exactly(rows, test)

    def _exactly(self, rows: BitMap, test: FieldTest) -> Candidates:
        """Return the rows that fit a test, or where it is negated all others."""
        return Candidates(self._every - rows if test.negated else rows)

    def _united(self, row_ids: list[int]) -> BitMap:
        if len(row_ids) == 1:
            return self._bitmap(row_ids[0])
        return BitMap.union(BitMap(), *self._sets("bitmap", "rows", row_ids, self._bitmaps))

    def text(self, test: FieldTest) -> Candidates | None:
        """Answer for a text: by its bitmaps, or for paths by their trigrams."""
        if test.field.name not in _PATHS:
            return self._few(test)
        if test.negated or test.operator not in ("=", "~"):
            return None
        return self._containing(str(test.value))

    def _containing(self, text: str) -> Candidates | None:
        """Return the rows of all blocks in which each term of a text stands."""
        terms = terms_of(text)
        if not terms:
            return None
        unknown = [str(term) for term in terms if term not in self._terms]
        if unknown:
            query = f"SELECT letters, rowid FROM {self._alias}.trigram WHERE letters IN ({', '.join(unknown)})"
            self._terms |= dict(self._connection.execute(query).fetchall())
        if any(term not in self._terms for term in terms):
            return Candidates(BitMap())
        places = [self._terms[term] for term in terms]
        blocks = BitMap.intersection(*self._sets("trigram", "blocks", places, self._postings))
        if len(blocks) * BLOCK_ROWS * WORTH > len(self._every):
            return None
        rows = BitMap()
        for start, end in zip(*runs_of(blocks), strict=True):
            rows.add_range(int(start) * BLOCK_ROWS, int(end) * BLOCK_ROWS)
        return Candidates(rows & self._every, exact=False)

    def mode(self, test: FieldTest) -> Candidates | None:
        """Answer for the mode, whose values stand as decimal digits."""
        return self._few(test, int)

    def number(self, test: FieldTest) -> Candidates | None:
        """Answer for a field of numbers: whole blocks, and of those at the edges the rows that fit."""
        spans = self._spans.get(test.field.name)
        if spans is None:
            return None
        assert isinstance(test.value, int)
        return self._exactly(self._between(test.field.name, *_RANGES[test.operator](test.value)), test)

    def _between(self, name: str, least: int, most: int) -> BitMap:
        key = (name, least, most)
        if key not in self._ranges:
            _make_room(self._ranges)
            spans = [span for span in self._spans[name][:-1] if span.least <= most and least <= span.most]
            self._ranges[key] = BitMap.union(BitMap(), *self._parts(spans, least, most))
        return self._ranges[key]

    def _parts(self, spans: list[_Span], least: int, most: int) -> Iterator[BitMap]:
        for span, within in self._read(spans):
            if least <= span.least and span.most <= most:
                yield within
                continue
            values, rows = self._sorted(span, within)
            # As numbers of the block's own type: NumPy would compare others as floats, which lack nanoseconds.
            start = np.searchsorted(values, values.dtype.type(max(least, span.least) - span.least), "left")
            end = np.searchsorted(values, values.dtype.type(min(most, span.most) - span.least), "right")
            yield bitmap_of(np.sort(rows[start:end]))

    def _read(self, spans: list[_Span]) -> Iterator[tuple[_Span, BitMap]]:
        """Yield blocks with their rows, by one query for all parts."""
        if not spans:
            return
        of_key = {span.key: span for span in spans}
        row_ids: dict[int, list[str]] = {}
        for chunk, row_id in of_key:
            row_ids.setdefault(chunk, []).append(str(row_id))
        query = " UNION ALL ".join(
            f"SELECT {chunk}, rowid, rows FROM {self._alias}.{blocks_table(chunk)} WHERE rowid IN ({', '.join(inside)})"
            for chunk, inside in row_ids.items()
        )
        for chunk, row_id, blob in self._connection.execute(query).fetchall():
            yield of_key[chunk, row_id], BitMap.deserialize(bytes(blob))

    def _sorted(self, span: _Span, within: BitMap) -> tuple[Any, Any]:
        """Return the numbers of a block in their order, counted from its least, and their rows."""
        if span.key not in self._blocks:
            _make_room(self._blocks)
            query = f"SELECT above FROM {self._alias}.{blocks_table(span.chunk)} WHERE rowid = {span.row_id}"
            ((blob,),) = self._connection.execute(query).fetchall()
            above = np.frombuffer(bytes(blob), np.min_scalar_type(span.most - span.least))
            order = np.argsort(above, kind="stable")
            self._blocks[span.key] = above[order], np.asarray(within.to_array(), np.uint32)[order]
        return self._blocks[span.key]

    def count(self, test: FieldTest) -> Candidates | None:
        """Answer for the pixels of a class: exactly whether there are any, else with those that have some."""
        index = int(test.field.source.removeprefix("l.c"))
        values = self._values.get(class_field(index))
        if values is None:
            return None
        sign, value = test.operator, test.value
        assert isinstance(value, int)
        present = self._united([row_id for name, row_id in values.items() if name is not None])
        if (sign, value) in _SOME:
            return self._exactly(present, test)
        if (sign, value) in _NONE:
            return self._exactly(self._bitmap(values[None]) - present, test)
        if test.negated:
            return None
        if sign in (">", ">=", "=") and value > 0:
            return Candidates(present, exact=False)
        return Candidates(self._bitmap(values[None]), exact=False)

    def tag(self, test: FieldTest) -> Candidates | None:
        """Answer for a tag: every file has it or has not, with one value or more."""
        row_ids = self._values.get(tag_field(test.field.name))
        if row_ids is None:
            return None
        if test.operator == "=" and len(row_ids) > 1:
            value = str(test.value)
            return self._exactly(self._united([row_ids[value]] if value in row_ids else []), test)
        if test.negated:
            return None
        return Candidates(self._bitmap(row_ids[None]), exact=False)


_SOME = ((">", 0), (">=", 1))
_NONE = (("=", 0), ("<=", 0), ("<", 1))
_LEAST, _MOST = -(1 << 63), (1 << 63) - 1
_RANGES: dict[str, Callable[[int], tuple[int, int]]] = {
    "=": lambda value: (value, value),
    "<": lambda value: (_LEAST, value - 1),
    "<=": lambda value: (_LEAST, value),
    ">": lambda value: (value + 1, _MOST),
    ">=": lambda value: (value, _MOST),
}
_READERS: dict[str, Callable[[Lookup, FieldTest], Candidates | None]] = {
    "text": Lookup.text,
    "folder": Lookup.text,
    "whole": Lookup.number,
    "size": Lookup.number,
    "time": Lookup.number,
    "mode": Lookup.mode,
    "count": Lookup.count,
    "tag": Lookup.tag,
}


def _make_room(cache: dict[Any, Any]) -> None:
    """Let go of what was read first where too much is kept."""
    while len(cache) >= _MAX_KEPT:
        del cache[next(iter(cache))]
