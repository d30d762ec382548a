"""Starting a run: look things up, plan, render, write the folder, submit."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import secrets
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podwright.engines import ENGINES, Engine
from podwright.engines.base import Files, Job, Request, check_abilities
from podwright.engines.payload import Snapshot, compiled_name, compiled_pilot, pilot_zip, snapshot
from podwright.launch.journal import note
from podwright.pilot import __version__
from podwright.runs import Asked, Home, RunFolder
from podwright.spec.problems import Refusal, refuse

if TYPE_CHECKING:
    from podwright.spec import Workload


@dataclass(frozen=True)
class Prepared:
    """Everything decided, nothing started."""

    request: Request
    target: str
    engine: Engine
    job: Job
    files: Files
    code: Snapshot | None


def engine_of(target: str) -> Engine:
    if target not in ENGINES:
        raise refuse(f"there is no target {target!r}", hint="targets here: local", field="--on")
    return ENGINES[target]()


def prepare(workload: Workload, target: str, run_id: str, repeat: int = 1, after: str | None = None) -> Prepared:
    """The printable twin of `start`: looks at the code folder and the target, starts nothing."""
    engine = engine_of(target)
    code, data = _code_and_data(workload)
    request = Request(
        run_id=run_id,
        workload=workload,
        pod=None,
        points=_points(workload, repeat),
        code={"file": "code.tar", "sha256": code.sha256} if code else None,
        data=data,
        after=after,
    )
    check_abilities(engine, request)
    job = engine.plan(request, engine.probe(request))
    return Prepared(request, target, engine, job, engine.render(job), code)


def _points(workload: Workload, repeat: int) -> tuple[dict[str, Any], ...]:
    """Matrix points, each as often as asked; a single run is one point without values."""
    from podwright.spec import points

    if repeat < 1:
        raise refuse("must be a whole positive number", field="--repeat")
    return tuple(dict(point) for point in (points(workload) or [{}]) for _ in range(repeat))


def _code_and_data(workload: Workload) -> tuple[Snapshot | None, dict[str, str]]:
    """Data inside the code folder travels with it and is named from there; else its absolute path must be there."""
    root = workload.code_folder
    inside: dict[str, Path] = {}
    data: dict[str, str] = {}
    for name, text in workload.data.items():
        path = (workload.folder / text).resolve()
        if root is not None and not Path(text).is_absolute() and path.is_relative_to(root):
            inside[name], data[name] = path, path.relative_to(root).as_posix()
        else:
            data[name] = text if re.match(r"\w+://", text) else str(path)
    return (snapshot(root, inside.values()) if root else None), data


def start(home: Home, prepared: Prepared) -> str:
    """From here on the run exists, whatever becomes of this client. Gives its id."""
    _check_secrets(prepared.request.workload)
    request = prepared.request
    links, code = _shared(home), prepared.code
    folders = []
    if request.is_parent:
        home.create(_asked(prepared, request.run_id, None), _files(prepared, request.run_id), links)
    if code:
        links["job/code.tar"] = home.store(f"{code.sha256}.tar", lambda: code.tar)
    for index, run_id in enumerate(request.part_ids()):
        folders.append(home.create(_asked(prepared, run_id, index), _files(prepared, run_id), links))
    for folder in folders:
        note(folder, "created")
    with submitting(folders[0]) as alone:
        if alone:
            _submit(prepared.engine, prepared.job, folders)
    return request.run_id


def _shared(home: Home) -> dict[str, Path]:
    """What all runs of this Podwright and Python have in common: the compiled pilot."""
    name = f"{hashlib.sha256(pilot_zip()).hexdigest()[:16]}.{compiled_name()}"
    return {f"job/{compiled_name()}": home.store(name, compiled_pilot)}


def _submit(engine: Engine, job: Job, folders: Sequence[RunFolder]) -> None:
    """A job that cannot be started is noted as lost, so that nobody tries it again and again."""
    try:
        handle = engine.submit(job, folders)
    except Refusal as refusal:
        for folder in folders:
            note(folder, "lost", why=refusal.problems[0].message)
        raise
    for folder in folders:
        note(folder, "submitted", handle=handle)


def _check_secrets(workload: Workload) -> None:
    missing = [name for name in workload.secrets if name not in os.environ]
    if missing:
        hint = "export it in the shell that starts the run; it is never written down"
        raise workload.refusal(("secrets", f"{name} is not set here", hint) for name in missing)


def _asked(prepared: Prepared, run_id: str, index: int | None) -> Asked:
    from podwright.spec import workload_json

    request = prepared.request
    workload = request.workload
    part = run_id if index is not None and request.is_parent else None
    code = {"sha256": prepared.code.sha256, "files": prepared.code.files} if prepared.code else None
    return Asked(
        id=run_id,
        name=workload.name,
        target=prepared.target,
        engine=prepared.engine.name,
        created_at=time.time(),
        nodes=workload.nodes,
        ranks_per_node=workload.ranks_per_node,
        workload=workload_json(workload),
        code=code,
        parent=request.run_id if part else None,
        matrix=(request.points[index] or None) if index is not None else None,
        index=index if part else None,
        points=len(request.points) if index is None else 0,
        after=request.after,
        command_line=sys.argv,
        version=__version__,
    )


def _files(prepared: Prepared, run_id: str) -> dict[str, bytes]:
    """The rendered files of one run, and beside them what is not text or must not be printed."""
    prefix = f"{run_id}/"
    texts = {name[len(prefix) :]: text for name, text in prepared.files.items() if name.startswith(prefix)}
    files = {name: text.encode() for name, text in texts.items()}
    files["spec/workload.yaml"] = prepared.request.workload.source
    files["job/pilot.pyz"] = pilot_zip()
    files["token"] = secrets.token_hex(32).encode() + b"\n"
    return files


@contextmanager
def submitting(folder: RunFolder) -> Iterator[bool]:
    """Only one client at a time submits a run; whoever finds it held leaves it to the holder."""
    lock = os.open(folder.path / "submit.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        alone = True
    except OSError:
        alone = False
    try:
        yield alone
    finally:
        os.close(lock)


def resubmit(engine: Engine, folders: Sequence[RunFolder]) -> bool:
    """Finish what a killed client began: all is on disk, and an engine starts a job only once."""
    first = folders[0]
    parent = first.asked.parent or first.id
    job = Job(parent, (), first.asked.after, {})
    missing = [name for name in first.asked.workload.get("secrets", []) if name not in os.environ]
    if missing:
        return False
    with submitting(first) as alone, suppress(Refusal):
        if alone:
            _submit(engine, job, folders)
    return True
