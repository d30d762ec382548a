"""What the two ends of a cable are called outside: a port of a switch has a number, a port of a host a name."""

from __future__ import annotations

from podwright.design.plan import Design
from podwright.design.requirements import ports_of
from podwright.design.speeds import FASTEST_TWISTED_GBPS
from podwright.design.wiring import Cable

# A block of a storage system is on two fabrics: each has a word of its own, so that no two ports have one name.
_OTHERS = {"storage": "port", "management": "mgmt"}


class PortNames:
    """Names ports; made once for a design, since a large one has some hundred thousand of them."""

    def __init__(self, design: Design) -> None:
        self._switches = {switch.name: switch.fabric for switch in design.switches}
        self._hosts = design.requirements.models
        self._named: dict[tuple[int, str], list[str]] = {}

    def name(self, device: str, fabric: str, port: int) -> str:
        """Return the name of a port: `17` of a switch, `mlx5_0` of a host, `port1` and `mgmt1` of anything else."""
        own = self._switches.get(device)
        if own is not None:
            return str(port) if own == fabric else "mgmt0"
        if device in self._hosts:
            names = self._of(device, fabric)
            if port <= len(names):
                return names[port - 1]
        elif fabric == "compute":
            return f"mlx5_{port - 1}"
        return f"{_OTHERS.get(fabric, 'port')}{port}"

    def is_switch(self, device: str) -> bool:
        """Return whether a device is a switch."""
        return device in self._switches

    def ends(self, cable: Cable) -> tuple[str, str]:
        """Return the port names of both ends."""
        return self.name(cable.a, cable.fabric, cable.a_port), self.name(cable.b, cable.fabric, cable.b_port)

    def label(self, cable: Cable) -> str:
        """Return what is printed on a cable: both ends."""
        a, b = self.ends(cable)
        return f"{cable.a}:{a} - {cable.b}:{b}"

    def _of(self, host: str, fabric: str) -> list[str]:
        model = self._hosts[host]
        key = (id(model), fabric)
        if key not in self._named:
            self._named[key] = ports_of(model, fabric)
            if fabric == "management":
                self._named[key] = _management(host, self)
        return self._named[key]

    def slow_and_fast(self, host: str) -> tuple[list[str], list[str]]:
        """Return a host's management ports: those on twisted pair, and faster ones."""
        nics = [nic for nic in self._hosts[host].nics if nic.kind == "management"]
        named = list(zip(nics, ports_of(self._hosts[host], "management"), strict=True))
        slow = [name for nic, name in named if nic.speed_gbps <= FASTEST_TWISTED_GBPS]
        return slow, [name for nic, name in named if nic.speed_gbps > FASTEST_TWISTED_GBPS]


def _management(host: str, names: PortNames) -> list[str]:
    """Return the ports in the order in which they are wired: twisted pair, the BMC, fast ones."""
    slow, fast = names.slow_and_fast(host)
    return [*slow, "bmc", *fast]
