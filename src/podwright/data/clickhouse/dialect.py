"""ClickHouse's SQL: tables of a generation, conditions of filters, and what each version of the server needs. Pure.

ClickHouse joins poorly and knows no correlated subquery, so a generation is one wide table: folders, labels and tags
stand in the row of their file. What no filter asks for by name begins with an underscore.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from podwright.data.catalog.schema import FIELDS
from podwright.data.query.conditions import Condition
from podwright.data.query.sorting import FileOrder
from podwright.data.tree.layouts import Layout, sort_columns
from podwright.spec.filter_fields import Field, FieldTest, FieldTests, Joint

POINTER = "podwright_generations"
"""The table of what is published. A row in it is the switch: an INSERT of one row is atomic in every version."""
_ESCAPED = {"\\": "\\\\", "'": "\\'", "\0": "\\0", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


@dataclass(frozen=True, slots=True)
class Dialect:
    """What a version of the server has that the one before lacked."""

    since: tuple[int, int]
    few_values: str
    """The type of texts that repeat; `{}` is the type itself."""
    moment: str
    """SQL for nanoseconds as a time."""
    sorted_by_columns: bool
    """Whether columns that may be NULL can be in the sort key; without them rows are sorted by their number alone."""
    indexes: tuple[tuple[str, str], ...]
    """Columns with an index that skips blocks, and its kind."""


DIALECTS = (
    Dialect((18, 16), "{}", "toDateTime(intDiv({}, 1000000000))", False, ()),
    Dialect(
        (22, 8),
        "LowCardinality({})",
        "fromUnixTimestamp64Nano({}, 'UTC')",
        True,
        (("size", "minmax"), ("_mtime_ns", "minmax"), ("ext", "set(100)")),
    ),
)
"""The first works with every server since; a test runs it on the newest too."""


def dialect_of(version: tuple[int, int]) -> Dialect | None:
    """Return what a server of this version is spoken to with; None where it is too old."""
    fitting = [dialect for dialect in DIALECTS if dialect.since <= version]
    return fitting[-1] if fitting else None


def name(text: str) -> str:
    """Return a name as ClickHouse takes it, whatever is in it."""
    return "`" + text.replace("\\", "\\\\").replace("`", "\\`") + "`"


def literal(value: object) -> str:
    """Return a value as ClickHouse takes it; parameters are unknown to old servers."""
    if isinstance(value, int | float):
        return repr(value)
    return "'" + "".join(_ESCAPED.get(char, char) for char in str(value)) + "'"


def class_name(index: int) -> str:
    """Return the column of a class."""
    return f"_c{index}"


def pointer_statement() -> str:
    """Return what makes the table of what is published, where it is not there yet."""
    return f"""CREATE TABLE IF NOT EXISTS {POINTER}
    (dataset String, generation UInt64, rows String, published DateTime, meta String)
    ENGINE = MergeTree ORDER BY (dataset, generation)"""


def columns_of(dialect: Dialect, layout: Layout, classes: int) -> list[tuple[str, str]]:
    """Return names and types of a generation's columns, in the order in which rows are sent."""
    text = dialect.few_values.format("String")
    columns = [
        ("id", "UInt64"),
        ("folder", text),
        ("_folder_raw", "Nullable(String)"),
        ("name", "String"),
        ("_name_raw", "Nullable(String)"),
        ("ext", text),
        ("type", text),
        ("size", "Int64"),
        ("_mtime_ns", "Int64"),
        ("owner", text),
        ("group", text),
        ("mode", "UInt16"),
        ("sha256", "Nullable(String)"),
    ]
    kinds = {"text": dialect.few_values.format("Nullable(String)"), "whole": "Nullable(Int64)"}
    columns += [(column.name, kinds[column.kind]) for column in layout.columns]
    columns += [("_counted", "UInt8"), ("_why", "Nullable(String)"), ("_unknown", "Nullable(UInt64)")]
    columns += [(class_name(index), "Nullable(UInt64)") for index in range(classes)]
    # No Nested: its name with a dot would have to be quoted otherwise from version to version.
    columns += [("_tags", "Array(String)"), ("_values", "Array(String)"), ("_numbers", "Array(Nullable(Float64))")]
    return columns


