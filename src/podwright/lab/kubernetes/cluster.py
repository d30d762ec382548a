"""A real Kubernetes on this machine: the control plane and every node in namespaces of their own.

All that runs is real: etcd, API server, controllers, scheduler, kubelet, containerd, runc, DNS, operators, registry.
Only the GPUs are claimed, and the virtual nodes are played by KWOK.
"""

from __future__ import annotations

import subprocess
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from podwright.clients.kubernetes.api import ApiError, Away
from podwright.lab import doors, packages, processes, watch
from podwright.lab.base import Say, StartedLab, check_same, quiet
from podwright.lab.folder import locked
from podwright.lab.kubernetes import binaries, files, shape
from podwright.lab.kubernetes.binaries import Progress
from podwright.lab.kubernetes.control import Control, missing_programs
from podwright.lab.kubernetes.nodes import Nodes
from podwright.lab.kubernetes.programs import KEPT
from podwright.lab.kubernetes.shape import CONTROL, KubernetesLabShape, LabPorts
from podwright.lab.machines import Machines
from podwright.spec.hostlist import fold_hosts
from podwright.spec.problems import refuse

PACKAGES = {
    "iproute2": "ip",
    "util-linux": "nsenter",
    "openssl": "openssl",
    "containerd": "containerd",
    "runc": "runc",
    "containernetworking-plugins": "/usr/lib/cni/bridge",
    "iptables": "iptables",
    "conntrack": "conntrack",
    "docker-registry": "docker-registry",
    "mmdebstrap": "mmdebstrap",
}


def no_progress(done: int, total: int) -> None:
    """Show nothing."""


