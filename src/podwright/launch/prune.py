"""Old runs: which of them may go, and their removal here and on their clusters."""

from __future__ import annotations

import os
import shutil
import stat
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from podwright.launch.run import Run
from podwright.launch.session import Session
from podwright.runs import Record
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


def sizes(session: Session, records: Sequence[Record], checkpoints: bool = False) -> dict[str, int]:
    """Return how many bytes of this machine each run would give back, without those that have nothing to give."""
    by_run = {}
    for record in records:
        parts = [part.folder.path for part in Run(session, record.id).parts()]
        if checkpoints:
            parts = [path / CHECKPOINTS for path in parts if (path / CHECKPOINTS).is_dir()]
        if parts:
            by_run[record.id] = sum(map(size_bytes, parts))
    return by_run


def prune(session: Session, sizes_by_run: dict[str, int], checkpoints: bool = False) -> Pruned:
    """Remove runs, or only their checkpoints; one whose target cannot be reached is left, and named with the reason."""
    removed, left = [], []
    for run_id in sizes_by_run:
        run = Run(session, run_id)
        try:
            if checkpoints:
                _remove_checkpoints(run)
            else:
                left += [Left(run_id, f"is removed here, but {remains}") for remains in run.remove()]
            removed.append(run_id)
        except Refusal as refusal:
            left.append(Left(run_id, refusal.problems[0].message))
        except OSError as error:
            left.append(Left(run_id, (error.strerror or str(error)).lower()))
    return Pruned(tuple(removed), sum(sizes_by_run[run_id] for run_id in removed), tuple(left))


def _remove_checkpoints(run: Run) -> None:
    record = run.record()
    if not record.is_final:
        raise refuse(f"it is {record.state} again")
    for part in run.parts():
        path = part.folder.path / CHECKPOINTS
        if path.is_symlink():
            path.unlink()
        elif path.is_dir():
            shutil.rmtree(path)


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
