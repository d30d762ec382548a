"""A real Slurm cluster on this machine: every node, the controller and the login node in namespaces of their own.

All that runs is real: munge, slurmctld, slurmdbd on MariaDB, one slurmd per node, sshd. Only the hardware is claimed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from podwright.lab import packages, processes, ssh, watch
from podwright.lab.base import Say, StartedLab, check_same, quiet
from podwright.lab.folder import locked, write
from podwright.lab.machines import HUB, Machines
from podwright.lab.scripts import INSIDE
from podwright.lab.slurm import accounting, files, shape
from podwright.lab.slurm.shape import SlurmLabShape
from podwright.lab.slurm.site import CONTROLLER
from podwright.lab.ssh import LOGIN
from podwright.lab.user import LabUser, lab_user
from podwright.spec.problems import refuse

_READY = frozenset({"idle", "mix", "alloc", "comp", "resv"})


def addresses(hosts: list[str]) -> dict[str, str]:
    """Give every machine an address on the lab's own network, which nothing outside the lab sees."""
    fixed = {CONTROLLER: "10.77.0.2", LOGIN: "10.77.0.3"}
    return fixed | {host: f"10.77.{1 + i // 250}.{1 + i % 250}" for i, host in enumerate(hosts)}


class SlurmLab(StartedLab):
    """A lab that was started in a folder; making this object touches nothing."""

    shape: SlurmLabShape

    def __init__(self, folder: Path, wanted: SlurmLabShape, user: LabUser) -> None:
        super().__init__(folder, Machines(folder, addresses(wanted.hosts())))
        self.shape = wanted
        self.user = user

    @property
    def ssh_config(self) -> Path:
        """Return the ssh configuration that knows the login node by the lab's name."""
        return self.folder / "ssh" / "config"

    @property
    def home(self) -> Path:
        """Return the home of the lab's user."""
        return self.folder / "home" / self.user.name

    @property
    def shared(self) -> Path:
        """Return the folder of the lab's user that login and compute nodes share."""
        return self.folder / "shared" / self.user.name

    def run(self, command: list[str], machine: str = LOGIN) -> subprocess.CompletedProcess[str]:
        """Run a command as the lab's user in a login shell of his, on the login node or another machine."""
        who = ["setpriv", f"--reuid={self.user.uid}", f"--regid={self.user.gid}", "--clear-groups"]
        line = 'cd; exec "$@"'
        shell = ["env", f"HOME={self.home}", f"USER={self.user.name}", "bash", "-lc", line, "bash", *command]
        return self.machines.run(machine, [*who, *shell])

    def kill_controller(self) -> None:
        """Kill slurmctld, as a crash would; its machine stays."""
        victims = self.machines.running(CONTROLLER).get("slurmctld", [])
        for pid in victims:
            processes.kill(pid)
        processes.until(lambda: all(processes.born(pid) is None for pid in victims), every_s=0.01)

    def restart_controller(self) -> None:
        """Kill slurmctld if it runs and start it again."""
        self.kill_controller()
        with locked(self.folder):
            self._start_controller()

    def heal(self, node: str | None = None) -> list[str]:
        """Start what has died and join what was cut off, of one node or of all; return their names."""
        with locked(self.folder):
            return self._heal([self.node(node)] if node else None)

    def _heal(self, nodes: list[str] | None, say: Say = quiet) -> list[str]:
        """Bring the lab, or some of its nodes, to where all runs; every step looks first whether it is needed."""
        self.start_hub()
        started = self.machines.start([CONTROLLER])
        missing = self._missing()
        self._start_munge()
        if self.shape.accounting:
            accounting.start(self.machines, CONTROLLER, self.name, self.user.name, say)
        self._start_controller()
        started = list(dict.fromkeys([*started, *([CONTROLLER] if missing else [])]))
        say("nodes", f"{self.shape.words()}, and a login node")
        started += self._start_nodes(nodes or self.shape.hosts())
        self._open_login()
        self._await_nodes(nodes or self.shape.hosts())
        return started

    def _start_munge(self) -> None:
        if self._has(HUB, "munged"):
            return
        where = f"{INSIDE}/munge"
        names = {"key-file": f"{where}/key", "seed-file": f"{where}/seed", "log-file": f"{INSIDE}/log/munged.log"}
        done = self.machines.run(HUB, ["munged", "--force", *(f"--{name}={path}" for name, path in names.items())])
        if done.returncode:
            raise refuse(f"munged did not start: {done.stderr.strip()}", hint=f"its log is in {self.folder / 'log'}")

    def _start_controller(self) -> None:
        if not self._has(CONTROLLER, "slurmctld"):
            self.machines.start_daemons([CONTROLLER], ["slurmctld"])
        if not processes.until(lambda: self.machines.run(CONTROLLER, ["scontrol", "ping"]).returncode == 0):
            raise self.machines.failed("slurmctld", "slurmctld.log")

    def _start_nodes(self, nodes: list[str]) -> list[str]:
        started = self.start_machines(nodes)
        up = self.machines.up()
        running = processes.running(up.values())
        idle = [node for node in nodes if node in up and not running[up[node]].get("slurmd")]
        self.machines.start_daemons(idle, ["slurmd"])
        return list(dict.fromkeys([*started, *idle]))

    def _open_login(self) -> None:
        self.machines.start([LOGIN])
        folder = self.folder / "ssh"
        if not ssh.answers(self.ssh_config, self.name):
            port = ssh.open_door(self.machines, ssh.port_in(self.ssh_config))
            write(self.ssh_config, ssh.client_config(folder, self.name, self.user, port))
        if not processes.until(lambda: ssh.answers(self.ssh_config, self.name)):
            raise self.machines.failed("sshd", "sshd.log")

    def _await_nodes(self, nodes: list[str]) -> None:
        """Wait until every node may take jobs; Slurm is asked again to use those that it gave up."""

        def ready() -> bool:
            states = self.node_states()
            lost = [node for node in nodes if states.get(node, "").rstrip("*$") in ("down", "drain", "drng", "fail")]
            if lost:
                names = ",".join(lost)
                self.machines.run(CONTROLLER, ["scontrol", "update", f"NodeName={names}", "State=RESUME"])
            return all(states.get(node) in _READY for node in nodes)

        if not processes.until(ready, every_s=0.2):
            missing = [f"{node} {state}" for node, state in self.node_states().items() if state not in _READY]
            raise refuse(f"not every node came up: {', '.join(missing[:8])}", hint=f"logs are in {self.folder / 'log'}")

    def node_states(self) -> dict[str, str]:
        """Return Slurm's short word for every node."""
        answer = self.machines.run(CONTROLLER, ["sinfo", "-h", "-N", "-p", "gpu,cpu", "-o", "%N %t"])
        return dict(line.split() for line in answer.stdout.splitlines())

    def _missing(self) -> list[str]:
        """Return the daemons of the controller that do not run."""
        wanted = ["slurmctld", *(["slurmdbd"] if self.shape.accounting else [])]
        running = self.machines.running(CONTROLLER)
        return [name for name in wanted if not running.get(name)]

    def status(self) -> list[dict[str, str]]:
        """Return every machine with its role, address, state (up, off, cut) and Slurm's word for it."""
        roles = {CONTROLLER: "controller", LOGIN: "login", "": "compute"}
        if not self.machines.wires().get(CONTROLLER):
            return self.rows("slurm", roles, {})
        missing = self._missing()
        states = {} if "slurmctld" in missing else self.node_states()
        if missing:
            states[CONTROLLER] = f"without {', '.join(missing)}"
        return self.rows("slurm", roles, states)

    def _has(self, machine: str, program: str) -> bool:
        return program in self.machines.running(machine)


