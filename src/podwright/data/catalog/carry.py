"""What is known of files that are still there, taken from the old generation into the next: nothing is lost by a scan.

Tags, checksums, class counts and, through a journal, the marks of policies follow a file that was renamed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from podwright.data.catalog import schema
from podwright.data.catalog.files import literal, meta_of, put_rows
from podwright.data.catalog.store import damaged
from podwright.data.catalog.tag_journal import TagJournal
from podwright.data.tree.digests import digests
from podwright.data.tree.paths import shown
from podwright.data.tree.roots import Roots, roots_of_meta
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
    mtime_ns: int
    """Of one that was told by its checksum it may be another."""


@dataclass(frozen=True, slots=True)
class Carried:
    """How many files are not what they were, and which of them were renamed."""

    changed: int
    renamed: tuple[Renamed, ...] = ()


class OldGeneration:
    """The generation that a scan follows."""

    def __init__(self, path: Path, dataset: str, roots: Roots, accept: Accept) -> None:
        self._path, self._dataset, self._roots, self._accept = path, dataset, roots, accept
        self._root = roots.shown
        self.meta: dict[str, str] = {}

    def check(self, connection: DuckDBPyConnection) -> None:
        """Attach it as `old`; refuse a tree that is another than last time."""
        import duckdb

        try:
            connection.execute(f"ATTACH '{literal(self._path)}' AS old (READ_ONLY)")
            self.meta = meta_of(connection, "old.")
        except duckdb.Error as error:
            if self._accept.other_root:
                return
            raise damaged(self._dataset, error) from None
        if not (self._follows() or self._accept.other_root or self._accept.moved):
            raise self._other_tree(roots_of_meta(self.meta))

    def _follows(self) -> bool:
        """Say whether it is of these roots, to which others may have come."""
        return "root_bytes" in self.meta and self._roots.keeps(roots_of_meta(self.meta))

    def _other_tree(self, before: Roots) -> Refusal:
        if before.first == self._roots.first:
            message = f"{self._dataset} has further roots: {before.shown}"
            hint = "scan all of them, each with its --label; --replace forgets what is known"
            return refuse(message, hint=hint, field="--name")
        move = f"podwright data move {self._dataset} {shown(before.first)} {shown(self._roots.first)}"
        hint = f"{move} keeps what is known, --replace forgets it"
        return refuse(f"{self._dataset} is the name of another tree, {before.shown}", hint=hint, field="--name")

    @property
    def fits(self) -> bool:
        """Say whether it is of this tree, and of this version."""
        same_tree = self._follows() or self._accept.moved
        return same_tree and self.meta.get("format") == str(schema.FORMAT)

    def compare(self, connection: DuckDBPyConnection) -> Carried:
        """Return what changed since; `same` is then the table of which file each was."""
        changed = _count(connection, schema.CHANGED)
        connection.execute(schema.same_files(self._accept.moved))
        if not changed:
            return Carried(0)
        if self._accept.moved:
            self._check_sample(connection)
        connection.execute(schema.renamed_files(self._roots))
        self._read_alike(connection)
        rows = connection.execute(schema.RENAMED_PATHS).fetchall()
        renamed = [Renamed((bytes(old), size, before), bytes(path), now) for old, size, before, path, now in rows]
        for label, root in self._roots if not self._accept.emptied else ():
            if _count(connection, schema.nothing_left(label, self._roots.labels)):
                raise self._emptied(shown(root))
        return Carried(changed - len(renamed), tuple(renamed))

    def _read_alike(self, connection: DuckDBPyConnection) -> None:
        """Add files that were renamed and are no more the same inode, by their checksums: those of new ones are read.

        Only files that are as large as one that is gone and has a checksum; what was read has its own from then on.
        """
        files = connection.execute(schema.AS_LARGE_AS_GONE).fetchall()
        if not files:
            return
        sums = dict(digests(self._roots, files))
        known = [(number, digest) for number, digest in sums.items() if digest is not None]
        table = pa.table({"id": [number for number, _ in known], "sha256": [digest for _, digest in known]})
        put_rows(connection, "CREATE TEMP TABLE alike AS", table)
        for statement in schema.RENAMED_BY_CHECKSUM:
            connection.execute(statement)

    def _emptied(self, root: str) -> Refusal:
        message = f"{root} has no entry of last time: is it mounted? {self._dataset} stays as it was"
        hint = f"podwright data scan {root} --name {self._dataset} --emptied, where that is right"
        return refuse(message, hint=hint, exit_code=3)

    def _check_sample(self, connection: DuckDBPyConnection) -> None:
        sampled, missing, first = connection.execute(schema.moved_sample(_SAMPLE)).fetchall()[0]
        if missing:
            looked_at = f"{missing} of {sampled} files that were looked at"
            message = f"{looked_at} are not in {self._root} as they were, as {first}"
            hint = f"podwright data scan {self._root} --name {self._dataset} --replace takes it for another tree"
            raise refuse(message, hint=hint, exit_code=1)

    def carry(self, connection: DuckDBPyConnection, layout: str) -> None:
        """Take over tags and checksums, and where the layout is the same labels, of a generation that fits."""
        if not self.fits:
            return
        for statement in schema.CARRIED:
            connection.execute(statement)
        classes = _count(connection, "SELECT count(*) FROM old.class")
        if classes and self.meta.get("layout") == layout:
            for statement in schema.carried_labels(classes):
                connection.execute(statement)

    def carry_tags(self, connection: DuckDBPyConnection, journal: TagJournal, carried: Carried) -> None:
        """Give files that are back, or all where this generation tells nothing, the tags of the journal; note all."""
        which, earlier = schema.BACK_AS_IT_WAS, schema.TAGS_OF_OLD
        if not self.fits:
            which, earlier = "true", ""
            if self._accept.other_root and not journal.is_of(self._roots.key):
                journal.begin()
        journal.load(connection, earlier)
        journal.give_back(connection, which)
        journal.note(connection, self._roots.key, [file.old[0] for file in carried.renamed])


def note_renames(folder: Path, renamed: tuple[Renamed, ...]) -> None:
    """Write down for the marks of policies which paths files had before."""
    if renamed:
        rows = [[*map(os.fsdecode, (file.old[0], file.path)), *file.old[1:], file.mtime_ns] for file in renamed]
        JournalFile(folder / RENAMES).append({"renamed": rows})


def follow_renames(folder: Path, files: Iterable[SameFile]) -> dict[SameFile, SameFile]:
    """Return as what each file is known now, as far as it was not changed since."""
    now = {file: file for file in files}
    known_as: dict[SameFile, list[SameFile]] = {file: [file] for file in now}
    for scan in JournalFile(folder / RENAMES).rows():
        for old, new, size, mtime_ns, *later in scan["renamed"]:
            former = known_as.pop((os.fsencode(old), size, mtime_ns), [])
            renamed = os.fsencode(new), size, later[0] if later else mtime_ns
            for file in former:
                now[file] = renamed
            known_as.setdefault(renamed, []).extend(former)
    return now


def _count(connection: DuckDBPyConnection, query: str) -> Any:
    (row,) = connection.execute(query).fetchall()
    return row[0]
