"""Which files make a sample, as SQL: the layout says which columns they share and what each is. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from podwright.data.catalog.schema import quoted
from podwright.data.query.conditions import Condition
from podwright.data.tree.layouts import FileRole, Layout


@dataclass(frozen=True, slots=True)
class SampleMember:
    """A file of a sample: of which, what it is to it, and the group that is kept together."""

    key: str
    role: str
    group: str
    number: int
    """Of its row; counts of labels stand under it."""
    path: str
    raw: bytes | None
    size: int
    sha256: str | None


class SampleSource(Protocol):
    """A dataset that selections are made from, wherever it is at home."""

    name: str
    root: str
    root_bytes: bytes
    layout: Layout
    classes: list[str]

    @property
    def origin(self) -> dict[str, Any]:
        """Return which generation it is, and of which catalog."""

    @property
    def how_to_count(self) -> str:
        """Return what counts its labels."""

    def condition(self, text: str | None) -> Condition:
        """Return what a filter asks for."""

    def members(self, condition: Condition, by: str | None) -> Iterator[SampleMember]:
        """Yield the files of samples of which one fits the condition, sample by sample."""

    def label_pixels(self) -> tuple[list[int], np.ndarray[Any, Any]]:
        """Return the numbers of counted labels, and a row of pixels for each with a column for each class."""


def role_case(layout: Layout) -> str:
    """Return the SQL of what a file is to its sample; NULL for one that belongs to none."""
    cases = [f"WHEN {_fits(role)} THEN '{role.name}'" for role in layout.roles]
    return f"CASE {' '.join(cases)} END"


def is_role(layout: Layout, name: str) -> str:
    """Return the SQL that chooses the files of one role."""
    return " OR ".join(f"({_fits(role)})" for role in layout.roles if role.name == name)


def _fits(role: FileRole) -> str:
    tests = ["f.type = 'file'"]
    for column, value in role.where.items():
        escaped = value.replace("'", "''")
        tests.append(f"f.{quoted(column)} = '{escaped}'")
    return " AND ".join(tests)


def sample_key(layout: Layout) -> str:
    """Return the SQL of what tells samples apart; NULL where a file lacks one of the columns."""
    if not layout.key:
        return "f.id::VARCHAR"
    return " || '/' || ".join(f"f.{quoted(name)}::VARCHAR" for name in layout.key)
