"""The real nodes of a Kubernetes lab: a machine each, with containerd, kubelet and kube-proxy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from podwright.lab import cgroups, processes
from podwright.lab.kubernetes import objects, programs
from podwright.lab.kubernetes.api import MERGE
from podwright.lab.kubernetes.control import Control, is_usable, start
from podwright.lab.kubernetes.shape import KubernetesLabShape
from podwright.lab.machines import Machines


class Nodes:
    """The real nodes of the lab in a folder."""

    def __init__(self, machines: Machines, wanted: KubernetesLabShape, parts: Mapping[str, Path]) -> None:
        self.machines = machines
        self.shape = wanted
        self.parts = parts

    def start_containers(self, hosts: list[str]) -> None:
        """Start containerd where it does not run, and wait for none of them."""
        for host in hosts:
            cgroups.make(self.machines.folder, host)
            start(self.machines, host, self._programs(host, "containerd"))

    def start_kubelets(self, hosts: list[str]) -> list[str]:
        """Start what else does not run of the nodes' programs; return the nodes where a kubelet was started."""
        started = []
        for host in hosts:
            if not processes.until(partial(self._answers, host), every_s=0.1):
                raise self.machines.failed("containerd", f"containerd-{host}.log")
            if "kubelet" in start(self.machines, host, self._programs(host, "kubelet", "kube-proxy", "devices")):
                started.append(host)
        return started

    def fetch(self, hosts: list[str], image: str) -> None:
        """Let nodes fetch an image, and wait for none of them: a Kubernetes pod that comes meanwhile waits itself."""
        for host in hosts:
            start(self.machines, host, programs.fetch(image))

    def _programs(self, host: str, *names: str) -> programs.Commands:
        commands = programs.node(self.shape, self.parts, host)
        return {name: commands[name] for name in names}

    def _answers(self, host: str) -> bool:
        return self.machines.run(host, programs.is_containerd_ready()).returncode == 0

    def join(self, hosts: list[str], since: datetime, control: Control) -> None:
        """Wait until nodes have reported themselves and their devices, and give them their labels."""
        units = control.units()
        for host in hosts:
            if not processes.until(partial(self._has_reported, control, host, since), every_s=0.2):
                raise self.machines.failed(f"kubelet of {host}", f"kubelet-{host}.log")
            labels = objects.node_labels(host, self.shape.gpus, units)
            change = json.dumps({"metadata": {"labels": labels}}).encode()
            control.api.patch(f"{objects.NODES}/{host}", change, MERGE)

    def _has_reported(self, control: Control, host: str, since: datetime) -> bool:
        """Return whether a node is used, with all its devices, by a report that is not older than its kubelet."""
        node = control.nodes().get(host)
        if node is None or not is_usable(node) or _last_report(node) < since:
            return False
        return bool(objects.devices(self.shape.gpus).items() <= node["status"]["allocatable"].items())


def _last_report(node: Mapping[str, Any]) -> datetime:
    conditions = node["status"].get("conditions", [])
    times = [condition["lastHeartbeatTime"] for condition in conditions if condition["type"] == "Ready"]
    return max(map(datetime.fromisoformat, times), default=datetime.min.replace(tzinfo=UTC))
