"""What the operating systems of Ethernet switches call their ports.

Cumulus Linux says `swp9s1` for the second part of cage 9; SONiC `Ethernet68`, after the first lane, and `etp9b` to
neighbours (port_config.ini of SN5600 in sonic-buildimage).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podwright.spec import SwitchModel

# Lanes of a cage; those that are not named have four.
LANES = {"osfp": 8, "qsfp-dd": 8}
FEW_LANES = 4
PARTS = "abcdefgh"

_CUMULUS = re.compile(r"swp(?P<cage>\d+)(?:s(?P<part>\d+))?")
_SONIC = re.compile(r"Ethernet(?P<lane>\d+)")
_SONIC_ALIAS = re.compile(r"etp(?P<cage>\d+)(?P<part>[a-h])?")


def cumulus_port(switch: SwitchModel, port: int) -> str:
    """Return what Cumulus Linux calls a port: `swp17`, or `swp9s0` where its cage is split."""
    if switch.cage_ports == 1:
        return f"swp{port}"
    cage, lane = divmod(port - 1, switch.cage_ports)
    return f"swp{cage + 1}s{lane}"


def sonic_port(switch: SwitchModel, port: int) -> str:
    """Return what SONiC calls a port: `Ethernet` with the number of its first lane."""
    return f"Ethernet{(port - 1) * _lanes(switch) // switch.cage_ports}"


def port_number(switch: SwitchModel, name: str) -> int | None:
    """Return the number of a port that either system calls so; none for a name that no port of the fabric has."""
    if match := _SONIC.fullmatch(name):
        number, rest = divmod(int(match["lane"]) * switch.cage_ports, _lanes(switch))
        if rest:
            return None
        return _existing(switch, number + 1)
    if match := _CUMULUS.fullmatch(name):
        return _split_port(switch, int(match["cage"]), int(match["part"] or 0))
    if match := _SONIC_ALIAS.fullmatch(name):
        return _split_port(switch, int(match["cage"]), PARTS.index(match["part"] or PARTS[0]))
    return None


def _split_port(switch: SwitchModel, cage: int, lane: int) -> int | None:
    if lane >= switch.cage_ports:
        return None
    return _existing(switch, (cage - 1) * switch.cage_ports + lane + 1)


def _existing(switch: SwitchModel, number: int) -> int | None:
    if 1 <= number <= switch.ports:
        return number
    return None


def _lanes(switch: SwitchModel) -> int:
    return LANES.get(switch.connector or "", FEW_LANES)