class KubernetesLab(StartedLab):
    """A lab that was started in a folder; making this object touches nothing."""

    shape: KubernetesLabShape

    def __init__(self, folder: Path, wanted: KubernetesLabShape, ports: LabPorts) -> None:
        super().__init__(folder, Machines(folder, wanted.addresses()))
        self.shape = wanted
        self.ports = ports

    @property
    def kubeconfig(self) -> Path:
        """Return the way in for the lab's ordinary user."""
        return self.folder / "kubeconfig"

    @property
    def admin_kubeconfig(self) -> Path:
        """Return the way in for who may do everything."""
        return self.folder / "admin.kubeconfig"

    @property
    def image(self) -> str:
        """Return the image that workloads without one run in, by the name that this machine and the nodes know."""
        return self.ports.image()

    @property
    def kubectl_path(self) -> Path:
        """Return the kubectl of the lab's own release."""
        return self._parts()["kubectl"]

    def kubectl(self, *arguments: str, admin: bool = False, give: str = "") -> subprocess.CompletedProcess[str]:
        """Run kubectl as the lab's user, or as its administrator."""
        config = self.admin_kubeconfig if admin else self.kubeconfig
        command = [str(self.kubectl_path), f"--kubeconfig={config}", *arguments]
        return subprocess.run(command, input=give, capture_output=True, text=True, check=False)

    def kill_kubelet(self, node: str) -> None:
        """Kill a node's kubelet, as a crash would; its containers go on, and nobody looks after them."""
        self._kill_program(self.node(node), "kubelet")

    def kill_controller(self, stays: bool = False) -> None:
        """Kill the API server, as a crash would; the lab starts it again, unless it `stays` away until it is healed."""
        if stays:
            self._switch().touch()
        self._kill_program(CONTROL, "kube-apiserver")

    def _switch(self) -> Path:
        """Return the file that keeps the API server away while it is there."""
        return self.folder / "run" / f"{KEPT['kube-apiserver']}.off"

    def _kill_program(self, machine: str, program: str) -> None:
        """Kill a program and wait until its last thread has let go of its port."""
        victims = self.machines.running(machine).get(program, [])
        for pid in victims:
            processes.kill(pid)
        processes.until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in victims), every_s=0.01)

    def restart_controller(self) -> None:
        """Kill the API server if it runs and start it again."""
        self.kill_controller()
        self._switch().unlink(missing_ok=True)
        with locked(self.folder), self._control(self._parts()) as control:
            control.start_store()
            control.start_rest()

    def heal(self, node: str | None = None) -> list[str]:
        """Start what has died and join what was cut off, of one node or of all; return the machines that it touched."""
        with locked(self.folder):
            hosts = [self.node(node)] if node else self.shape.hosts()
            return self._heal(hosts, self._parts(), quiet)

    def node_states(self) -> dict[str, str]:
        """Return kubectl's word for every node."""
        with self._control({}) as control:
            return control.node_states()

    def status(self) -> list[dict[str, str]]:
        """Return every machine with its role, address, state (up, off, cut) and Kubernetes' word for it."""
        missing = missing_programs(self.machines)
        states: dict[str, str] = {}
        word = f"without {', '.join(missing)}"
        if not missing:
            states, word = self._answered_states()
        states = {**states, CONTROL: word}
        rows = self.rows("kubernetes", {CONTROL: "control plane", "": "node"}, states)
        return [*rows, *self._virtual(states)]

    def _answered_states(self) -> tuple[dict[str, str], str]:
        """Return Kubernetes' word for every node, and the one for the control plane itself."""
        try:
            return self.node_states(), "Ready"
        except (Away, ApiError):
            return {}, "does not answer"

    def _virtual(self, states: dict[str, str]) -> list[dict[str, str]]:
        """Return all virtual nodes in one row: they differ in nothing but their numbers."""
        hosts = self.shape.virtual_hosts()
        if not hosts:
            return []
        ready = sum(states.get(host) == "Ready" for host in hosts)
        word = f"{ready} of {len(hosts)} Ready" if len(states) > 1 else ""
        name = fold_hosts(hosts)
        return [{"machine": name, "role": "virtual nodes", "address": "", "state": "", "kubernetes": word}]

    def node(self, name: str) -> str:
        """Return the name of a real node; any other is refused."""
        hosts = self.shape.hosts()
        if name in hosts:
            return name
        raise refuse(f'"{name}" is no real node of {self.name}', hint=f"its nodes are {', '.join(hosts)}", field="NODE")

    def _parts(self) -> dict[str, Path]:
        """Return the programs it was started with; those of now where they have been cleared away."""
        return binaries.kept(self.folder / "parts.json") or binaries.get(quiet, no_progress)

    def _control(self, programs: dict[str, Path]) -> closing[Control]:
        return closing(Control(self.machines, self.shape, self.ports, programs))

    def _heal(self, hosts: list[str], programs: dict[str, Path], say: Say) -> list[str]:
        """Bring the lab, or some of its nodes, to where all runs; every step looks first whether it is needed."""
        nodes = Nodes(self.machines, self.shape, programs)
        control_plane = [CONTROL] if missing_programs(self.machines) else []
        self._switch().unlink(missing_ok=True)
        self.start_hub()
        started = [*self.machines.start([CONTROL]), *self.start_machines(hosts)]
        with self._control(programs) as control:
            control.start_store()
            nodes.start_containers(hosts)
            say("control", "API server, scheduler, controllers, DNS, operators")
            control.start_rest()
            since = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=1)
            fresh = nodes.start_kubelets(hosts)
            control.fill_registry(say)
            say("nodes", self.shape.words())
            control.play_nodes()
            nodes.join(fresh, since, control)
            control.await_ready([*hosts, *self.shape.virtual_hosts()])
        nodes.fetch(fresh, self.image)
        return [*control_plane, *(host for host in hosts if host in {*started, *fresh})]


def up(
    folder: Path, say: Say = quiet, progress: Progress = no_progress, ends_with: int | None = None, **wanted: Any
) -> KubernetesLab:
    """Start a lab in a folder, or whatever of it has died; takes the fields of `KubernetesLabShape` by name.

    It stays until it is taken down, or as long as a process that is given by its number.
    """
    asked = KubernetesLabShape(**wanted)
    folder = Path(folder).absolute()
    _check(folder, asked)
    if find(folder) is None:
        binaries.get(say, progress)
    with watch.working_on(folder, ends_with):
        lab = find(folder)
        if lab is None:
            lab = KubernetesLab(folder, asked, LabPorts(*doors.choose(2)))
            say("lab", f"{asked.name} in {folder}")
            files.write_all(folder, asked, lab.ports, binaries.get(say, progress))
        lab._heal(asked.hosts(), lab._parts(), say)
        return lab


def find(folder: Path) -> KubernetesLab | None:
    """Return the lab in a folder, running or not; None where there is none."""
    kept = shape.read(folder)
    return None if kept is None else KubernetesLab(folder, *kept)


def _check(folder: Path, asked: KubernetesLabShape) -> None:
    shape.check(asked)
    packages.check_root(["lab", "up", "kubernetes"])
    packages.check_packages(PACKAGES)
    check_same(find(folder), asked)
