"""What the two ends of a cable are called: by programs (`17`, `mlx5_0`), and on the panel (`9/1`, `OSFP4P2`)."""

from __future__ import annotations

from podwright.design.plan import Design
from podwright.design.wiring import Cable


class PortNames:
    """Names ports; made once for a design."""

    def __init__(self, design: Design) -> None:
        self._sockets = design.sockets

    def name(self, device: str, fabric: str, port: int) -> str:
        """Return what programs call a port: `17` of a switch, `mlx5_0` of a host, `port1` and `mgmt1` of others."""
        return self._sockets.at(device, fabric, port).name

    def is_switch(self, device: str) -> bool:
        """Return whether a device is a switch."""
        return self._sockets.is_switch(device)

    def ends(self, cable: Cable) -> tuple[str, str]:
        """Return what programs call the ports of both ends."""
        a, b = self._sockets.ends(cable)
        return a.name, b.name

    def panels(self, cable: Cable) -> tuple[str, str]:
        """Return what the panels call the ports of both ends."""
        a, b = self._sockets.ends(cable)
        return a.panel, b.panel

    def label(self, cable: Cable) -> str:
        """Return what is printed on a cable: both ends, as the panels have them."""
        a, b = self.panels(cable)
        return f"{cable.a}:{a} - {cable.b}:{b}"
