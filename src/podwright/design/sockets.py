"""Ports as hands find them: the cage a plug goes into, the ports that share it, and what the panel calls each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

from podwright.design.racks import switch_model
from podwright.design.requirements import Requirements, ports_of
from podwright.design.speeds import FASTEST_TWISTED_GBPS, TWISTED_PAIR
from podwright.design.wiring import Cable, Switch
from podwright.spec import NodeModel, SwitchModel

# A block of a storage system is on two fabrics: each has a word of its own, so that no two ports have one name.
_OTHERS = {"storage": "port", "management": "mgmt"}


class Socket(NamedTuple):
    """One port: what programs call it and what its panel does, its cage, and how many ports that cage has.

    An empty connector is one that is not known.
    """

    device: str
    name: str
    panel: str
    cage: str
    ports: int
    connector: str

    @property
    def plug(self) -> tuple[str, str]:
        """Return the cage with its device: where one plug goes."""
        return self.device, self.cage


class Sockets:
    """Finds sockets; made once for a design, since a large one has some hundred thousand of them."""

    def __init__(self, requirements: Requirements, switches: Iterable[Switch]) -> None:
        self._switches = {switch.name: (switch.fabric, switch_model(requirements, switch)) for switch in switches}
        managers = {name: model for name, model in requirements.manager_models.items() if model is not None}
        self._hosts = {**requirements.models, **managers}
        self._by_model: dict[tuple[int, str], list[Socket]] = {}
        self._planes = requirements.compute.planes if requirements.compute else 1

    def at(self, device: str, fabric: str, port: int) -> Socket:
        """Return the socket of a device's port on a fabric, counted from 1."""
        if device in self._switches:
            return self._of_switch(device, fabric, port)
        if device in self._hosts:
            sockets = self._of_model(self._hosts[device], fabric)
            if port <= len(sockets):
                return sockets[port - 1]._replace(device=device)
        word = _OTHERS.get(fabric, "port")
        name = f"mlx5_{port - 1}" if fabric == "compute" and device not in self._hosts else f"{word}{port}"
        return Socket(device, name, name, name, 1, "")

    def ends(self, cable: Cable) -> tuple[Socket, Socket]:
        """Return both ends of a cable."""
        return self.at(cable.a, cable.fabric, cable.a_port), self.at(cable.b, cable.fabric, cable.b_port)

    def label(self, cable: Cable) -> str:
        """Return what is printed on a cable: both ends, as the panels have them."""
        a, b = self.ends(cable)
        return f"{cable.a}:{a.panel} - {cable.b}:{b.panel}"

    def is_switch(self, device: str) -> bool:
        """Return whether a device is a switch."""
        return device in self._switches

    def kind_of(self, device: str) -> str:
        """Return whether a switch is one of InfiniBand or of Ethernet; nothing where it is neither, or no switch."""
        model = self._switches[device][1] if device in self._switches else None
        return (model.kind if model else None) or ""

    def _of_switch(self, device: str, fabric: str, port: int) -> Socket:
        own, model = self._switches[device]
        if own != fabric:
            return Socket(device, "mgmt0", "mgmt0", "mgmt0", 1, TWISTED_PAIR)
        panel, cage = panel_of(model, port)
        connector = model.connector or ""
        if port > model.ports:
            # An up-link port is faster than the others, and its connector is another one.
            connector = ""
        return Socket(device, str(port), panel, cage, model.cage_ports, connector)

    def _of_model(self, model: NodeModel, fabric: str) -> list[Socket]:
        key = (id(model), fabric)
        if key not in self._by_model:
            self._by_model[key] = _sockets(model, fabric)
            if fabric == "compute" and self._planes > 1:
                self._by_model[key] = _split(self._by_model[key], self._planes)
        return self._by_model[key]


def panel_of(model: SwitchModel, port: int) -> tuple[str, str]:
    """Return what the panel of a switch calls a port, and the cage: of a twin cage 3 they are 3/1 and 3."""
    if model.cage_ports == 1:
        return str(port), str(port)
    cage, index = divmod(port - 1, model.cage_ports)
    return f"{cage + 1}/{index + 1}", str(cage + 1)


def _split(sockets: Iterable[Socket], planes: int) -> list[Socket]:
    """Return the ports that cages are split into, one for each plane."""
    parts = []
    for socket in sockets:
        for plane in range(1, planes + 1):
            name, panel = f"{socket.name}-p{plane}", f"{socket.panel}/{plane}"
            parts.append(socket._replace(name=name, panel=panel, ports=planes))
    return parts


def _sockets(model: NodeModel, fabric: str) -> list[Socket]:
    """Return the ports of a model in the order in which they are wired: of management twisted pair, the BMC, fast."""
    nics = [nic for nic in model.nics if nic.kind == fabric]
    shared = Counter(nic.cage for nic in model.nics if nic.cage)
    sockets = []
    for nic, name in zip(nics, ports_of(model, fabric), strict=True):
        panel = nic.panel or name
        cage = nic.cage or panel
        sockets.append(Socket("", name, panel, cage, shared[cage] or 1, nic.connector or ""))
    if fabric != "management":
        return sockets
    slow = [socket for socket, nic in zip(sockets, nics, strict=True) if nic.speed_gbps <= FASTEST_TWISTED_GBPS]
    fast = [socket for socket, nic in zip(sockets, nics, strict=True) if nic.speed_gbps > FASTEST_TWISTED_GBPS]
    return [*slow, Socket("", "bmc", "bmc", "bmc", 1, TWISTED_PAIR), *fast]
