"""Where labs are kept: a folder each in PODWRIGHT_HOME, and there among the pods that Podwright knows by name."""

from __future__ import annotations

import os
import pwd
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from podwright.lab import kubernetes
from podwright.lab.base import Lab, StartedLab
from podwright.lab.folder import holds_lab
from podwright.lab.hosts import lab as hosts
from podwright.lab.kubernetes import borrowed
from podwright.lab.shape import LabShape, check_name
from podwright.lab.slurm import lab as slurm
from podwright.launch import Session
from podwright.launch.forget import abandon, open_runs
from podwright.pilot.protocol import whole_number
from podwright.runs import Home
from podwright.runs.store import default_home
from podwright.spec.problems import Refusal, refuse

AnyShape = TypeVar("AnyShape", bound=LabShape)

DEFAULT = "lab-slurm"
TAKEN_DOWN = "its lab was taken down"


def home() -> Path:
    """Return PODWRIGHT_HOME; that of whoever called sudo, who will start the runs."""
    uid = os.environ.get("SUDO_UID", "")
    if whole_number(uid) and not {"PODWRIGHT_HOME", "XDG_DATA_HOME"} & os.environ.keys():
        return Path(pwd.getpwuid(int(uid)).pw_dir) / ".local" / "share" / "podwright"
    return default_home()


def folder_of(name: str) -> Path:
    """Return the folder of a lab."""
    return home() / "labs" / name


def names() -> list[str]:
    """Return the names of the labs there are."""
    try:
        return sorted(path.name for path in (home() / "labs").iterdir() if holds_lab(path))
    except FileNotFoundError:
        return []


def find(folder: Path) -> Lab | None:
    """Return the lab in a folder, of whatever kind; None where there is none."""
    return slurm.find(folder) or kubernetes.find(folder) or hosts.find(folder) or borrowed.find(folder)


def the_lab(name: str | None) -> Lab:
    """Return the lab of a name; without one the only lab there is."""
    there = names()
    if name is None and len(there) > 1:
        raise refuse("there are several labs", hint=f"say which with --name: {', '.join(there)}", field="--name")
    if name is None and not there:
        raise refuse("there is no lab", hint="`podwright lab up slurm` or `podwright lab up kubernetes` starts one")
    name = name or there[0]
    lab = find(folder_of(name)) if name in there else None
    if lab is None:
        known = f"there is {', '.join(there)}" if there else "`podwright lab up` makes one"
        raise refuse(f'there is no lab "{name}"', hint=known, field="--name")
    return lab


def wanted_shape(usual: AnyShape, given: Mapping[str, Any]) -> AnyShape:
    """Return the shape of a lab: as given, else as the lab is that has this name, else as labs usually are."""
    check_name(usual.name)
    lab = find(folder_of(usual.name))
    chosen = {key: value for key, value in given.items() if value is not None}
    if lab is None:
        return replace(usual, **chosen)
    if not isinstance(lab, StartedLab) or not isinstance(lab.shape, type(usual)):
        raise refuse(f"{usual.name} is there already, and of another kind", hint="take another --name", field="--name")
    return replace(lab.shape, **chosen)


def new_folder(name: str) -> Path:
    """Return the folder for a lab on a cluster that is there; refused where a lab of that name was started here."""
    check_name(name)
    if isinstance(find(folder_of(name)), StartedLab):
        raise refuse(f"{name} is there already, and was started here", hint="take another --name", field="--name")
    return make_home() / name


def make_home() -> Path:
    """Make the folders above a lab, as their later owner's, and return the one that holds labs."""
    labs = home() / "labs"
    for folder in (*reversed(home().parents), home(), labs, home() / "pods"):
        if not folder.exists():
            folder.mkdir(mode=0o700 if folder == home() else 0o755)
            _hand_over(folder)
    return labs


def is_known(name: str) -> bool:
    """Return whether a pod of this name can be named after `--on`."""
    return _known(name).exists()


def _known(name: str) -> Path:
    return home() / "pods" / f"{name}.yaml"


def make_known(lab: Lab) -> None:
    """Put the lab's pod among those that can be named after `--on`."""
    path = _known(lab.name)
    shutil.copyfile(lab.pod_file, path)
    _hand_over(path)


def forget(name: str) -> None:
    """Take the lab's pod from those that can be named, with the secrets and notes of its bring-up."""
    _known(name).unlink(missing_ok=True)
    shutil.rmtree(home() / "bringup" / name, ignore_errors=True)


def settle_runs(name: str) -> None:
    """Look at the runs of a lab a last time; what cannot be looked at is lost with it."""
    with suppress(Refusal):
        session = Session(Home.open(home()))
        for run in open_runs(session, name):
            with suppress(Refusal):
                run.record()
        session.close()


def lose_runs(name: str) -> list[str]:
    """Seal the runs of a lab that is gone as lost, and remove what they left on this machine; return their names."""
    lost: list[str] = []
    with suppress(Refusal):  # a home that cannot be opened has no runs to lose
        session = Session(Home.open(home()))
        for run in open_runs(session, name):
            parts = [part for part in run.parts() if not part.last_known().is_final]
            abandon(session, run, TAKEN_DOWN)
            for part in parts:
                _hand_over_all(part.folder.path)
            lost.append(run.id)
        _clear_scratch(session.home, name)
        session.close()
    return lost


def _clear_scratch(runs: Home, name: str) -> None:
    """Remove what killed pilots left in the temporary folder, which nodes of a lab share with this machine."""
    for folder in Path(tempfile.gettempdir()).glob("podwright-*"):
        # All users may lay something there: what is open stays the folder that it was.
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            with os.scandir(descriptor) as entries:
                there = [entry.name for entry in entries]
            for run_id in there:
                if _went_to(runs, run_id, name):
                    shutil.rmtree(run_id, ignore_errors=True, dir_fd=descriptor)
            os.close(descriptor)


def _went_to(runs: Home, run_id: str, name: str) -> bool:
    with suppress(Refusal):
        return runs.has(run_id) and runs.folder(run_id).asked.target.partition(":")[0] == name
    return False


def _hand_over_all(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_file() and not path.is_symlink():
            _hand_over(path)


def _hand_over(path: Path) -> None:
    if "SUDO_UID" in os.environ:
        uid, gid = int(os.environ["SUDO_UID"]), int(os.environ.get("SUDO_GID", -1))
        os.chown(path, uid, gid, follow_symlinks=False)
