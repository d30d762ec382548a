"""From what is asked of runs to a condition in SQLite's SQL over the index, with every value as a parameter. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from podwright.runs.facts import COLUMNS, FIELDS, PLACES, place_field
from podwright.runs.states import STATES
from podwright.spec.filter_fields import Field, FieldTest, FieldTests, Joint, Vocabulary, resolve_filter
from podwright.spec.filters import Combined, Comparison, Filter, Negated, filter_refusal
from podwright.spec.nearest import did_you_mean, one_of
from podwright.spec.problems import Refusal

ME = "me"
"""In `user=me`: whoever asks."""
_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class RunCondition:
    """SQL for behind WHERE, with the values of its question marks."""

    sql: str = "1"
    values: tuple[object, ...] = ()


@dataclass(frozen=True, slots=True)
class RunOrder:
    """What runs are sorted by."""

    name: str = "created"
    descending: bool = False

    @property
    def direction(self) -> str:
        """Return SQL's word for it."""
        return "DESC" if self.descending else "ASC"


@dataclass(frozen=True, slots=True)
class RunPlace:
    """Where a run stands in an order: by what it is sorted by, and among equals by its id."""

    value: str | float
    run: str
    has_value: bool = True
    """Of a run that has no such value: by when it was created."""


NEWEST_FIRST = RunOrder(descending=True)
HAS_FACT = "EXISTS (SELECT 1 FROM facts WHERE run = id AND facts.name = ?)"
"""Tests of a fact look into a run's own facts: of the newest that fit, the first are found at once."""
NO_POINTS = RunCondition("+parent IS NULL")


def both(*conditions: RunCondition) -> RunCondition:
    """Return the condition that all of these hold."""
    return _joined("AND", conditions)


def page_query(condition: RunCondition, order: RunOrder, after: RunPlace | None) -> tuple[str, tuple[object, ...]]:
    """Return SQL for the runs behind a place in an order, with a last question mark for how many of them.

    The place is found by an index, so that a page costs the same wherever it is.
    """
    column, table, run = COLUMNS.get(order.name), "runs", "id"
    if column is None:
        column, table, run = "f.value", "facts AS f CROSS JOIN runs ON id = f.run", "f.run"
        condition = RunCondition(f"f.name = ? AND ({condition.sql})", (order.name, *condition.values))
    if after is not None:
        beyond = "<" if order.descending else ">"
        place = RunCondition(f"({column}, {run}) {beyond} (?, ?)", (after.value, after.run))
        condition = both(condition, place)
    return (
        f"SELECT record, id, {column} FROM {table} WHERE {condition.sql}"
        f" ORDER BY {column} {order.direction}, {run} {order.direction} LIMIT ?"
    ), condition.values


def whole_name(name: str, known: Collection[str]) -> list[str]:
    """Return what a name may stand for: a field, else what was varied or told under it, as far as any run has it."""
    if name in FIELDS or name.partition(".")[0] in PLACES:
        return [name]
    return [f"{place}.{name}" for place in PLACES if f"{place}.{name}" in known]


def bare_names(known: Collection[str]) -> list[str]:
    """Return all names that may be written: the fields, and what was varied and told without its prefix."""
    places = [name.partition(".") for name in known]
    return [*FIELDS, *sorted({name for place, _, name in places if place in PLACES})]


def condition_of(tree: Filter, known: Collection[str], me: str | None) -> RunCondition:
    """Return the condition of a filter; a refusal names what is wrong in its text, all of it at once.

    `known` are the names that runs have values of, `me` is who asks.
    """
    refusals: list[Refusal] = []
    fields: dict[str, Field] = {}
    for comparison in _comparisons(tree):
        try:
            fields[comparison.name] = _field(comparison, known)
        except Refusal as refusal:
            refusals.append(refusal)
    if refusals:
        raise Refusal([refusal.problems[0] for refusal in refusals])
    return _compiled(resolve_filter(tree, Vocabulary("", fields)), me)


def _comparisons(tree: Filter) -> Iterator[Comparison]:
    if isinstance(tree, Comparison):
        yield tree
    elif isinstance(tree, Negated):
        yield from _comparisons(tree.part)
    elif isinstance(tree, Combined):
        for part in tree.parts:
            yield from _comparisons(part)


def _field(comparison: Comparison, known: Collection[str]) -> Field:
    names = whole_name(comparison.name, known)
    if len(names) > 1:
        message, hint = "may be what was varied or what programs told", f"write {' or '.join(names)}"
        raise filter_refusal(comparison.name_at, comparison.name, message, hint)
    if not names:
        raise _unknown(comparison, known)
    if names[0] == "state" and comparison.operator in ("=", "!=") and comparison.value not in STATES:
        hint = one_of(comparison.value, "a state", STATES)
        raise filter_refusal(comparison.value_at, "state", f'"{comparison.value}" is not a state', hint)
    if names[0] in FIELDS:
        return FIELDS[names[0]]
    return place_field(*names[0].split(".", 1))


def _unknown(comparison: Comparison, known: Collection[str]) -> Refusal:
    hint = did_you_mean(
        comparison.name, bare_names(known), f"a filter knows {', '.join(FIELDS)}; matrix.NAME, results.NAME"
    )
    return filter_refusal(comparison.name_at, comparison.name, "is no field, and no run has a value of it", hint)


def _compiled(tests: FieldTests, me: str | None) -> RunCondition:
    if isinstance(tests, Joint):
        return _joined(tests.word.upper(), [_compiled(part, me) for part in tests.parts])
    sql, values = _test(tests, me)
    if tests.negated:
        sql = f"NOT ({sql})"
    return RunCondition(sql, values)


def _joined(word: str, parts: Sequence[RunCondition]) -> RunCondition:
    """Join conditions in halves: SQLite bounds how deep an expression is, and a filter may have a thousand parts."""
    if len(parts) == 1:
        return parts[0]
    left, right = _joined(word, parts[: len(parts) // 2]), _joined(word, parts[len(parts) // 2 :])
    return RunCondition(f"({left.sql}) {word} ({right.sql})", left.values + right.values)


def _test(test: FieldTest, me: str | None) -> tuple[str, tuple[object, ...]]:
    """Return the SQL of a test, which is never NULL: a run without a value is simply not among those that have it."""
    name, value = test.field.name, test.value
    if name == "user" and value == ME and me is not None:
        value = me
    if test.field.source == "column":
        if name == "created":
            return f"created_at {test.operator} ?", (float(str(value)) / _NS,)
        return _compared(COLUMNS[name], test.operator, value)
    compared, values = _compared("value", test.operator, value)
    fits = f"EXISTS (SELECT 1 FROM facts WHERE {{}} AND facts.name = ? AND {compared})"
    if test.field.source == "tag":  # a point has the tags of its sweep, too
        return fits.format("run IN (id, parent)"), (name, *values)
    return fits.format("run = id"), (name, *values)


def _compared(source: str, operator: str, value: object) -> tuple[str, tuple[object, ...]]:
    if operator == "~":
        return f"instr({source}, ?) > 0", (value,)
    number = _number(value)
    if operator == "=" and isinstance(value, str) and number is not None:
        return f"{source} IN (?, ?)", (value, number)
    if isinstance(value, str) or operator == "=":
        return f"{source} {operator} ?", (value,)
    # Every text lies above every number, and is none.
    return f"{source} {operator} ? AND typeof({source}) != 'text'", (value,)


def _number(value: object) -> float | None:
    try:
        return float(str(value))
    except ValueError:
        return None
