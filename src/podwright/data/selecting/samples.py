"""Which files make a sample, as SQL: the layout says which columns they share and what each is. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from podwright.data.catalog.schema import quoted
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
    mtime_ns: int
    sha256: str | None


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
