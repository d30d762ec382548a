"""What differs between two runs, or two sides of several: one answer for `diff`, `compare`, suites and pages. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from podwright.analysis.settings import PACKAGES, SNAPSHOT, Kind, Settings, names_of

_VERSIONS = frozenset(["image digest", *PACKAGES])
"""What of the environment the runs of one cell must share; a kernel or a driver may be that of another node."""


@dataclass(frozen=True)
class RunDifference:
    """One setting that the sides do not share; None where a side has none."""

    kind: Kind
    name: str
    a: str | None
    b: str | None

    def as_json(self) -> dict[str, str | None]:
        """Return it as `--json` has it."""
        return asdict(self)


def differences(a: Sequence[Settings], b: Sequence[Settings]) -> list[RunDifference]:
    """Return what differs, kind by kind; of a side of several runs all its values count.

    A commit is named only where the code differs: the same files may have been committed since.
    """
    rows = [RunDifference(*key, _values(a, key), _values(b, key)) for key in names_of([*a, *b])]
    apart = [row for row in rows if row.a != row.b]
    snapshots = _values(a, SNAPSHOT), _values(b, SNAPSHOT)
    if snapshots[0] and snapshots[0] == snapshots[1]:
        return [row for row in apart if row.kind != "code"]
    return apart


def mixed(runs: Sequence[Settings]) -> list[RunDifference]:
    """Return what runs that are samples of one thing should share and do not: code, image, packages and data.

    The first run is held against the first of those after it that is another.
    """
    for run in runs[1:]:
        rows = [row for row in differences(runs[:1], [run]) if is_version(row.kind, row.name)]
        if rows:
            return rows
    return []


def is_version(kind: Kind, name: str) -> bool:
    """Tell whether a setting says what was measured, and not where, or with what numbers."""
    return kind in ("code", "data") or (kind == "environment" and name in _VERSIONS)


def _values(side: Sequence[Settings], key: tuple[Kind, str]) -> str | None:
    values = sorted({settings.get(key, "") for settings in side} - {""})
    return " or ".join(values) or None
