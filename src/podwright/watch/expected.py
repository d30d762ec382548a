"""What each host should be, as its exporter tells Prometheus: which ports the design cables, how fast, and where to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from podwright.design import Design
from podwright.spec import Refusal

if TYPE_CHECKING:
    from podwright.spec import Pod

_BYTES_OF_GBIT = 1e9 / 8
# What a card of one port calls it; the library names a card for each port.
_PORT = "1"


def expected_ports(pod: Pod) -> Mapping[str, list[dict[str, Any]]]:
    """Return the ports of each host; none where the pod's fabrics cannot be designed, or its cards have no names."""
    try:
        design = Design.of(pod)
    except Refusal:
        return {}
    named: dict[str, dict[str, float]] = {}
    for group in pod.nodes:
        speeds = {nic.name: nic.speed_gbps for nic in group.model.nics if nic.name}
        named |= dict.fromkeys(group.hosts, speeds)
    ports: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for wired in design.wired.values():
        for cable in wired.cables:
            if cable.a not in named:
                continue
            device = design.sockets.at(cable.a, cable.fabric, cable.a_port).name
            if device in named[cable.a]:
                speed = named[cable.a][device] * _BYTES_OF_GBIT
                row = {"device": device, "port": _PORT, "bytes_per_second": speed, "leaf": cable.b}
                ports[cable.a].append(row)
    return ports
