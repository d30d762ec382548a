"""From a filter's tree to a condition in SQL, with every value as a parameter. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Literal

from podwright.spec.filters import Combined, Comparison, Filter, Negated, filter_refusal
from podwright.spec.nearest import did_you_mean
from podwright.spec.problems import Refusal, short
from podwright.spec.quantity import size_bytes

Kind = Literal["text", "whole", "size", "time", "mode", "count", "tag"]
_TOO_LARGE = 1 << 63


@dataclass(frozen=True, slots=True)
class Field:
    """A name that a filter may use: what its values are, and the SQL that gives them."""

    name: str
    kind: Kind
    sql: str


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """All names that filters of one dataset may use."""

    dataset: str
    fields: Mapping[str, Field]
    pending_classes: Sequence[str] = ()
    """Classes that the dataset's labels have and nobody has counted yet."""

    @property
    def classes(self) -> list[str]:
        """Return the names of the classes that are counted."""
        return [name for name, field in self.fields.items() if field.kind == "count"]


@dataclass(frozen=True, slots=True)
class Test:
    """One field held against a value of its kind."""

    field: Field
    operator: str
    value: object


@dataclass(frozen=True, slots=True)
class Joint:
    """Tests of which all (`and`) or at least one (`or`) must hold."""

    word: str
    parts: tuple[Tests, ...]


@dataclass(frozen=True, slots=True)
class Inverse:
    """Tests that must not hold."""

    part: Tests


Tests = Test | Joint | Inverse


@dataclass(frozen=True, slots=True)
class Condition:
    """SQL for behind WHERE, with the values of its question marks; the same as tests, for indexes."""

    sql: str
    values: tuple[object, ...] = ()
    tests: Tests | None = field(default=None, compare=False)
    """None: all rows."""


EVERYTHING = Condition("true")


def condition_of(tree: Filter | None, vocabulary: Vocabulary) -> Condition:
    """Return the condition of a filter; a refusal names what is wrong in its text, all of it at once."""
    if tree is None:
        return EVERYTHING
    problems: list[Refusal] = []
    condition = _of(tree, vocabulary, problems)
    if problems:
        every = [refusal.problems[0] for refusal in problems]
        raise Refusal(every)
    return condition


def _of(tree: Filter, vocabulary: Vocabulary, problems: list[Refusal]) -> Condition:
    if isinstance(tree, Negated):
        inner = _of(tree.part, vocabulary, problems)
        return Condition(f"NOT ({inner.sql})", inner.values, inner.tests and Inverse(inner.tests))
    if isinstance(tree, Combined):
        parts = [_of(part, vocabulary, problems) for part in tree.parts]
        values: tuple[object, ...] = sum((part.values for part in parts), ())
        joint = Joint(tree.word, tuple(part.tests for part in parts if part.tests))
        return Condition(f" {tree.word.upper()} ".join(f"({part.sql})" for part in parts), values, joint)
    try:
        return _compared(tree, vocabulary)
    except Refusal as refusal:
        problems.append(refusal)
        return EVERYTHING


def _compared(comparison: Comparison, vocabulary: Vocabulary) -> Condition:
    if comparison.name == "class" and "class" not in vocabulary.fields:
        return _class_compared(comparison, vocabulary)
    field = vocabulary.fields.get(comparison.name)
    if field is None:
        raise _unknown(comparison.name, comparison.name_at, vocabulary)
    if field.kind == "tag":
        return _tag_compared(field, comparison)
    if comparison.operator == "~" and field.kind != "text":
        hint = f"{field.name} is compared with =, !=, <, <=, > or >="
        raise filter_refusal(comparison.name_at, field.name, "has no parts that `~` could look for", hint)
    value = _value(field, comparison)
    test = Test(field, comparison.operator, value)
    if comparison.operator == "~":
        return Condition(f"contains({field.sql}, ?)", (value,), test)
    return Condition(f"{field.sql} {comparison.operator} ?", (value,), test)


