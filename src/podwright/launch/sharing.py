"""Runs that their owner shares: a copy that others may read, beside the home, which stays its owner's alone.

It holds the record, the series, the sensors, the logs and the report. It holds no token, no settings, nothing of the
job, no value of an environment, and no log of a notification.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podwright.files.people import let_read, user_name
from podwright.files.untrusted import open_untrusted
from podwright.files.whole import write_whole
from podwright.launch import pods
from podwright.launch.journal import note
from podwright.runs.folder import POD_FILE
from podwright.runs.metrics import METRICS_FILE
from podwright.runs.series import SERIES_FILE
from podwright.spec.problems import Refusal

if TYPE_CHECKING:
    from podwright.runs import Asked, Home, Record, RunFolder
    from podwright.spec import Pod

RUN_FILE, RECORD_FILE = "run.json", "record.json"
WHOLE = (METRICS_FILE, SERIES_FILE)
OF_NODES = re.compile(r"record/n[0-9]{1,7}\.r[0-9]{1,7}/(events\.jsonl|ship\.jsonl|merged\.log|merged\.log\.1)")
MAX_FILES, MAX_BYTES = 20_000, 1 << 30
"""Of one shared run: what is beyond them is left out."""
PUBLIC, OPEN = 0o755, 0o644
WORKLOAD = (
    "name",
    "command",
    "nodes",
    "spares",
    "ranks_per_node",
    "launcher",
    "runtime",
    "resources",
    "goal",
    "retries",
)
"""What a shared run tells of its workload."""
CODE = ("sha256", "files", "commit", "changed")


@dataclass(frozen=True)
class Place:
    """Where a user's shared runs lie, and for whom: `all`, or a `team` with its members."""

    root: Path
    share: str
    members: tuple[str, ...] = ()
    team: str = ""

    @property
    def own(self) -> Path:
        """Return the folder that holds all a user shares."""
        return self.root / str(user_name())

    @property
    def folder(self) -> Path:
        """Return the folder of what is shared with these."""
        return self.own / self.share


def place_of(home: Home, folder: RunFolder) -> Place | None:
    """Return where a run is shared, None where its owner shares none; OSError says why one cannot be."""
    if not (home.path / "settings.yaml").exists():
        return None  # the usual case, for which nothing is imported
    from podwright.launch.settings import read_settings

    share = read_settings(home.path).share
    if share == "none":
        return None
    pod = _pod_of(home, folder)
    if pod is None or pod.shared_runs is None:
        raise OSError("no pod that it belongs to has `shared_runs:`")
    root = Path(pod.shared_runs)
    team = pod.team_of(user_name())
    if share == "all":
        return Place(root, share)
    if team is None:
        raise OSError(f"{user_name()} is in no team of the pod {pod.name}")
    return Place(root, share, team.members, team.name)


def _pod_of(home: Home, folder: RunFolder) -> Pod | None:
    """Return the pod of a run as it was when it started; of one on this machine the first that shares runs."""
    from podwright.spec import load_pod

    if folder.asked.target != "local":
        return load_pod(folder.job_path / POD_FILE)
    known = (pods.find(home, name) for name in pods.known(home))
    return next((pod for pod in known if pod.shared_runs), None)


def publish(home: Home, folder: RunFolder, record: Record) -> None:
    """Share a run that has ended, if its owner shares any; why it cannot be is noted as something that is missing."""
    try:
        place = place_of(home, folder)
        if place is not None:
            _publish(place, folder, record)
    except (OSError, Refusal) as error:
        why = error.problems[0].message if isinstance(error, Refusal) else error.strerror or str(error)
        import logging

        logging.getLogger("podwright").warning("%s is not shared: %s", folder.id, why)
        with suppress(Refusal):
            note(folder, "gap", text=f"it is not shared: {why}")


