"""Bare hosts on this machine, as a site has them before anything is set up: systemd, sshd, a network of their own.

Each is a systemd-nspawn container with a disk of its own, inside a machine of the lab: killing that machine is pulling
the plug, and starting it again boots from the same disk.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from podwright.lab import cgroups, doors, packages, processes, relay, ssh, watch
from podwright.lab.base import Say, StartedLab, quiet
from podwright.lab.folder import locked
from podwright.lab.hosts import files, image, network, shape
from podwright.lab.hosts.shape import HostsLabShape
from podwright.lab.machines import Machines
from podwright.lab.user import LabUser, lab_user
from podwright.spec.problems import refuse

_SSH_PORT = 22


class HostsLab(StartedLab):
    """A lab that was started in a folder; making this object touches nothing."""

    shape: HostsLabShape
    node_word = "host"

    def __init__(self, folder: Path, wanted: HostsLabShape, user: LabUser) -> None:
        super().__init__(folder, Machines(folder, wanted.addresses()))
        self.shape = wanted
        self.user = user

    @property
    def ssh_config(self) -> Path:
        """Return the ssh configuration that knows every host by its name."""
        return self.folder / "ssh" / "config"

    @property
    def first(self) -> str:
        """Return the host that the door on the loopback leads to."""
        return self.shape.hosts()[0]

    def run(self, host: str, command: str, user: str = "root") -> subprocess.CompletedProcess[str]:
        """Run a line of shell on a host over ssh."""
        line = ["ssh", "-F", str(self.ssh_config), "-o", "BatchMode=yes", f"{user}@{host}", command]
        return subprocess.run(line, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)

    def heal(self, node: str | None = None) -> list[str]:
        """Start hosts that are off and join those that were cut off; return their names."""
        with locked(self.folder):
            return self._heal([self.node(node)] if node else self.shape.hosts())

    def restart_controller(self) -> None:
        """Refuse: bare hosts have no controller."""
        raise refuse(f"{self.name} has no controller", hint="its hosts are bare; `podwright pod up` sets them up")

    def wipe(self, node: str) -> None:
        """Put an empty disk into a host that is off, as after a replacement: it has another host key then."""
        host = self.node(node)
        with locked(self.folder):
            self.machines.kill([host])
            shutil.rmtree(self.folder / "disks" / host)
            files.write_disk(self.folder, host, self.shape.gpus)
            files.write_access(self.folder, self.shape, ssh.port_in(self.ssh_config))

    def status(self) -> list[dict[str, str]]:
        """Return every host with its address, its state (up, off, cut) and systemd's word for it."""
        links = self.machines.links()
        reached = [host for host in self.shape.hosts() if links[host] == "up"]
        with ThreadPoolExecutor(max_workers=8) as threads:
            states = dict(zip(reached, threads.map(self._system_state, reached), strict=True))
        return self.rows("systemd", {"": "host"}, states)

    def _system_state(self, host: str) -> str:
        return self.run(host, "systemctl is-system-running").stdout.strip()

    def _heal(self, hosts: list[str], say: Say = quiet) -> list[str]:
        """Bring the lab, or some of its hosts, to where all answer; every step looks first whether it is needed."""
        self.start_hub()
        network.start_mirror(self.machines)
        for host in hosts:
            cgroups.make(self.folder, host, holds_groups=False)
        say("hosts", self.shape.words())
        started = [*self.machines.start([self.first]), *self.start_machines(hosts)]
        if relay.PROGRAM not in self.machines.running(self.first):
            doors.open_doors(self.machines, self.first, {ssh.port_in(self.ssh_config): _SSH_PORT})
        for host in hosts:
            if not processes.until(partial(ssh.answers, self.ssh_config, host), every_s=0.2):
                raise self.machines.failed(f"sshd of {host}", f"boot-{host}.log")
        return started


def up(folder: Path, say: Say = quiet, ends_with: int | None = None, **wanted: Any) -> HostsLab:
    """Start a lab in a folder, or whatever of it has died, or add hosts; takes the fields of `HostsLabShape` by name.

    It stays until it is taken down, or as long as a process that is given by its number.
    """
    asked = HostsLabShape(**wanted)
    folder = Path(folder).absolute()
    _check(folder, asked)
    disk = image.get(say)
    with watch.working_on(folder, ends_with):
        lab = _written(folder, asked, disk, say)
        lab._heal(asked.hosts(), say)
        return lab


def find(folder: Path) -> HostsLab | None:
    """Return the lab in a folder, running or not; None where there is none."""
    kept = shape.read(folder)
    return None if kept is None else HostsLab(folder, *kept)


def _written(folder: Path, asked: HostsLabShape, disk: Path, say: Say) -> HostsLab:
    """Return the lab of a folder; its files are written when there is none yet, or when it gets more hosts."""
    lab = find(folder)
    if lab is not None and lab.shape == asked:
        return lab
    user = lab.user if lab else lab_user(os.environ)
    port = ssh.port_in(folder / "ssh" / "config") or doors.choose(1)[0]
    say("lab", f"{asked.name} in {folder}")
    files.write_all(folder, asked, user, disk, port)
    return HostsLab(folder, asked, user)


def _check(folder: Path, asked: HostsLabShape) -> None:
    shape.check(asked)
    packages.check_root(["lab", "up", "hosts"])
    packages.check_packages(packages.BASE | packages.HOSTS)
    lab = find(folder)
    if lab is not None and (lab.shape.gpus != asked.gpus or lab.shape.nodes > asked.nodes):
        raise refuse(
            f"{asked.name} is there already, with {lab.shape.words()}",
            hint="hosts may be added; `podwright lab down` ends it, another --name makes a second one",
        )
