"""What is known of files that are still there, taken from the old generation into the next: nothing is lost by a scan.

Tags, checksums, class counts and, through a journal, the marks of policies follow a file that was renamed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podwright.data.catalog import schema
from podwright.data.catalog.files import literal, meta_of
from podwright.files.journal import JournalFile
from podwright.spec.problems import Refusal, refuse

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

RENAMES = "renames.jsonl"
_SAMPLE = 1000


@dataclass(frozen=True, slots=True)
class Accept:
    """What a scan takes without a question that would lose what is known if it were a mistake."""

    emptied: bool = False
    """Nothing that was there last time is there."""
    other_root: bool = False
    """The name is given to another tree; what is known of the old one goes."""
    moved: bool = False
    """The tree lies elsewhere now: what is known of files of the same name and size stays."""


SameFile = tuple[bytes, int, int]
"""A path, a size and a time in nanoseconds."""


AS_LAST_TIME = Accept()


@dataclass(frozen=True, slots=True)
class Renamed:
    """A file as it was known, and its path now."""

    old: SameFile
    path: bytes


@dataclass(frozen=True, slots=True)
class Carried:
    """How many files are not what they were, and which of them were renamed."""

    changed: int
    renamed: tuple[Renamed, ...] = ()


class OldGeneration:
    """The generation that a scan follows."""

    def __init__(self, path: Path, dataset: str, root: str, accept: Accept) -> None:
        self._path, self._dataset, self._root, self._accept = path, dataset, root, accept
        self.meta: dict[str, str] = {}

    def check(self, connection: DuckDBPyConnection) -> None:
        """Attach it as `old`; refuse a tree that is another than last time."""
        connection.execute(f"ATTACH '{literal(self._path)}' AS old (READ_ONLY)")
        self.meta = meta_of(connection, "old.")
        before = self.meta.get("root", "")
        if before != self._root and not (self._accept.other_root or self._accept.moved):
            move = f"podwright data move {self._dataset} {before} {self._root}"
            hint = f"{move} keeps what is known, --replace forgets it"
            raise refuse(f"{self._dataset} is the name of another tree, {before}", hint=hint, field="--name")

    @property
    def fits(self) -> bool:
        """Say whether it is of this tree, and of this version."""
        same_tree = self.meta.get("root") == self._root or self._accept.moved
        return same_tree and self.meta.get("format") == str(schema.FORMAT)

    def compare(self, connection: DuckDBPyConnection) -> Carried:
        """Return what changed since; `same` is then the table of which file each was."""
        changed = _count(connection, schema.CHANGED)
        connection.execute(schema.same_files(self._accept.moved))
        if not changed:
            return Carried(0)
        if self._accept.moved:
            self._check_sample(connection)
        connection.execute(schema.renamed_files("://" in self._root))
        rows = connection.execute(schema.RENAMED_PATHS).fetchall()
        renamed = [Renamed((bytes(old), size, mtime_ns), bytes(path)) for old, size, mtime_ns, path in rows]
        if not self._accept.emptied and _count(connection, schema.NOTHING_LEFT):
            raise self._emptied()
        return Carried(changed - len(renamed), tuple(renamed))

    def _emptied(self) -> Refusal:
        message = f"{self._root} has no entry of last time: is it mounted? {self._dataset} stays as it was"
        hint = f"podwright data scan {self._root} --name {self._dataset} --emptied, where that is right"
        return refuse(message, hint=hint, exit_code=3)

    def _check_sample(self, connection: DuckDBPyConnection) -> None:
        sampled, missing, first = connection.execute(schema.moved_sample(_SAMPLE)).fetchall()[0]
        if missing:
            looked_at = f"{missing} of {sampled} files that were looked at"
            message = f"{looked_at} are not in {self._root} as they were, as {first}"
            hint = f"podwright data scan {self._root} --name {self._dataset} --replace takes it for another tree"
            raise refuse(message, hint=hint, exit_code=1)

    def carry(self, connection: DuckDBPyConnection, layout: str) -> None:
        """Take over tags and checksums, and where the layout is the same labels."""
        for statement in schema.CARRIED:
            connection.execute(statement)
        classes = _count(connection, "SELECT count(*) FROM old.class")
        if classes and self.meta.get("layout") == layout:
            for statement in schema.carried_labels(classes):
                connection.execute(statement)


def note_renames(folder: Path, renamed: tuple[Renamed, ...]) -> None:
    """Write down for the marks of policies which paths files had before."""
    if renamed:
        rows = [[*map(os.fsdecode, (file.old[0], file.path)), *file.old[1:]] for file in renamed]
        JournalFile(folder / RENAMES).append({"renamed": rows})


def follow_renames(folder: Path, files: Iterable[SameFile]) -> dict[SameFile, bytes]:
    """Return under which path each file is known now, as far as it was not changed since."""
    paths = {file: file[0] for file in files}
    known_as: dict[SameFile, list[SameFile]] = {}
    for file in paths:
        known_as[file] = [file]
    for scan in JournalFile(folder / RENAMES).rows():
        for old, new, size, mtime_ns in scan["renamed"]:
            former = known_as.pop((os.fsencode(old), size, mtime_ns), [])
            for file in former:
                paths[file] = os.fsencode(new)
            known_as.setdefault((os.fsencode(new), size, mtime_ns), []).extend(former)
    return paths


def _count(connection: DuckDBPyConnection, query: str) -> Any:
    (row,) = connection.execute(query).fetchall()
    return row[0]
