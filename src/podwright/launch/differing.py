"""What differs between two runs, as their records say it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from podwright.analysis.differences import RunDifference, differences
from podwright.analysis.settings import TOLD, Settings, settings_of
from podwright.launch.finding import find_all_to_read
from podwright.launch.session import Session

if TYPE_CHECKING:
    from podwright.launch.run import Run


@dataclass(frozen=True)
class RunsApart:
    """Two runs with what differs between them; nothing where they are alike."""

    a: str
    b: str
    differences: tuple[RunDifference, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the document of `diff`."""
        return {"differences": [row.as_json() for row in self.differences]}


def diff_runs(session: Session, a: str, b: str) -> RunsApart:
    """Hold two runs against each other; of a sweep the values of all its points count."""
    first, second = find_all_to_read(session, [a, b])
    rows = differences(list(map(_settings, first.parts())), list(map(_settings, second.parts())))
    return RunsApart(a, b, tuple(rows))


def environment_changes(before: Run, after: Run) -> list[RunDifference]:
    """Return what of the software below a program is another since a run; nothing while one of them told none."""
    first, second = (_settings(run.parts()[0]) for run in (before, after))
    rows = [row for row in differences([first], [second]) if row.kind == "environment" and row.name != "podwright"]
    told = all(("environment", "python") in side for side in (first, second))
    return rows if told else []


def _settings(run: Run) -> Settings:
    folder = run.folder
    return settings_of(folder.asked, folder.events_of(*TOLD))