def table_statement(dialect: Dialect, table: str, layout: Layout, classes: int) -> str:
    """Return what makes the table of a generation."""
    parts = [f"{name(column)} {kind}" for column, kind in columns_of(dialect, layout, classes)]
    for column, kind in dialect.indexes:
        parts.append(f"INDEX {name(f'of {column}')} {name(column)} TYPE {kind} GRANULARITY 4")
    key, settings = [name("id")], ""
    if dialect.sorted_by_columns:
        key = [*map(name, sort_columns(layout)), *key]
        settings = " SETTINGS allow_nullable_key = 1"
    body = ",\n    ".join(parts)
    return f"CREATE TABLE {name(table)} (\n    {body})\nENGINE = MergeTree ORDER BY ({', '.join(key)}){settings}"


def view_statement(dialect: Dialect, view: str, table: str, layout: Layout, classes: Sequence[str]) -> str:
    """Return what makes the view in which a person who writes SQL finds all columns under their names."""
    taken = {field for field, _, _ in FIELDS} | {column.name for column in layout.columns}
    columns = ["id"]
    for field, kind, _ in FIELDS:
        if kind != "time":
            columns.append(f"{_column(Field(field, kind, ''))} AS {name(field)}")
    columns.append(f"{dialect.moment.format('_mtime_ns')} AS mtime")
    columns += [name(column.name) for column in layout.columns]
    for index, label in enumerate(classes):
        if label not in taken:
            columns.append(f"{class_name(index)} AS {name(label)}")
    return f"CREATE VIEW {name(view)} AS SELECT {', '.join(columns)} FROM {name(table)}"


def sample_key(layout: Layout) -> str:
    """Return the SQL of what tells samples apart; empty where a file lacks one of the columns."""
    if not layout.key:
        return "toString(id)"
    # With nothing in front: `concat` wants two texts at least, and a key may have one column.
    joined = ", '/', ".join(f"toString({name(column)})" for column in layout.key)
    return f"ifNull(concat('', {joined}), '')"


def role_case(layout: Layout) -> str:
    """Return the SQL of what a file is to its sample; empty for one that belongs to none."""
    cases = []
    for role in layout.roles:
        tests = ["type = 'file'", *(f"{name(column)} = {literal(value)}" for column, value in role.where.items())]
        cases += [" AND ".join(f"ifNull({test}, 0)" for test in tests), literal(role.name)]
    return f"multiIf({', '.join(cases)}, '')" if cases else "''"


def where_of(condition: Condition) -> str:
    """Return what stands behind WHERE; old servers take `NULL AND 0` for NULL, so a `not` stands above no NULL."""
    return _where(condition.tests) if condition.tests else "1"


def _where(tests: FieldTests) -> str:
    if isinstance(tests, Joint):
        return f" {tests.word.upper()} ".join(f"({_where(part)})" for part in tests.parts)
    if tests.field.kind == "tag":
        sql = _tag_compared(tests)
        return f"NOT ({sql})" if tests.negated else sql
    sql = _compared(_column(tests.field), tests)
    return f"ifNull({sql}, 0) = 0" if tests.negated else sql


def _compared(column: str, test: FieldTest) -> str:
    if test.operator == "~":
        return f"position({column}, {literal(test.value)}) > 0"
    return f"{column} {test.operator} {literal(test.value)}"


def _tag_compared(test: FieldTest) -> str:
    """Return the SQL of a tag's test, which is never NULL: a file without the tag does not have the value."""
    index = f"indexOf(_tags, {literal(test.field.name)})"
    if isinstance(test.value, float):
        return f"ifNull({_compared(f'_numbers[{index}]', test)}, 0)"
    return f"{index} > 0 AND {_compared(f'_values[{index}]', test)}"


def values_of(order: FileOrder) -> list[str]:
    """Return the SQL of what is sorted by: of a tag numbers as such, before texts."""
    if order.field.kind != "tag":
        return [_column(order.field)]
    index = f"indexOf(_tags, {literal(order.name)})"
    return [f"_numbers[{index}]", f"if({index} > 0, _values[{index}], NULL)"]


def _column(field: Field) -> str:
    if field.name == "path":
        return "concat(folder, name)"
    if field.kind == "time":
        return f"_{field.name}_ns"
    if field.kind == "count":
        return field.source.replace("l.", "_", 1)
    return name(field.name)
