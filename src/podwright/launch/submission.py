"""Starting a run: look things up, plan, render, write the folder, submit."""

from __future__ import annotations

import os
import secrets
import sys
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podwright.engines.base import Engine, Files, Job, Request, Unfinished, check_abilities
from podwright.engines.code_files import AlsoTravels
from podwright.engines.payload import Snapshot, pilot_zip, snapshot
from podwright.engines.staged import manifests
from podwright.files.locks import try_lock
from podwright.files.people import user_name
from podwright.launch.inputs import resolve
from podwright.launch.journal import masker_of, note
from podwright.launch.origin import DIFF, CodeOrigin, origin_of
from podwright.launch.session import Session
from podwright.pilot import __version__
from podwright.runs import Asked, Home, RunFolder
from podwright.runs.folder import POD_FILE
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

    def __enter__(self) -> Prepared:
        return self

    def __exit__(self, *_: object) -> None:
        if self.code:
            self.code.tar.close()


@dataclass(frozen=True)
class Submission:
    """What a user wants started, and where."""

    workload: Workload
    target: str
    run_id: str
    repeat: int = 1
    after: str | None = None
    code: Snapshot | None = None
    """Code that is handed in is taken as it is, and the folder is not looked at."""
    verify: bool = False
    """Read all files of selections and compare them by their SHA-256."""


def prepare(session: Session, submission: Submission) -> Prepared:
    """Decide everything about a run without starting it: look at the code folder and the target, touch nothing."""
    workload, target, after = submission.workload, submission.target, submission.after
    engine, pod = session.target(target)
    code = submission.code or _code(workload, session.home)
    given = resolve(session, workload, pod, engine.sees_home, submission.verify)
    request = Request(
        run_id=submission.run_id,
        workload=workload,
        pod=pod,
        points=_points(workload, submission.repeat),
        code=None,
        data=given.inputs,
        pinned=given.pinned,
        staged=given.staged,
        verified=given.verified,
        after=after,
        after_handle=_handle_after(session.home, target, after),
    )
    if code:
        request = replace(request, code={"file": "code.tar", "sha256": code.sha256}, code_tar=code.tar)
    check_abilities(engine, request)
    with session.using(engine):
        job = engine.plan(request, engine.probe(request))
    return Prepared(request, target, engine, job, engine.render(job), code)


def _handle_after(home: Home, target: str, after: str | None) -> str | None:
    """Return what the engine calls the run that is waited for; only within one target can an engine wait."""
    if not after:
        return None
    before = home.folder(after)
    if before.asked.target != target:
        message = f"{after} is on {before.asked.target}, and this run goes to {target}"
        raise refuse(message, hint="a run can only come after one on the same target", field="--after")
    if before.asked.points:
        return home.folder(f"{after}-1").handle
    return before.handle


def _points(workload: Workload, repeat: int) -> tuple[dict[str, Any], ...]:
    """Return the matrix points, each as often as asked; a single run is one point without values."""
    from podwright.spec import points

    if repeat < 1:
        raise refuse("must be a whole positive number", field="--repeat")
    repeated: list[dict[str, Any]] = []
    for point in points(workload) or [{}]:
        repeated += [dict(point)] * repeat
    return tuple(repeated)


def _code(workload: Workload, home: Home) -> Snapshot | None:
    """Take a snapshot of the code; data inside its folder travels with it, and so does the ranks' input.

    A large one waits where it will be stored: temporary files may lie in memory. `render` makes no home for it.
    """
    root = workload.code_folder
    if root is None:
        return None
    inside = [given.text for given in workload.inputs().values() if given.kind == "code"]
    if workload.stdin_in_code:
        inside.append(workload.stdin_in_code)
    also = AlsoTravels(tuple(root / text for text in inside), workload.include, home=home.path.resolve())
    return snapshot(root, also, home.code if os.access(home.code, os.W_OK) else None)


def start(session: Session, prepared: Prepared) -> str:
    """Make the run exist, submit it, and return its id; from here on it lives, whatever becomes of this client."""
    home, request = session.home, prepared.request
    _check_secrets(request.workload)
    with session.using(prepared.engine):
        prepared.engine.preflight(prepared.job)
    code_folder = request.workload.code_folder
    origin = origin_of(code_folder) if code_folder else None
    links, files = _links(home, prepared, origin), _by_run(prepared.files)
    root = Path(prepared.job.root) if prepared.job.root else None
    whole = _asked(prepared, origin)

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
        for sentence in prepared.job.gaps:
            note(folder, "gap", text=sentence)
    with submitting(folders[0]) as alone:
        if alone:
            with session.using(prepared.engine):
                _submit(prepared.engine, request.run_id, folders, again=False)
    return request.run_id