def up(folder: Path, say: Say = quiet, ends_with: int | None = None, **wanted: Any) -> SlurmLab:
    """Start a lab in a folder, or whatever of it has died; takes the fields of `SlurmLabShape` by name.

    It stays until it is taken down, or as long as a process that is given by its number.
    """
    asked = SlurmLabShape(**wanted)
    folder = Path(folder).absolute()
    _check(folder, asked)
    with watch.working_on(folder, ends_with):
        lab = _made(folder, asked, say)
        lab._heal(None, say)
        _check_python(lab)
        return lab


def find(folder: Path) -> SlurmLab | None:
    """Return the lab in a folder, running or not; None where there is none."""
    kept = shape.read(folder)
    return None if kept is None else SlurmLab(folder, *kept)


def _check(folder: Path, asked: SlurmLabShape) -> None:
    shape.check(asked)
    packages.check_root(["lab", "up", "slurm"])
    wanted = packages.BASE | packages.SLURM
    if asked.accounting:
        wanted |= packages.ACCOUNTING
    packages.check_packages(wanted)
    check_same(find(folder), asked)


def _made(folder: Path, asked: SlurmLabShape, say: Say) -> SlurmLab:
    """Return the lab of a folder; its files are written when there is none yet."""
    lab = find(folder)
    if lab is None:
        lab = SlurmLab(folder, asked, lab_user(os.environ))
        say("lab", f"{asked.name} in {folder}, user {lab.user.name}")
        files.write_all(folder, asked, lab.user, lab.machines.addresses)
    return lab


def _check_python(lab: SlurmLab) -> None:
    """Run the environment's Python as the lab's user on a node: what every job will do."""
    done = lab.run(["python", "-c", "import podwright"], machine=lab.shape.hosts()[0])
    if done.returncode:
        raise refuse(
            f"the lab's user {lab.user.name} cannot use {sys.executable}: {done.stderr.strip()[-200:]}",
            hint="let others read it: chmod -R o+rX on the environment, the Python installation and the checkout",
        )
