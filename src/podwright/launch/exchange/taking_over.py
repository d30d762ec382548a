"""Runs of a user that another home started: what a target has of them, and taking one up to follow and steer it."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

from podwright.engines.found import FoundRun
from podwright.files.whole import make_private, write_whole
from podwright.launch.exchange.bundle import RUN_FILE, WORKLOAD_FILE
from podwright.launch.journal import note
from podwright.launch.session import Session
from podwright.pilot.protocol import field_lines
from podwright.runs import Asked, RunFolder
from podwright.runs.folder import POD_FILE
from podwright.runs.points import point_id
from podwright.runs.record import iso
from podwright.runs.store import ID, home_refusal, taking_up
from podwright.spec.problems import refuse, short

CODE = ("sha256", "files", "commit", "changed")


@dataclass(frozen=True)
class RunsOnTarget:
    """The runs of a user on a target, the newest first, and which of them this home has."""

    target: str
    runs: Sequence[FoundRun]
    here: frozenset[str]

    def as_json(self) -> list[dict[str, Any]]:
        """Return the document of `pod runs`."""
        return [
            {
                "id": run.asked.id,
                "name": run.asked.name,
                "target": self.target,
                "state": run.state,
                "nodes": run.asked.nodes,
                "points": run.asked.points,
                "created_at": iso(run.asked.created_at),
                "here": run.asked.id in self.here,
            }
            for run in self.runs
        ]


@dataclass(frozen=True)
class RunTakenUp:
    """A run that this home follows from now on, with its points."""

    id: str
    runs: tuple[str, ...]
    target: str

    def as_json(self) -> dict[str, Any]:
        """Return the document of `import --from`."""
        return {"id": self.id, "runs": list(self.runs), "target": self.target}


def runs_on(session: Session, target: str) -> RunsOnTarget:
    """Return the runs that the user has on a target, whichever home started them."""
    runs = _found(session, target, ())
    here = frozenset(run.asked.id for run in runs if session.home.is_there(run.asked.id))
    return RunsOnTarget(target, runs, here)


def take_up(session: Session, target: str, run_id: str) -> RunTakenUp:
    """Make a run of another home one of this home, too: followed, steered and removed as if it had been started here.

    It is never submitted from here, and gets no value of this environment: what it asks for may have been rewritten.
    """
    if not ID.fullmatch(run_id):
        raise refuse(f"{short(run_id)!r} is no id of a run", hint=f"`podwright pod runs {target}` lists them")
    if session.home.is_there(run_id):
        raise refuse(f"there is a run {run_id} here already", hint=f"`podwright attach {run_id}` follows it")
    parts = _family(session, target, run_id)
    if not all(part.handle for part in parts):
        message = f"{run_id} has no job on {target}: the home that started it has not submitted it"
        raise refuse(message, hint="look again a little later")
    pod = session.target(target)[1]
    ids = [part.asked.id for part in parts]
    try:
        if parts[0].path is None:
            with taking_up(session.home, reversed(ids)) as folders:
                for part in parts:
                    _fill(folders[part.asked.id], _own(part.asked, target), part, pod.source if pod else b"")
        else:
            _link(session, parts, pod.source if pod else b"")
    except OSError as error:
        raise home_refusal(session.home.path, error) from None
    session.home.sync()
    return RunTakenUp(run_id, tuple(ids), target)


def _found(session: Session, target: str, ids: Sequence[str]) -> list[FoundRun]:
    engine, _ = session.target(target)
    with session.using(engine):
        found: list[FoundRun] = engine.found(ids)
    return found


def _family(session: Session, target: str, run_id: str) -> list[FoundRun]:
    """Return a run with all its points, itself first."""
    found = [run for run in _found(session, target, [run_id]) if run.asked.id == run_id]
    if not found:
        raise refuse(f"{target} has no run {run_id} of yours", hint=f"`podwright pod runs {target}` lists them")
    parent = found[0]
    if parent.asked.parent is not None:
        raise refuse(f"{run_id} is a point of {parent.asked.parent}", hint=f"take up {parent.asked.parent}")
    points = _found(session, target, parent.asked.point_ids) if parent.asked.points else []
    known = {run.asked.id: run for run in points}
    for index, point in enumerate(parent.asked.point_ids):
        asked = known[point].asked if point in known else None
        if asked is None or (asked.parent, asked.index, asked.points) != (run_id, index, 0):
            raise refuse(f"{point_id(run_id, index)} is not there as a point of {run_id}", exit_code=1)
    return [parent, *(known[point] for point in parent.asked.point_ids)]


def _own(asked: Asked, target: str) -> Asked:
    """Return what was asked of a run as this home keeps it: nothing of it reaches for this machine's own."""
    code = {name: asked.code[name] for name in CODE if name in asked.code} if asked.code else None
    return replace(
        asked,
        target=target,
        code=code,
        workload={**asked.workload, "secrets": []},
        after=None,
        command_line=[],
        file="",
        imported_from={"target": target, "at": round(time.time(), 3)},
    )


def _fill(folder: Path, asked: Asked, found: FoundRun, pod: bytes) -> None:
    """Write the run into a folder that nobody sees yet."""
    files: dict[str, bytes] = {WORKLOAD_FILE: _text_of(asked.workload)}
    if asked.parent is None:
        files |= {POD_FILE.as_posix(): pod, **found.files}
    for name, data in files.items():
        make_private((folder / name).parent)
        write_whole(folder / name, data)
    write_whole(folder / RUN_FILE, field_lines(asked.as_json()).encode())
    _note_submitted(RunFolder(folder), found)


def _link(session: Session, parts: Sequence[FoundRun], pod: bytes) -> None:
    """Link folders that lie on this machine: they are the runs, and the home that started one has a link as well.

    What a client of another machine did not send is added.
    """
    for part in reversed(parts):
        path = part.path
        assert path is not None
        folder = RunFolder(path)
        if part.asked.parent is None:
            texts = {POD_FILE: pod, Path(WORKLOAD_FILE): _text_of(part.asked.workload)}
            for name, data in texts.items():
                make_private(path / name.parent)
                if not (path / name).exists():
                    write_whole(path / name, data)
        if folder.handle is None:
            _note_submitted(folder, part)
        (session.home.runs / part.asked.id).symlink_to(path)


def _note_submitted(folder: RunFolder, found: FoundRun) -> None:
    note(folder, "created")
    note(folder, "submitted", handle=found.handle)


def _text_of(workload: Mapping[str, Any]) -> bytes:
    return yaml.safe_dump(json.loads(json.dumps(workload)), sort_keys=False).encode("utf-8", "replace")
