"""A whole pod at one moment, as its Prometheus has it: nodes, GPUs, links and the queue. Pure."""

from __future__ import annotations

import json
import shlex
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from podwright.spec.hostlist import natural_key
from podwright.spec.problems import refuse

# Every name is asked for once, all at once: what a node is made of, and the one figure of each GPU.
_NODE = {
    "podwright_host_cpu_ratio": "cpu",
    "podwright_host_memory_used_bytes": "memory_used_bytes",
    "podwright_host_memory_bytes": "memory_bytes",
    "node:gpu_power_watts:sum": "power_w",
    "node:gpu_temperature_celsius:max": "temperature_c",
    "node:port_received_bytes:rate5m": "received_bytes_s",
    "node:port_sent_bytes:rate5m": "sent_bytes_s",
}
_GPU, _LINK, _ALERT, _JOBS = "podwright_gpu_utilization_ratio", "podwright_port_up", "ALERTS", "slurm_jobs"
_NODES, _UP = "slurm_nodes", "up"
_NAMES = (*_NODE, _GPU, _LINK, _JOBS, _NODES)
_QUERY = f'{{__name__=~"{"|".join(_NAMES)}"}} or {_ALERT}{{alertstate="firing"}} or {_UP}{{job="node"}}'
_PROGRAM = (
    "import sys, urllib.parse as p, urllib.request as u; "
    'print(u.urlopen("http://127.0.0.1:9090/api/v1/query", p.urlencode({"query": sys.argv[1]}).encode(), '
    "timeout=20).read().decode())"
)
FRAME_QUESTION = shlex.join(["/usr/bin/python3", "-c", _PROGRAM, _QUERY])
"""Asked on the monitoring host itself, as `alerts` is."""


@dataclass(frozen=True)
class FrameGpu:
    """One GPU, or a part of one."""

    gpu: str
    utilization: float
    run: str | None
    user: str | None


_TROUBLES = {"LinkFlapping": "flapping", "LinkSlow": "slow", "LinkErrors": "errors"}


@dataclass
class FramePort:
    """One port of a node that leads into a fabric, and what fires about it."""

    port: str
    up: bool | None = None
    alerts: list[str] = field(default_factory=list)

    @property
    def state(self) -> str:
        """Return up, down, flapping, slow or errors; unknown where nobody says it."""
        if self.up is False:
            return "down"
        trouble = next((word for alert, word in _TROUBLES.items() if alert in self.alerts), None)
        return trouble or ("unknown" if self.up is None else "up")


@dataclass
class FrameNode:
    """One node; what is not known is None."""

    host: str
    up: bool | None = None
    cpu: float | None = None
    memory_used_bytes: float | None = None
    memory_bytes: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    received_bytes_s: float | None = None
    sent_bytes_s: float | None = None
    links: int = 0
    links_up: int = 0
    gpus: list[FrameGpu] = field(default_factory=list)
    alerts: list[str] = field(default_factory=list)
    ports: list[FramePort] = field(default_factory=list)

    def port(self, name: str) -> FramePort:
        """Return a port by its name, which is known from now on."""
        known = next((port for port in self.ports if port.port == name), None)
        if known is None:
            known = FramePort(name)
            self.ports.append(known)
        return known

    @property
    def held(self) -> int:
        """Return how many of its GPUs runs hold."""
        return sum(gpu.run is not None or gpu.user is not None for gpu in self.gpus)


@dataclass(frozen=True)
class PodFrame:
    """One moment of a pod."""

    pod: str
    nodes: Sequence[FrameNode]
    jobs: Mapping[str, int] = field(default_factory=dict)
    """Slurm's jobs by state."""
    states: Mapping[str, int] = field(default_factory=dict)
    """Slurm's nodes by state."""
    critical: int = 0
    warnings: int = 0

    def as_json(self) -> dict[str, Any]:
        """Return what `top POD --json` prints."""
        return asdict(self)


def frame_of(pod: str, text: str) -> PodFrame:
    """Return the moment that Prometheus' answer tells of, its nodes in their order."""
    try:
        rows = [(dict(row["metric"]), float(row["value"][1])) for row in json.loads(text)["data"]["result"]]
    except (ValueError, KeyError, TypeError, IndexError):
        raise refuse(f"{pod}: its Prometheus answers what is no list of series", exit_code=3) from None
    nodes: dict[str, FrameNode] = {}
    counts: defaultdict[str, dict[str, int]] = defaultdict(dict)
    for labels, value in rows:
        name, host = labels.get("__name__", ""), labels.get("host", "")
        if name in (_JOBS, _NODES):
            state = labels.get("state", "")
            counts[name][state] = counts[name].get(state, 0) + int(value)
        elif name == _ALERT:
            severity = labels.get("severity", "")
            counts[_ALERT][severity] = counts[_ALERT].get(severity, 0) + 1
        if host:
            _take(nodes.setdefault(host, FrameNode(host)), labels, value)
    ordered = sorted(nodes.values(), key=lambda node: natural_key(node.host))
    for node in ordered:
        node.gpus.sort(key=lambda gpu: natural_key(gpu.gpu))
        node.alerts.sort()
        node.ports.sort(key=lambda port: natural_key(port.port))
    alerts = counts[_ALERT]
    return PodFrame(pod, ordered, counts[_JOBS], counts[_NODES], alerts.get("critical", 0), alerts.get("warning", 0))


def _take(node: FrameNode, labels: Mapping[str, str], value: float) -> None:
    name, port = labels["__name__"], f"{labels.get('device', '')}/{labels.get('port', '1')}"
    if name in _NODE:
        setattr(node, _NODE[name], value)
    elif name == _GPU:
        gpu = ".".join(filter(None, (labels.get("gpu", ""), labels.get("mig", ""))))
        node.gpus.append(FrameGpu(gpu, value, labels.get("run") or None, labels.get("user") or None))
    elif name == _LINK:
        node.links += 1
        node.links_up += int(value > 0)
        node.port(port).up = value > 0
    elif name == _ALERT:
        if labels.get("alertname", "") not in node.alerts:
            node.alerts.append(labels.get("alertname", ""))
        if labels.get("device"):
            node.port(port).alerts.append(labels.get("alertname", ""))
    elif name == _UP:
        node.up = value > 0
