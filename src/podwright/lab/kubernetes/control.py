"""The control plane of a Kubernetes lab: its programs on the control machine, and what they are told first."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from podwright.design.topology import topology_of
from podwright.lab import doors, processes, relay
from podwright.lab.base import Say
from podwright.lab.kubernetes import configs, image, objects, pki, programs, registry
from podwright.lab.kubernetes.api import admin_api, answers, create_missing
from podwright.lab.kubernetes.binaries import CONSTRAINTS, JOB_SETS, MPI_JOBS
from podwright.lab.kubernetes.shape import CONTROL, IMAGE, NAMESPACE, KubernetesLabShape, LabPorts
from podwright.lab.machines import Machines
from podwright.lab.scripts import INSIDE
from podwright.lab.shape import DGX_GPUS
from podwright.spec import load_pod

_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_KINDS = ("/apis/kubeflow.org/v2beta1/mpijobs", "/apis/jobset.x-k8s.io/v1alpha2/jobsets")
# The definitions have thousands of lines: PyYAML's own parser takes seconds for them.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_COMM = 15  # the kernel cuts a program's name
CONTROL_PLANE = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")


class Control:
    """The control plane of the lab in a folder."""

    def __init__(
        self, machines: Machines, wanted: KubernetesLabShape, ports: LabPorts, parts: Mapping[str, Path]
    ) -> None:
        self.machines = machines
        self.shape = wanted
        self.ports = ports
        self.parts = parts
        self.api = admin_api(pki.LOOPBACK, ports.api, machines.folder / "pki")

    def close(self) -> None:
        """Give up the connection to the API server."""
        self.api.close()

    def start_store(self) -> None:
        """Start store and API server, and open the ways in; wait for none of them."""
        start(self.machines, CONTROL, programs.store(self.parts))
        if not self._lives(relay.PROGRAM):
            ways = {self.ports.api: configs.API_PORT, self.ports.registry: configs.REGISTRY_PORT}
            doors.open_doors(self.machines, CONTROL, ways)

    def start_rest(self) -> None:
        """Start all that needs the API server, and wait until a Kubernetes pod could be made."""
        self._until(lambda: answers(self.api, "/readyz"), "kube-apiserver")
        start(self.machines, CONTROL, programs.control(self.shape, self.parts, sys.executable))
        self._tell()
        self._until(lambda: all(answers(self.api, kind) for kind in _KINDS), "kube-apiserver")
        start(self.machines, CONTROL, programs.operators(self.parts))
        account = f"/api/v1/namespaces/{NAMESPACE}/serviceaccounts/default"
        self._until(lambda: answers(self.api, account), "kube-controller-manager")

    def _tell(self) -> None:
        """Give the API server the objects that every lab has, once: what a user changes of them stays changed."""
        done = self.machines.folder / "etcd" / "told"
        if done.exists():
            return
        for path, thing in objects.first((self.machines.folder / "pki" / "ca.crt").read_bytes()):
            self._apply(path, thing)
        manifests = self.parts["mpi-operator"].parent / "manifests"
        for name in (MPI_JOBS, JOB_SETS, CONSTRAINTS):
            self._apply(_DEFINITIONS, yaml.load((manifests / name).read_text(), Loader=_LOADER))
        done.touch()

    def _apply(self, path: str, thing: dict[str, Any]) -> None:
        """Make an object be as said; `path` is that of its kind."""
        self.api.apply(f"{path}/{thing['metadata']['name']}", thing)

    def fill_registry(self, say: Say) -> None:
        """Put the images in which workloads run into the registry, once."""
        done = self.machines.folder / "registry" / "filled"
        if done.exists():
            return
        port = self.ports.registry
        self._until(lambda: registry.answers(port), "docker-registry")
        registry.put(port, configs.PAUSE_IMAGE, image.pause(self.parts["pause"]))
        registry.put(port, IMAGE, image.base(say))
        done.touch()

    def units(self) -> dict[str, str]:
        """Return the scalable unit of every node, by the design of the lab's pod."""
        return topology_of(load_pod(self.machines.folder / "pod.yaml")).unit_names()

    def play_nodes(self) -> None:
        """Make the virtual nodes known that are not."""
        units, there = self.units(), self.node_states()
        for host in self.shape.virtual_hosts():
            if host not in there:
                create_missing(self.api, objects.NODES, objects.virtual_node(host, DGX_GPUS, units))

    def nodes(self) -> dict[str, dict[str, Any]]:
        """Return what the API server knows of every node, by name."""
        return {node["metadata"]["name"]: node for node in self.api.items(objects.NODES)[0]}

    def node_states(self) -> dict[str, str]:
        """Return kubectl's word for every node."""
        return {name: state_of(node) for name, node in self.nodes().items()}

    def await_ready(self, hosts: Iterable[str]) -> None:
        """Wait until Kubernetes would use all of these nodes."""
        wanted = set(hosts)

        def usable() -> bool:
            return wanted <= {name for name, node in self.nodes().items() if is_usable(node)}

        self._until(usable, "kube-controller-manager")

    def _until(self, true: Callable[[], bool], program: str) -> None:
        """Wait for what a program is to bring about, as long as that program lives."""
        ended = not processes.until(lambda: true() or not self._lives(program), every_s=0.1)
        if ended or not true():
            raise self.machines.failed(program, f"{program}-{CONTROL}.log")

    def _lives(self, program: str) -> bool:
        return _process(program) in self.machines.running(CONTROL)


def state_of(node: Mapping[str, Any]) -> str:
    """Return kubectl's word for a node."""
    conditions = node.get("status", {}).get("conditions", [])
    ready = any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
    return "Ready" if ready else "NotReady"


def is_usable(node: Mapping[str, Any]) -> bool:
    """Return whether a node is Ready and Kubernetes has taken back the taints it gives to nodes that are not."""
    taints = [taint["key"] for taint in node["spec"].get("taints", [])]
    return state_of(node) == "Ready" and not any(key.startswith("node.kubernetes.io/") for key in taints)


def _process(program: str) -> str:
    """Return the name of the process that lives as long as a program is wanted: whoever keeps it, or itself."""
    return programs.KEPT.get(program, program)[:_COMM]


def missing_programs(machines: Machines) -> list[str]:
    """Return what of the control plane does not run just now."""
    there = machines.running(CONTROL)
    return [program for program in CONTROL_PLANE if program[:_COMM] not in there]


def start(machines: Machines, name: str, commands: programs.Commands) -> list[str]:
    """Start those of the programs that do not run on a machine, each with its log; return their names."""
    there = machines.running(name)
    missing = [program for program in commands if _process(program) not in there]
    for program in missing:
        line = shlex.join(commands[program])
        log = f"{INSIDE}/log/{program}-{name}.log"
        machines.start_daemons([name], ["sh", "-c", f"umask 022; {line} >>{log} 2>&1 </dev/null &"])
    return missing
