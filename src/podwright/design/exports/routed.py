"""The switches of an Ethernet fabric as those who write their commands see them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podwright.design.ethernet import HostLink, Router
from podwright.design.plan import Blueprint

if TYPE_CHECKING:
    from podwright.spec import SwitchModel


@dataclass(frozen=True, slots=True)
class RoutedSwitch:
    """One switch: its numbers, its ports to hosts, what each of those is called, and its ports that speak BGP."""

    router: Router
    model: SwitchModel
    links: tuple[HostLink, ...]
    far_ends: tuple[str, ...]
    sessions: tuple[int, ...]

    @property
    def name(self) -> str:
        """Return what it is called."""
        return self.router.switch.name

    @property
    def cages(self) -> list[int]:
        """Return the cages with a cable in them."""
        ports = [link.cable.b_port for link in self.links] + list(self.sessions)
        return sorted({(port - 1) // self.model.cage_ports + 1 for port in ports})


def routed_switches(design: Blueprint) -> Iterator[RoutedSwitch]:
    """Yield the switches of an Ethernet compute fabric; none for another one."""
    model, numbers = design.requirements.compute_switch, design.underlay
    if model is None or numbers is None:
        return
    links: dict[str, list[HostLink]] = {}
    for link in numbers.links:
        links.setdefault(link.cable.b, []).append(link)
    for router in numbers.routers:
        own = tuple(links.get(router.switch.name, ()))
        far_ends = tuple(f"{link.cable.a} {design.sockets.ends(link.cable)[0].name}" for link in own)
        yield RoutedSwitch(router, model, own, far_ends, numbers.sessions.get(router.switch.name, ()))


def ranges(numbers: list[int], prefix: str = "") -> str:
    """Return `1-8,33`, or with a prefix `swp1-8,swp33`: neighbours in one part."""
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][1] + 1:
            parts[-1][1] = number
        else:
            parts.append([number, number])
    return ",".join(f"{prefix}{first}" if first == last else f"{prefix}{first}-{last}" for first, last in parts)