def _publish(place: Place, folder: RunFolder, record: Record) -> None:
    _prepare(place)
    part = place.folder / f".{folder.id}.{os.getpid()}.part"
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir()
        target = place.folder / folder.id
        asked = json.dumps(_shown(folder.asked).as_json()).encode()
        write_whole(part / RUN_FILE, asked, OPEN)
        write_whole(part / RECORD_FILE, json.dumps({**record.as_json(), "folder": str(target)}).encode(), OPEN)
        copy_shown(folder.path, part)
        for path in (part, *(path for path in part.rglob("*") if path.is_dir())):
            path.chmod(PUBLIC)
        _remove(place, folder.id)
        part.rename(target)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _prepare(place: Place) -> None:
    """Make the folders of a user who shares; refuse those that somebody else has made, or could put aside."""
    status = place.root.stat()
    others = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if status.st_uid not in (0, os.geteuid()) or (others and not status.st_mode & stat.S_ISVTX):
        raise OSError(f"{place.root} could be changed by others: it must be root's, and of mode 1777")
    for path in (place.own, place.folder):
        with suppress(FileExistsError):
            path.mkdir(mode=0o700)
        if not _is_own(path):
            raise OSError(f"{path} is not a folder of yours")
    place.own.chmod(PUBLIC)
    if place.share == "all":
        place.folder.chmod(PUBLIC)
    else:
        let_read(place.folder, place.members, place.team)


def _is_own(folder: Path) -> bool:
    try:
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def _shown(asked: Asked) -> Asked:
    """Return what was asked of a run without what is its owner's affair: environment, secrets, paths, command line."""
    workload = {name: asked.workload[name] for name in WORKLOAD if name in asked.workload}
    code = {name: asked.code[name] for name in CODE if name in asked.code} if asked.code else None
    return replace(asked, workload=workload, code=code, command_line=[], file="", points=0)


def copy_shown(source: Path, target: Path) -> None:
    """Copy what is shared of a run's folder: plain files alone, within bounds, as anything may lie there."""
    left = MAX_BYTES
    for name in shown_files(source):
        with suppress(OSError), open_untrusted(source, name) as file:
            size = os.fstat(file.fileno()).st_size
            if size > left:
                continue
            left -= size
            path = target / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, OPEN), "wb") as copy:
                shutil.copyfileobj(_Bounded(file, size), copy)
            path.chmod(OPEN)


@dataclass
class _Bounded:
    """A file up to a size: it may grow while it is read."""

    file: Any
    left: int

    def read(self, size: int = -1) -> bytes:
        data: bytes = self.file.read(self.left if size < 0 else min(size, self.left))
        self.left -= len(data)
        return data


def shown_files(folder: Path) -> Iterator[str]:
    """Yield the names of what is shared of a run, as far as they seem to be there."""
    yield from WHOLE
    left = MAX_FILES
    for node in _names(folder / "record"):
        for name in _names(folder / "record" / node):
            path = f"record/{node}/{name}"
            left -= 1
            if left < 0:
                return
            if OF_NODES.fullmatch(path):
                yield path


def _names(folder: Path) -> Iterator[str]:
    with suppress(OSError), os.scandir(folder) as entries:
        for _, entry in zip(range(MAX_FILES), entries, strict=False):
            yield entry.name


def _remove(place: Place, run_id: str) -> None:
    """Take a run out of all that its owner shares: it may have been shared with others before."""
    for share in ("all", "team"):
        path = place.own / share / run_id
        gone = path.with_name(f".{run_id}.{os.getpid()}.gone")
        if not (_is_own(place.own) and _is_own(path.parent)):
            continue
        with suppress(OSError):
            path.rename(gone)
            shutil.rmtree(gone, ignore_errors=True)


def withdraw(home: Home, folder: RunFolder) -> None:
    """Take a run back that is removed here."""
    with suppress(OSError, Refusal):
        pod = _pod_of(home, folder)
        if pod is not None and pod.shared_runs is not None:
            _remove(Place(Path(pod.shared_runs), "all"), folder.id)
