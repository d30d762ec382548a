"""The order in which files are listed: by a column, a class or a tag; those without a value come last. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from podwright.spec.filter_fields import Field, Vocabulary
from podwright.spec.nearest import did_you_mean
from podwright.spec.problems import refuse, short


@dataclass(frozen=True, slots=True)
class FileOrder:
    """A column that files are sorted by, the least or the greatest first; alike ones stay in the dataset's order."""

    field: Field
    greatest_first: bool = False

    @property
    def name(self) -> str:
        """Return the name of the column."""
        return self.field.name


def order_of(text: str, vocabulary: Vocabulary) -> FileOrder:
    """Return the order that a text asks for, such as `-size`, or refuse a column that there is not."""
    name = text.removeprefix("-")
    field = vocabulary.fields.get(name)
    if field is not None:
        return FileOrder(field, greatest_first=text.startswith("-"))
    if name in vocabulary.pending_classes:
        hint = f"podwright data stats {vocabulary.dataset}"
        raise refuse(f"{name}: is a class, and its pixels are not counted yet", hint=hint, field="--sort")
    hint = did_you_mean(name, vocabulary.fields, f"the columns are {', '.join(vocabulary.fields)}")
    raise refuse(f"{short(name)}: unknown column", hint=hint, field="--sort")


def values_of(order: FileOrder) -> list[str]:
    """Return DuckDB's SQL of what is sorted by: of a tag numbers as such, before texts."""
    if order.field.kind != "tag":
        return [order.field.source]
    name = order.name.replace("'", "''")
    value = f"(SELECT any_value(t.value) FROM tag t WHERE t.file = f.id AND t.name = '{name}')"
    return [f"TRY_CAST({value} AS DOUBLE)", value]


def sorted_by(values: list[str], order: FileOrder) -> str:
    """Return what stands behind ORDER BY, of the SQL of values, the first of which is to be found again last."""
    direction = "DESC" if order.greatest_first else "ASC"
    return ", ".join(f"{value} {direction} NULLS LAST" for value in values)
