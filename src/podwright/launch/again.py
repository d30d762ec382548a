"""Starting again what a run's record holds: the same workload and code, on the same target, as a new run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from podwright.engines.payload import Snapshot
from podwright.launch.follow import look
from podwright.launch.run import Run
from podwright.launch.session import Session
from podwright.launch.submission import Submission, prepare, start
from podwright.runs import RunFolder
from podwright.runs.points import point_id
from podwright.runs.shared_files import digest_of
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.spec import Workload

_HINT = "start it from its file"
HERE = ("local", "local-frames")
"""Engines whose runs lie on this machine."""


def start_again(session: Session, run_id: str, resume: bool = False, trust: bool = False) -> Run:
    """Start a run of the same kind once; of several, which --repeat started, one. Its data must be as it was.

    With `resume` it goes on from the checkpoints of the run, and writes its own beside them. One that was imported is
    another's program: it wants `trust`.
    """
    from podwright.spec.loader import restore_workload

    folder = session.home.folder(run_id)
    asked = folder.asked
    if asked.imported_from and not trust:
        raise refuse(f"{run_id} was imported: its code is another's", hint="say --yes once you have looked at it")
    kept = folder.path / "spec" / "workload.yaml"
    workload = restore_workload(asked.workload, Path(asked.file or kept), kept.read_bytes())
    if not asked.file and any(not Path(text).is_absolute() for text in workload.data.values()):
        raise refuse(f"{run_id} does not say what its data is relative to", hint=_HINT)
    if resume:
        workload = _resumed(session, folder, workload)
    new = session.home.new_id(workload.name)
    submission = Submission(workload, asked.target, new, code=_code(session, folder))
    with prepare(session, submission) as prepared:
        if dict(prepared.request.pinned) != (asked.inputs or {}):
            raise refuse(f"the selection that {run_id} was given holds something else by now", hint=_HINT)
        return Run(session, start(session, prepared))


def start_with_code_of(session: Session, earlier: str, workload: Workload, on: str, run_id: str) -> Run:
    """Start a workload with the code that an earlier run travelled with, whatever became of its folder since."""
    submission = Submission(workload, on, run_id, code=_code(session, session.home.folder(earlier)))
    with prepare(session, submission) as prepared:
        return Run(session, start(session, prepared))


def _resumed(session: Session, folder: RunFolder, workload: Workload) -> Workload:
    """Return the workload with the checkpoints of a run that is over, by their place on its target."""
    record = look(session, folder.id)
    if not record.is_final:
        hint = f"`podwright attach {folder.id}` follows it; `podwright cancel {folder.id}` ends it first"
        raise refuse(f"{folder.id} is not over", hint=hint, field="--resume")
    if folder.asked.points:
        raise refuse(
            f"{folder.id} has points", hint=f"name one of them, such as {point_id(folder.id, 0)}", field="--resume"
        )
    _refuse_without_checkpoint(folder, workload)
    if workload.checkpoint.startswith("/"):
        return workload
    place = _PLACES[folder.asked.engine](folder)
    if place is None:
        hint = "start it from its file; with a `claim:` of the scheduler in the pod file they would outlive it"
        raise refuse(f"the checkpoints of {folder.id} went with its nodes", hint=hint, field="--resume")
    restored = workload.model_copy(update={"checkpoint": f"{place}/{workload.checkpoint}"})
    restored._path, restored._source = workload.path, workload.source
    return restored


def _refuse_without_checkpoint(folder: RunFolder, workload: Workload) -> None:
    """Refuse to go on from nothing, where the folder of checkpoints can be seen from here."""
    if folder.asked.engine not in HERE and not folder.path.is_symlink():
        return
    path = folder.path / workload.checkpoint
    try:
        is_empty = all(name.startswith(".") for name in os.listdir(path))  # noqa: PTH208 - names alone
    except FileNotFoundError:
        is_empty = True
    except OSError:
        return
    if is_empty:
        hint = f"`podwright run --like {folder.id}` starts it from the beginning"
        raise refuse(f"{folder.id} left no checkpoint in {path}", hint=hint, field="--resume")


def _place_on_slurm(folder: RunFolder) -> str:
    from podwright.engines.slurm.site import run_path

    return run_path(folder)


def _place_on_kubernetes(folder: RunFolder) -> str | None:
    from podwright.clients.kubernetes.names import run_folder
    from podwright.engines.kubernetes.claim_reader import site_of

    return run_folder(folder.id) if site_of(folder)["claim"] else None


_PLACES: Mapping[str, Callable[[RunFolder], str | None]] = {
    "local": lambda folder: str(folder.path),
    "slurm": _place_on_slurm,
    "kubernetes": _place_on_kubernetes,
}
"""Where ranks see the folder of another run, by engine; None where nothing of it is left to see."""


def _code(session: Session, folder: RunFolder) -> Snapshot | None:
    """Return the code as it travelled, compared with its digest; None where none did."""
    asked = folder.asked
    if asked.code is None:
        return None
    parts = [session.home.folder(point) for point in asked.point_ids[:1]]
    for place in (folder, *parts):
        path = place.path / "job" / "code.tar"
        if path.exists() and digest_of(path) == asked.code.get("sha256"):
            tar = path.open("rb")  # whoever prepared a run with it closes it
            return Snapshot(tar, str(asked.code["sha256"]), int(asked.code.get("files") or 0))
    raise refuse(f"the code of {folder.id} is not there any more", hint=_HINT)
