"""The files of a lab, written once, before anything of it is started."""

from __future__ import annotations

import os
import re
import secrets
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from podwright.bringup.plan.slurm import Version, render
from podwright.lab import mask, scripts, ssh
from podwright.lab.folder import write
from podwright.lab.machines import ENVIRONMENT, HUB
from podwright.lab.slurm import shape
from podwright.lab.slurm.shape import SlurmLabShape
from podwright.lab.slurm.site import site
from podwright.lab.user import LabUser, account_files
from podwright.spec import SlurmScheduler, load_pod
from podwright.spec.problems import refuse

_FOLDERS = ("bin", "db", "dev", "etc", "home", "log", "munge", "pids", "run", "shared", "spool", "ssh", "state", "tmp")

# What others shall not read.
_MODES = {"shadow": 0o640, "slurmdbd.conf": 0o600}


def write_all(folder: Path, wanted: SlurmLabShape, user: LabUser, addresses: Mapping[str, str]) -> None:
    """Write everything; may be repeated, and what says that there is a lab comes last."""
    for name in _FOLDERS:
        (folder / name).mkdir(exist_ok=True, mode=0o755)
    write(folder / "pod.yaml", shape.pod_text(folder, wanted))
    _write_machines(folder, wanted, user)
    table = {"localhost": "127.0.0.1", HUB: scripts.BRIDGE_ADDRESS, **addresses}
    write(folder / "etc" / "hosts", "".join(f"{address} {name}\n" for name, address in table.items()))
    _write_hardware(folder, wanted)
    _write_user(folder, user)
    _write_ssh(folder / "ssh", wanted.name, user)
    _write_slurm(folder, wanted)
    shape.write(folder, wanted, user)


def _write_machines(folder: Path, wanted: SlurmLabShape, user: LabUser) -> None:
    seen = [*mask.needed_folders(), *map(Path, wanted.reveal), folder]
    covers = mask.veils(seen, mask.may_enter(user), always=[Path("/run")])
    over = {f"/etc/{name}": f"etc/{name}" for name in ("passwd", "group", "shadow", "hosts")}
    write(folder / "bin" / scripts.START_SCRIPT, scripts.start_script(folder))
    write(folder / "bin" / scripts.HUB_SCRIPT, scripts.hub_script(folder, covers, over))
    write(folder / "bin" / scripts.MACHINE_SCRIPT, scripts.machine_script())


def _write_hardware(folder: Path, wanted: SlurmLabShape) -> None:
    for host in wanted.hosts():
        (folder / "spool" / host).mkdir(exist_ok=True)
        (folder / "tmp" / host).mkdir(exist_ok=True)
        (folder / "tmp" / host).chmod(0o1777)
    for number in range(wanted.gpus):
        gpu = folder / "dev" / f"nvidia{number}"
        gpu.unlink(missing_ok=True)
        # Slurm counts a GPU only when it is a device.
        gpu.symlink_to("/dev/null")


def _write_user(folder: Path, user: LabUser) -> None:
    """Write the accounts and the user's folders; a login shell of his finds the environment this runs in."""
    home = folder / "home" / user.name
    files = account_files(user, home, Path("/etc/passwd").read_text(), Path("/etc/group").read_text())
    for name, text in files.items():
        write(folder / "etc" / name, text, _MODES.get(name, 0o644))
    for own in (home, folder / "shared" / user.name):
        own.mkdir(exist_ok=True, mode=0o700)
        os.chown(own, user.uid, user.gid, follow_symlinks=False)
    write(home / ".profile", f"export PATH={shlex.quote(user_path())} SLURM_CONF={ENVIRONMENT['SLURM_CONF']}\n")


def user_path() -> str:
    """Return the PATH of the lab's user: this environment first."""
    return f"{Path(sys.prefix) / 'bin'}:{ENVIRONMENT['PATH']}"


def _write_ssh(folder: Path, name: str, user: LabUser) -> None:
    ssh.make_keys(folder, user)
    write(folder / "sshd_config", ssh.server_config(user, user_path()))
    write(folder / "known_hosts", f"{name} {(folder / 'host_key.pub').read_text()}")


def _write_slurm(folder: Path, wanted: SlurmLabShape) -> None:
    pod = load_pod(folder / "pod.yaml")
    scheduler = pod.scheduler("slurm")
    assert isinstance(scheduler, SlurmScheduler)
    for name, text in render(pod, scheduler, site(wanted, _version())).items():
        write(folder / "etc" / name, text, _MODES.get(name, 0o644))
    if not (folder / "munge" / "key").exists():
        write(folder / "munge" / "key", secrets.token_hex(512), 0o400)


def _version() -> Version:
    answer = subprocess.run(["slurmctld", "-V"], capture_output=True, text=True, check=False).stdout
    version = re.search(r"(\d+)\.(\d+)", answer)
    if version is None:
        raise refuse("slurmctld does not report its version", hint="does `slurmctld -V` work?")
    return int(version[1]), int(version[2])