def _links(home: Home, prepared: Prepared, origin: CodeOrigin | None) -> dict[str, Path]:
    """Store what runs have in common once, and return where: the two files, the pilot, the code and its changes."""
    workload, pod, code = prepared.request.workload, prepared.request.pod, prepared.code
    links = {
        "spec/workload.yaml": home.store(workload.source, "workload.yaml"),
        "job/pilot.pyz": home.store(pilot_zip(), "pilot.pyz"),
    }
    if pod:
        links[POD_FILE.as_posix()] = home.store(pod.source, "pod.yaml")
    if code:
        links["job/code.tar"] = home.store(code.tar, "tar")
    if origin and origin.diff:
        links[DIFF] = home.store(origin.diff, "diff")
    for name, manifest in manifests(prepared.request.staged).items():
        links[f"job/{name}"] = home.store(manifest, "gz")
    return links


def _submit(engine: Engine, run_id: str, folders: Sequence[RunFolder], again: bool) -> None:
    """Submit a job; one that cannot be started is noted as lost, so that nobody tries it again and again."""
    try:
        handle = engine.submit(run_id, folders, again)
    except Unfinished as refusal:
        raise _to_be_finished(_masked(refusal, folders[0].asked.secrets), run_id) from None
    except Refusal as refusal:
        for folder in folders:
            note(folder, "lost", why=refusal.problems[0].message)
        raise _masked(refusal, folders[0].asked.secrets) from None
    for folder in folders:
        note(folder, "submitted", handle=handle)


def _to_be_finished(refusal: Refusal, run_id: str) -> Refusal:
    """Return a refusal that says who goes on with a run that is half submitted."""
    hint = f"`podwright wait {run_id}` submits the rest once it answers again; `podwright cancel {run_id}` ends it"
    problems = [replace(problem, hint=hint) for problem in refusal.problems]
    return Refusal(problems, refusal.exit_code)


def _masked(refusal: Refusal, secrets: Sequence[str]) -> Refusal:
    """Return a refusal without the values of secrets: another program's words are in it."""
    mask = masker_of(secrets)
    problems = [replace(problem, message=mask.text(problem.message)) for problem in refusal.problems]
    return Refusal(problems, refusal.exit_code)


def _check_secrets(workload: Workload) -> None:
    missing = [name for name in workload.secrets if name not in os.environ]
    if missing:
        hint = "export it in the shell that starts the run; it is never written down"
        raise workload.refusal(("secrets", f"{name} is not set here", hint) for name in missing)


def _asked(prepared: Prepared, origin: CodeOrigin | None) -> Asked:
    """Return what is asked in all: of a single run, or of the parent of several."""
    from podwright.spec import workload_json

    request = prepared.request
    workload = request.workload
    team = request.pod.team_of(user_name()) if request.pod else None
    code: dict[str, Any] | None = None
    if prepared.code:
        code = {"sha256": prepared.code.sha256, "files": prepared.code.files}
    if code and origin:
        code |= origin.as_json()
    return Asked(
        id=request.run_id,
        name=workload.name,
        target=prepared.target,
        engine=prepared.engine.name,
        created_at=time.time(),
        nodes=workload.nodes,
        ranks_per_node=workload.ranks_per_node,
        spares=workload.spares,
        workload=workload_json(workload),
        code=code,
        image=_image(prepared),
        inputs=dict(request.pinned) or None,
        verified=dict(request.verified) if request.verified else None,
        points=len(request.points) if request.is_parent else 0,
        after=request.after,
        command_line=sys.argv,
        version=__version__,
        user=user_name(),
        team=team.name if team else None,
        file=str(workload.path),
    )


def _image(prepared: Prepared) -> dict[str, Any] | None:
    """Return the image of a run in a container: what the engine found, else a digest in the name still pins it."""
    workload, image = prepared.request.workload, prepared.job.image
    if workload.runtime == "bare":
        return None
    if image is not None:
        return dict(image)
    if workload.image is None:
        return None
    name, _, digest = workload.image.partition("@")
    return {"name": name, "digest": digest or None}


def _part(whole: Asked, request: Request, index: int) -> Asked:
    """Return what is asked of one part; the matrix of all stays with the parent: a thousand points do not hold it."""
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
    """Return the rendered files, run by run."""
    by_run: dict[str, dict[str, bytes]] = {}
    for name, text in files.items():
        run_id, _, inner = name.partition("/")
        by_run.setdefault(run_id, {})[inner] = text.encode()
    return by_run


def submitting(folder: RunFolder) -> AbstractContextManager[bool]:
    """Return the lock a client holds while it submits a run; whoever finds it held leaves the run to the holder."""
    return try_lock(folder.path / "submit.lock")


def resubmit(engine: Engine, siblings: Sequence[RunFolder], parts: Sequence[RunFolder]) -> bool:
    """Finish what a killed client began: all is on disk, and an engine starts a job only once.

    `parts` are those of the siblings that are to be submitted. Return False where a secret is missing here: only a
    client that has it can submit the run.
    """
    first = siblings[0]
    missing = [name for name in first.asked.secrets if name not in os.environ]
    if missing:
        return False
    with submitting(first) as alone, suppress(Refusal):
        if alone:
            _submit(engine, first.asked.job_id, parts, again=True)
    return True
