"""All that a catalog knows of one file: its facts, tags, checksum, its label's classes, and its sample."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from podwright.data.catalog import schema
from podwright.data.catalog.dataset import Dataset, Match, source_of
from podwright.data.query.conditions import Condition
from podwright.data.selecting.samples import SampleMember
from podwright.data.tree.paths import as_json, shown
from podwright.spec.nearest import did_you_mean
from podwright.spec.problems import Refusal, refuse, short

_MAX_NAMES = 10_000
"""Of the folder of a path that there is not, the names among which the nearest is looked for."""


@dataclass(frozen=True)
class FileDescription:
    """One file of a dataset."""

    match: Match
    kind: str
    group: str
    sha256: str | None
    tags: Mapping[str, str]
    classes: Mapping[str, int] | None
    """What the label of its sample holds; None: nobody counted it."""
    why: str | None
    """Of a label that is broken."""
    sample: Sequence[SampleMember]

    def as_json(self) -> dict[str, Any]:
        """Return the document of `data show`."""
        facts = {"type": self.kind, "group": self.group, "sha256": self.sha256, "tags": dict(self.tags)}
        label = {"classes": None if self.classes is None else dict(self.classes), "why": self.why}
        sample = [{"role": member.role, **as_json(member.path, member.raw)} for member in self.sample]
        return {**self.match.as_json(), **facts, **label, "sample": sample}


def describe(dataset: Dataset, text: str) -> FileDescription:
    """Return all that is known of a file, by its path below the root, as it lies or as it is shown."""
    match, condition = _found(dataset, text)
    members = _sample(dataset, condition)
    ask = dataset.connection.execute
    values = list(condition.values)
    ((number, kind, group, sha256),) = ask(
        f'SELECT f.id, f.type, f."group", f.sha256 FROM {source_of(condition)}', values
    ).fetchall()
    tags = dict(ask("SELECT name, value FROM tag WHERE file = ? ORDER BY name", [number]).fetchall())
    label = _label(dataset, [number, *(member.number for member in members)])
    why, classes = (None, None) if label is None else label
    return FileDescription(match, kind, group, sha256, tags, classes, why, members)


def _found(dataset: Dataset, text: str) -> tuple[Match, Condition]:
    """Return the file of a path, whole or below the root; one with odd characters as `find` shows it, too."""
    path = shown(os.fsencode(text)).removeprefix(f"{dataset.root}/")
    for written in (path.replace("\\", "\\\\"), path):
        condition = _at(dataset, written)
        for match in dataset.find(condition, 1):
            return match, condition
    raise _unknown(dataset, path)


def _at(dataset: Dataset, written: str) -> Condition:
    """Return the condition of a path as it stands between the quotes of a filter."""
    folder, _, name = written.replace('"', '\\"').rpartition("/")
    return dataset.condition(f'folder="{folder}" and name="{name}"')


def _unknown(dataset: Dataset, path: str) -> Refusal:
    folder, _, _ = path.replace("\\", "\\\\").replace('"', '\\"').rpartition("/")
    names = [match.path for match in dataset.find(dataset.condition(f'folder="{folder}"'), _MAX_NAMES)]
    hint = did_you_mean(path, names, f"podwright data find {dataset.name} lists them")
    return refuse(f'{dataset.name} has no file "{short(path)}"', hint=hint)


def _sample(dataset: Dataset, condition: Condition) -> list[SampleMember]:
    order = [role.name for role in dataset.layout.roles]
    members = list(dataset.members(condition, None)) if dataset.layout.key else []
    return sorted(members, key=lambda member: order.index(member.role))


def _label(dataset: Dataset, numbers: Sequence[int]) -> tuple[str | None, dict[str, int]] | None:
    """Return what the first of some files that was counted holds, and why it is broken where it is."""
    if not dataset.classes:
        return None
    columns = "".join(f", {schema.class_column(index)}" for index in range(len(dataset.classes)))
    for number in numbers:
        query = f"SELECT why{columns} FROM label WHERE file = ?"
        for why, *counts in dataset.connection.execute(query, [number]).fetchall():
            return why, {name: count for name, count in zip(dataset.classes, counts, strict=True) if count}
    return None
