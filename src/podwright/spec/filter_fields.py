"""What a filter's tree asks of the fields that there are: names looked up, values read, `not` taken out. Pure.

Whatever tests are compiled to, two rules hold, of columns, classes and tags alike:

missing    a row without a value does not fit a test, so it fits what the test is negated to
not        it is moved down to the tests, which are marked: a row fits exactly where it does not fit the test itself;
           `!=` is `not` of `=`
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from podwright.spec.filters import Combined, Comparison, Filter, Negated, filter_refusal
from podwright.spec.nearest import did_you_mean
from podwright.spec.problems import Refusal, short
from podwright.spec.quantity import duration_s, size_bytes

Kind = Literal["text", "folder", "whole", "size", "time", "mode", "count", "tag", "number", "duration"]
_EQUALITY = ("=", "!=")
_TOO_LARGE = 1 << 63


@dataclass(frozen=True, slots=True)
class Field:
    """A name that a filter may use: what its values are, and where whoever compiles a test finds them."""

    name: str
    kind: Kind
    source: str


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
class FieldTest:
    """One field held against a value of its kind; `negated` fits all rows that this does not fit. It has no `!=`."""

    field: Field
    operator: str
    value: object
    negated: bool = False

    def opposite(self) -> FieldTest:
        """Return the test that fits what this one does not."""
        return replace(self, negated=not self.negated)


@dataclass(frozen=True, slots=True)
class Joint:
    """Tests of which all (`and`) or at least one (`or`) must hold."""

    word: str
    parts: tuple[FieldTests, ...]


FieldTests = FieldTest | Joint


def resolve_filter(tree: Filter, vocabulary: Vocabulary) -> FieldTests:
    """Return the tests of a filter; a refusal names what is wrong in its text, all of it at once."""
    refusals: list[Refusal] = []
    tests = _of(tree, vocabulary, True, refusals)
    if refusals:
        raise Refusal([refusal.problems[0] for refusal in refusals])
    return tests


def _of(tree: Filter, vocabulary: Vocabulary, holds: bool, refusals: list[Refusal]) -> FieldTests:
    if isinstance(tree, Negated):
        return _of(tree.part, vocabulary, not holds, refusals)
    if isinstance(tree, Combined):
        # That not all hold means that one of them fails.
        every = (tree.word == "and") == holds
        return Joint("and" if every else "or", tuple(_of(part, vocabulary, holds, refusals) for part in tree.parts))
    try:
        test = _test(tree, vocabulary)
    except Refusal as refusal:
        refusals.append(refusal)
        return Joint("and", ())
    return test if holds else test.opposite()


def _test(comparison: Comparison, vocabulary: Vocabulary) -> FieldTest:
    if comparison.name == "class" and "class" not in vocabulary.fields:
        return _class_test(comparison, vocabulary)
    field = vocabulary.fields.get(comparison.name)
    if field is None:
        raise _unknown(comparison.name, comparison.name_at, vocabulary)
    if comparison.operator == "~" and field.kind not in ("text", "folder", "tag"):
        hint = f"{field.name} is compared with =, !=, <, <=, > or >="
        raise filter_refusal(comparison.name_at, field.name, "has no parts that `~` could look for", hint)
    value = _READERS[field.kind](comparison)
    if comparison.operator == "!=":
        return FieldTest(field, "=", value, negated=True)
    return FieldTest(field, comparison.operator, value)


def _class_test(comparison: Comparison, vocabulary: Vocabulary) -> FieldTest:
    """Return the test of `class=Car`, which is short for `Car>0`."""
    if comparison.operator not in _EQUALITY:
        hint = f"a class is there or not (= or !=); for pixels write `{_quoted(comparison.value)}>1000`"
        raise filter_refusal(comparison.name_at, "class", f"cannot be compared with `{comparison.operator}`", hint)
    field = vocabulary.fields.get(comparison.value)
    if field is None or field.kind != "count":
        raise _unknown(comparison.value, comparison.value_at, vocabulary, of_classes=True)
    return FieldTest(field, ">", 0, negated=comparison.operator == "!=")


def _unknown(name: str, at: int, vocabulary: Vocabulary, of_classes: bool = False) -> Refusal:
    what = "class" if of_classes else "column"
    if name in vocabulary.pending_classes or (of_classes and not vocabulary.classes):
        message = "is a class, and its pixels are not counted yet"
        return filter_refusal(at, name, message, f"podwright data stats {vocabulary.dataset}")
    names = vocabulary.classes if of_classes else [*vocabulary.fields, *vocabulary.pending_classes, "class"]
    hint = did_you_mean(name, names, f"the columns are {', '.join(map(_quoted, names))}", shown=_quoted)
    return filter_refusal(at, name, f"unknown {what}", hint)


def _quoted(name: str) -> str:
    if name.replace("_", "").isalnum():
        return name
    return f'"{name}"'


def _text(comparison: Comparison) -> str:
    return comparison.value


def _folder(comparison: Comparison) -> str:
    """Return a folder as it is kept, with a slash behind it; the root's is empty."""
    if comparison.operator not in _EQUALITY:
        return comparison.value
    path = comparison.value.rstrip("/")
    return f"{path}/" if path not in ("", ".") else ""


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


def _tag(comparison: Comparison) -> str | float:
    """Return a number where the order of two is asked for, else a text."""
    if comparison.operator in (*_EQUALITY, "~"):
        return comparison.value
    try:
        number = float(comparison.value)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise _no_value(comparison, "a number", "texts are compared with =, != and ~")
    return number


def _number(comparison: Comparison) -> float:
    """Return a number; `80%` is 0.8."""
    text = comparison.value.removesuffix("%")
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise _no_value(comparison, "a number", f"write it like `{comparison.name}>=0.8`")
    return number if text == comparison.value else number / 100


def _duration(comparison: Comparison) -> float:
    """Return seconds, which a number without a unit is."""
    try:
        return float(comparison.value) if comparison.value.isdecimal() else duration_s(comparison.value)
    except Refusal:
        raise _no_value(comparison, "a time", f"write it like `{comparison.name}>=2h`") from None


def _no_value(comparison: Comparison, what: str, hint: str) -> Refusal:
    message = f'"{short(comparison.value)}" is not {what}'
    return filter_refusal(comparison.value_at, comparison.name, message, hint)


_READERS: dict[Kind, Callable[[Comparison], object]] = {
    "text": _text,
    "folder": _folder,
    "whole": _whole,
    "size": _size,
    "time": _time,
    "mode": _mode,
    "count": _whole,
    "tag": _tag,
    "number": _number,
    "duration": _duration,
}