def _class_compared(comparison: Comparison, vocabulary: Vocabulary) -> Condition:
    """Return the condition of `class=Car`, which is short for `Car>0`."""
    signs = {"=": ">", "!=": "="}
    sign = signs.get(comparison.operator)
    if sign is None:
        hint = f"a class is there or not (= or !=); for pixels write `{_quoted(comparison.value)}>1000`"
        raise filter_refusal(comparison.name_at, "class", f"cannot be compared with `{comparison.operator}`", hint)
    field = vocabulary.fields.get(comparison.value)
    if field is None or field.kind != "count":
        raise _unknown(comparison.value, comparison.value_at, vocabulary, of_classes=True)
    return Condition(f"{field.sql} {sign} 0", (), Test(field, sign, 0))


def _tag_compared(field: Field, comparison: Comparison) -> Condition:
    """Return the condition of a tag: as numbers where the order of two is asked for, else as texts."""
    value: object = comparison.value
    tests = Test(field, comparison.operator, value)
    test = f"t.value {comparison.operator} ?"
    if comparison.operator == "~":
        test = "contains(t.value, ?)"
    elif comparison.operator in ("<", "<=", ">", ">="):
        value, test = _number(comparison), f"TRY_CAST(t.value AS DOUBLE) {comparison.operator} ?"
    if comparison.operator == "!=":
        # Files without the tag do not have this value either.
        inner = "SELECT 1 FROM tag t WHERE t.file = f.id AND t.name = ? AND t.value = ?"
        return Condition(f"NOT EXISTS ({inner})", (field.name, value), tests)
    inner = f"SELECT 1 FROM tag t WHERE t.file = f.id AND t.name = ? AND {test}"
    return Condition(f"EXISTS ({inner})", (field.name, value), tests)


def _unknown(name: str, at: int, vocabulary: Vocabulary, of_classes: bool = False) -> Refusal:
    what = "class" if of_classes else "column"
    if name in vocabulary.pending_classes or (of_classes and not vocabulary.classes):
        message = "is a class, and its pixels are not counted yet"
        return filter_refusal(at, name, message, f"podwright data stats {vocabulary.dataset}")
    known = vocabulary.classes if of_classes else [*vocabulary.fields, *vocabulary.pending_classes, "class"]
    hint = did_you_mean(name, known, f"the columns are {', '.join(map(_quoted, known))}", shown=_quoted)
    return filter_refusal(at, name, f"unknown {what}", hint)


def _quoted(name: str) -> str:
    if name.replace("_", "").isalnum():
        return name
    return f'"{name}"'


def _value(field: Field, comparison: Comparison) -> object:
    read = _READERS[field.kind]
    return read(comparison)


def _text(comparison: Comparison) -> str:
    return comparison.value


def _whole(comparison: Comparison) -> int:
    try:
        number = int(comparison.value)
    except ValueError:
        number = _TOO_LARGE
    if abs(number) >= _TOO_LARGE:
        raise _no_value(comparison, "a whole number", f"write it like `{comparison.name}>=100`")
    return number


def _size(comparison: Comparison) -> int:
    if comparison.value.isascii() and comparison.value.isdigit():
        return _whole(comparison)
    try:
        return size_bytes(comparison.value)
    except Refusal as refusal:
        problem = refusal.problems[0]
        raise filter_refusal(comparison.value_at, comparison.name, problem.message, problem.hint) from None


def _time(comparison: Comparison) -> int:
    """Return nanoseconds; a time without a zone is UTC."""
    try:
        moment = datetime.fromisoformat(comparison.value)
    except ValueError:
        hint = f"write it like `{comparison.name}>=2026-03-02` or `{comparison.name}>=2026-03-02T09:12:40`"
        raise _no_value(comparison, "a time", hint) from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return int(moment.timestamp()) * 1_000_000_000 + moment.microsecond * 1000


def _mode(comparison: Comparison) -> int:
    try:
        return int(comparison.value, 8)
    except ValueError:
        raise _no_value(comparison, "a mode in octal digits", "write it like `mode=0644`") from None


def _number(comparison: Comparison) -> float:
    try:
        number = float(comparison.value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise _no_value(comparison, "a number", "texts are compared with =, != and ~")
    return number


def _no_value(comparison: Comparison, what: str, hint: str) -> Refusal:
    message = f'"{short(comparison.value)}" is not {what}'
    return filter_refusal(comparison.value_at, comparison.name, message, hint)


_READERS: dict[Kind, Callable[[Comparison], object]] = {
    "text": _text,
    "whole": _whole,
    "size": _size,
    "time": _time,
    "mode": _mode,
    "count": _whole,
}
