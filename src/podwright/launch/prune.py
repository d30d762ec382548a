"""Old runs: which of them may go, and their removal here and on their clusters."""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from podwright.engines import Engine
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


@dataclass(frozen=True)
class Pruned:
    """What went, or would go."""

    runs: tuple[str, ...]
    size_bytes: int
    left: tuple[Left, ...] = ()


def old_runs(records: Sequence[Record], older_s: float, keep_last: int = 0) -> list[Record]:
    """Return the runs that ended longer ago than this, without the newest `keep_last` of all that have ended."""
    ended = sorted((record for record in records if record.is_final), key=lambda record: record.created_at)
    if keep_last:
        ended = ended[:-keep_last]
    latest = time.time() - older_s
    return [record for record in ended if (record.ended_at or record.created_at) <= latest]


@dataclass(frozen=True)
class Plan:
    """How many bytes each run would give back, and the runs whose target cannot be asked."""

    sizes: Mapping[str, int]
    left: tuple[Left, ...] = ()
    checkpoints: bool = False

    def as_pruned(self) -> Pruned:
        """Return what would go."""
        return Pruned(tuple(self.sizes), sum(self.sizes.values()), self.left)


def plan_runs(session: Session, records: Sequence[Record]) -> Plan:
    """Plan to remove whole runs; what they have elsewhere is not counted."""
    by_run = {record.id: Run(session, record.id).parts() for record in records}
    return Plan({run_id: sum(size_bytes(part.folder.path) for part in parts) for run_id, parts in by_run.items()})


def plan_checkpoints(session: Session, records: Sequence[Record]) -> Plan:
    """Plan to remove only checkpoints, here and on clusters, of the runs that have some."""
    runs_of: dict[str, str] = {}
    sizes: dict[str, int] = {}
    left: dict[str, Left] = {}
    folders: list[RunFolder] = []
    for record in records:
        for part in Run(session, record.id).parts():
            runs_of[part.id] = record.id
            path = part.folder.path / CHECKPOINTS
            if path.is_dir():
                sizes[record.id] = sizes.get(record.id, 0) + size_bytes(path)
            try:
                session.engine_of(part.folder)
                folders.append(part.folder)
            except Refusal as refusal:
                left[record.id] = Left(record.id, refusal.problems[0].message)
    for engine, members in by_engine(session, folders):
        try:
            for part_id, size in _clear(session, engine, members, remove=False).items():
                run_id = runs_of[part_id]
                sizes[run_id] = sizes.get(run_id, 0) + size
        except Refusal as refusal:
            ids = dict.fromkeys(runs_of[folder.id] for folder in members)
            left.update({run_id: Left(run_id, refusal.problems[0].message) for run_id in ids})
    return Plan({run_id: sizes[run_id] for run_id in sizes if run_id not in left}, tuple(left.values()), True)


def prune(session: Session, plan: Plan) -> Pruned:
    """Do what was planned; a run whose target cannot be reached is left, and named with the reason."""
    removed, left = [], list(plan.left)
    for run_id in plan.sizes:
        run = Run(session, run_id)
        try:
            if plan.checkpoints:
                _remove_checkpoints(session, run)
            else:
                left += [Left(run_id, f"is removed here, but {remains}") for remains in run.remove()]
            removed.append(run_id)
        except Refusal as refusal:
            left.append(Left(run_id, refusal.problems[0].message))
        except OSError as error:
            left.append(Left(run_id, (error.strerror or str(error)).lower()))
    return Pruned(tuple(removed), sum(plan.sizes[run_id] for run_id in removed), tuple(left))


def _remove_checkpoints(session: Session, run: Run) -> None:
    record = run.record()
    if not record.is_final:
        raise refuse(f"it is {record.state} again")
    parts = run.parts()
    for engine, folders in by_engine(session, [part.folder for part in parts]):
        _clear(session, engine, folders, remove=True)
    for part in parts:
        path = part.folder.path / CHECKPOINTS
        if path.is_symlink():
            path.unlink()
        elif path.is_dir():
            shutil.rmtree(path)


def _clear(session: Session, engine: Engine, folders: Sequence[RunFolder], remove: bool) -> dict[str, int]:
    with session.using(engine):
        return engine.clear(folders, CHECKPOINTS, remove)


def size_bytes(path: Path) -> int:
    """Return the bytes of all files below a folder; what other runs share with it counts for none of them."""
    total = 0
    for folder, _, names in os.walk(path.resolve()):
        for name in names:
            try:
                status = os.lstat(os.path.join(folder, name))  # noqa: PTH118 - a run may have very many files
            except OSError:
                continue
            if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
                total += status.st_size
    return total
