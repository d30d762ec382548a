"""From a filter's tree to a condition in DuckDB's SQL, with every value as a parameter. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from podwright.spec.filter_fields import FieldTest, FieldTests, Joint, Vocabulary, resolve_filter
from podwright.spec.filters import Filter


@dataclass(frozen=True, slots=True)
class Condition:
    """SQL for behind WHERE, with the values of its question marks; the same as tests, for indexes."""

    sql: str
    values: tuple[object, ...] = ()
    tests: FieldTests | None = field(default=None, compare=False)
    """None: all rows."""


EVERYTHING = Condition("true")


NEGATED = "({}) IS NOT TRUE"
NEGATED_AS_IN_0_2 = "NOT ({})"
"""A row without a value fitted neither a test of a column nor its opposite."""


def condition_of(tree: Filter | None, vocabulary: Vocabulary, negated: str = NEGATED) -> Condition:
    """Return the condition of a filter; a refusal names what is wrong in its text, all of it at once."""
    if tree is None:
        return EVERYTHING
    return _compiled(resolve_filter(tree, vocabulary), negated)


def _compiled(tests: FieldTests, negated: str) -> Condition:
    if isinstance(tests, Joint):
        parts = [_compiled(part, negated) for part in tests.parts]
        values: tuple[object, ...] = sum((part.values for part in parts), ())
        return Condition(f" {tests.word.upper()} ".join(f"({part.sql})" for part in parts), values, tests)
    if tests.field.kind == "tag":
        sql, values = _tag_compared(tests), (tests.field.name, tests.value)
    else:
        sql, values = _compared(tests.field.source, tests), (tests.value,)
    if tests.negated:
        sql = negated.format(sql)
    return Condition(sql, values, tests)


def _compared(source: str, test: FieldTest) -> str:
    if test.operator == "~":
        return f"contains({source}, ?)"
    return f"{source} {test.operator} ?"


def _tag_compared(test: FieldTest) -> str:
    """Return the SQL of a tag's test, which is never NULL: files without the tag do not have the value either."""
    source = "TRY_CAST(t.value AS DOUBLE)" if isinstance(test.value, float) else "t.value"
    return f"EXISTS (SELECT 1 FROM tag t WHERE t.file = f.id AND t.name = ? AND {_compared(source, test)})"
