"""Old runs: which of them may go, and their removal here and on their clusters."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from podwright.engines.base import Engine
from podwright.engines.site import SiteLost
from podwright.files.sizes import bytes_below
from podwright.launch.damaged import UNREACHABLE
from podwright.launch.finding import recent
from podwright.launch.follow import by_engine
from podwright.launch.run import Run
from podwright.launch.session import Session
from podwright.runs import Record, RunFolder
from podwright.spec.problems import Refusal, refuse

CHECKPOINTS = "checkpoints"


@dataclass(frozen=True)
class Left:
    """A run that was not removed, or not all of it, and why."""

    id: str
    reason: str
    is_away: bool = False
    """Its target did not answer: it may be removed another time."""

    def as_json(self) -> dict[str, str]:
        """Return it as `--json` has it."""
        return {"id": self.id, "reason": self.reason}


@dataclass(frozen=True)
class Pruned:
    """What went, or would go."""

    runs: tuple[str, ...]
    size_bytes: int
    left: tuple[Left, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return it as `--json` has it."""
        return {"runs": len(self.runs), "bytes": self.size_bytes, "left": [left.as_json() for left in self.left]}


def _left(run_id: str, refusal: Refusal) -> Left:
    is_away = refusal.exit_code == UNREACHABLE and not isinstance(refusal, SiteLost)
    return Left(run_id, refusal.problems[0].message, is_away)


def old_runs(records: Sequence[Record], older_s: float, keep_last: int = 0) -> list[Record]:
    """Return the runs that ended longer ago than this, without the newest `keep_last` of all that have ended."""
    ended = sorted((record for record in records if record.is_final), key=lambda record: record.created_at)
    if keep_last:
        ended = ended[:-keep_last]
    latest = time.time() - older_s
    return [record for record in ended if (record.ended_at or record.created_at) <= latest]


@dataclass
class Prunable:
    """How many bytes each run would give back, and the runs whose target cannot be asked."""

    checkpoints: bool = False
    """Only these go."""
    sizes: dict[str, int] = field(default_factory=dict)
    left: dict[str, Left] = field(default_factory=dict)

    def add(self, run_id: str, size: int) -> None:
        """Count what one part of a run would give back."""
        self.sizes[run_id] = self.sizes.get(run_id, 0) + size

    def leave(self, run_id: str, refusal: Refusal) -> None:
        """Leave a run as it is."""
        self.left[run_id] = _left(run_id, refusal)
        self.sizes.pop(run_id, None)

    def as_pruned(self) -> Pruned:
        """Return what would go."""
        return Pruned(tuple(self.sizes), sum(self.sizes.values()), tuple(self.left.values()))


def prunable(session: Session, older_s: float, keep_last: int = 0, checkpoints: bool = False) -> Prunable:
    """Return what old runs would give back, or their checkpoints alone; nothing is removed."""
    records = old_runs(recent(session, None), older_s, keep_last)
    return prunable_checkpoints(session, records) if checkpoints else prunable_runs(session, records)


def prunable_runs(session: Session, records: Sequence[Record]) -> Prunable:
    """Return what whole runs would give back here; what they have elsewhere is not counted."""
    prunable = Prunable()
    for record in records:
        for part in Run(session, record.id).parts():
            prunable.add(record.id, part.folder.size_bytes())
    return prunable


def prunable_checkpoints(session: Session, records: Sequence[Record]) -> Prunable:
    """Return what the checkpoints of runs would give back, here and on clusters, of those that have some."""
    prunable = Prunable(checkpoints=True)
    runs_of: dict[str, str] = {}
    folders: list[RunFolder] = []
    for record in records:
        for part in Run(session, record.id).parts():
            runs_of[part.id] = record.id
            folders.append(part.folder)
            path = part.folder.path / CHECKPOINTS
            if path.is_dir() and part.folder.strayed_to is None:
                prunable.add(record.id, bytes_below(path))
    for folder in folders:
        try:
            session.engine_of(folder)
        except Refusal as refusal:
            prunable.leave(runs_of[folder.id], refusal)
    reached = [folder for folder in folders if runs_of[folder.id] not in prunable.left]
    for engine, members in by_engine(session, reached):
        try:
            for part_id, size in _clear(session, engine, members, remove=False).items():
                prunable.add(runs_of[part_id], size)
        except Refusal as refusal:
            for folder in members:
                prunable.leave(runs_of[folder.id], refusal)
    return prunable


def prune_runs(session: Session, prunable: Prunable) -> Pruned:
    """Remove these; a run whose target cannot be reached is left, and named with the reason."""
    removed, left = [], list(prunable.left.values())
    for run_id in prunable.sizes:
        run = Run(session, run_id)
        try:
            if prunable.checkpoints:
                _remove_checkpoints(session, run)
            else:
                is_away = run.folder.strayed_to is None
                left += [Left(run_id, f"is removed here, but {remains}", is_away) for remains in run.remove()]
            removed.append(run_id)
        except Refusal as refusal:
            left.append(_left(run_id, refusal))
        except OSError as error:
            left.append(Left(run_id, (error.strerror or str(error)).lower()))
    return Pruned(tuple(removed), sum(prunable.sizes[run_id] for run_id in removed), tuple(left))


def _remove_checkpoints(session: Session, run: Run) -> None:
    record = run.record()
    if not record.is_final:
        raise refuse(f"it is {record.state} again")
    parts = run.parts()
    for engine, folders in by_engine(session, [part.folder for part in parts]):
        _clear(session, engine, folders, remove=True)
    for part in parts:
        part.folder.refuse_stray()
        path = part.folder.path / CHECKPOINTS
        if path.is_symlink():
            path.unlink()
        elif path.is_dir():
            shutil.rmtree(path)


def _clear(session: Session, engine: Engine, folders: Sequence[RunFolder], remove: bool) -> dict[str, int]:
    with session.using(engine):
        return engine.clear(folders, CHECKPOINTS, remove)
