"""Starting a run: look things up, plan, render, write the folder, submit."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import secrets
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podwright.engines import Engine
from podwright.engines.base import Files, Job, Request, check_abilities
from podwright.engines.payload import Snapshot, compiled_name, compiled_pilot, pilot_zip, snapshot
from podwright.launch.journal import note
from podwright.launch.targets import POD_FILE, find_target
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


def prepare(
    home: Home, workload: Workload, target: str, run_id: str, repeat: int = 1, after: str | None = None
) -> Prepared:
    """The printable twin of `start`: looks at the code folder and the target, starts nothing."""
    engine, pod = find_target(home, target)
    code, data = _code_and_data(workload)
    request = Request(
        run_id=run_id,
        workload=workload,
        pod=pod,
        points=_points(workload, repeat),
        code={"file": "code.tar", "sha256": code.sha256} if code else None,
        data=data,
        after=after,
        after_handle=_handle_after(home, target, after) if after else None,
        code_tar=code.tar if code else None,
    )
    check_abilities(engine, request)
    job = engine.plan(request, engine.probe(request))
    return Prepared(request, target, engine, job, engine.render(job), code)


def _handle_after(home: Home, target: str, after: str) -> str | None:
    """Only within one target can an engine wait for a run."""
    before = home.folder(after)
    if before.asked.target != target:
        words = f"{after} is on {before.asked.target}, and this run goes to {target}"
        raise refuse(words, hint="a run can only come after one on the same target", field="--after")
    part = home.folder(f"{after}-1") if before.asked.points else before
    return part.handle


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
    prepared.engine.ready(prepared.job)
    request = prepared.request
    links, files = _links(home, prepared), _by_run(prepared.files)
    root = Path(prepared.job.root) if prepared.job.root else None
    whole = _asked(prepared)

    def create(asked: Asked) -> RunFolder:
        own = files.get(asked.id, {})
        starts = any(name.endswith(".sh") for name in own)  # the pilot lies beside the script that starts it
        linked = {name: path for name, path in links.items() if starts or name.startswith("spec/")}
        return home.create(asked, {**own, "token": secrets.token_hex(32).encode() + b"\n"}, linked, root)

    if request.is_parent:
        create(whole)
    folders = [create(_part(whole, request, index)) for index in range(len(request.points))]
    for folder in folders:
        note(folder, "created")
    with submitting(folders[0]) as alone:
        if alone:
            _submit(prepared.engine, prepared.job, folders)
    return request.run_id


def _links(home: Home, prepared: Prepared) -> dict[str, Path]:
    """What runs have in common is stored once: the two files, the pilot, its compiled twin, the code."""
    workload, pod, code = prepared.request.workload, prepared.request.pod, prepared.code
    pilot = hashlib.sha256(pilot_zip()).hexdigest()[:16]
    links = {
        "spec/workload.yaml": _store(home, workload.source, "workload.yaml"),
        "job/pilot.pyz": home.store(f"{pilot}.pilot.pyz", pilot_zip),
        f"job/{compiled_name()}": home.store(f"{pilot}.{compiled_name()}", compiled_pilot),
    }
    if pod:
        links[POD_FILE.as_posix()] = _store(home, pod.source, "pod.yaml")
    if code:
        links["job/code.tar"] = home.store(f"{code.sha256}.tar", lambda: code.tar)
    return links


def _store(home: Home, data: bytes, name: str) -> Path:
    return home.store(f"{hashlib.sha256(data).hexdigest()[:16]}.{name}", lambda: data)


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


def _asked(prepared: Prepared) -> Asked:
    """What is asked in all: of a single run, or of the parent of several."""
    from podwright.spec import workload_json

    request = prepared.request
    workload = request.workload
    code = {"sha256": prepared.code.sha256, "files": prepared.code.files} if prepared.code else None
    return Asked(
        id=request.run_id,
        name=workload.name,
        target=prepared.target,
        engine=prepared.engine.name,
        created_at=time.time(),
        nodes=workload.nodes,
        ranks_per_node=workload.ranks_per_node,
        workload=workload_json(workload),
        code=code,
        image=_image(prepared),
        points=len(request.points) if request.is_parent else 0,
        after=request.after,
        command_line=sys.argv,
        version=__version__,
    )


def _image(prepared: Prepared) -> dict[str, Any] | None:
    """What the engine found under the image's name; where it looked for nothing, a digest in the name still pins it."""
    workload, found = prepared.request.workload, prepared.job.facts.get("image")
    if workload.runtime == "bare" or (workload.image is None and found is None):
        return None
    name, _, digest = (workload.image or "").partition("@")
    return dict(found) if isinstance(found, Mapping) else {"name": name, "digest": digest or None}


def _part(whole: Asked, request: Request, index: int) -> Asked:
    """What is asked of one part; the matrix of all is the parent's, a thousand points do not each hold it."""
    if not request.is_parent:
        return replace(whole, matrix=request.points[index] or None)
    return replace(
        whole,
        id=request.part_id(index),
        workload={**whole.workload, "matrix": {}},
        parent=request.run_id,
        matrix=request.points[index] or None,
        index=index,
        points=0,
    )


def _by_run(files: Files) -> dict[str, dict[str, bytes]]:
    """The rendered files, run by run."""
    found: dict[str, dict[str, bytes]] = {}
    for name, text in files.items():
        run_id, _, inner = name.partition("/")
        found.setdefault(run_id, {})[inner] = text.encode()
    return found


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
