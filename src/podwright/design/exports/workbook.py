"""The cable plan as a workbook: a sheet for each rack with every plug in it, and one of labels to print."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from podwright.design.exports.tables import LABEL_HEAD, bundle_of, label_rows
from podwright.design.floor import Rack
from podwright.design.plan import Blueprint
from podwright.design.sockets import Socket
from podwright.design.xlsx import Cell, Sheet, write_xlsx

RACK_HEAD = (
    "rack",
    "row",
    "place",
    "units used",
    "power kW",
    "limit kW",
    "left kW",
    "heat BTU/h",
    "weight kg",
    "plugs",
)
PLUG_HEAD = (
    *("unit", "device", "port", "far rack", "far unit", "far device", "far port"),
    *("label", "bundle", "length m", "made of", "done"),
)
# What has no place, such as the site's network, has a sheet of its own.
NOWHERE = "no rack"


def cable_workbook(design: Blueprint) -> bytes:
    """Return the workbook: all racks, each rack, the labels."""
    plugs = _plugs(design)
    racks = [_facts(rack, len(plugs[rack.name])) for rack in design.floor.racks]
    name = design.pod.name
    sheets = [Sheet("racks", f"{name}: racks", RACK_HEAD, racks)]
    for rack in [*(rack.name for rack in design.floor.racks), NOWHERE]:
        if plugs[rack]:
            sheets.append(Sheet(rack, f"{name}: plugs in {rack}", PLUG_HEAD, sorted(plugs[rack], key=_order)))
    sheets.append(Sheet("labels", f"{name}: labels", LABEL_HEAD, label_rows(design)))
    return write_xlsx(sheets)


def _facts(rack: Rack, plugs: int) -> tuple[Cell, ...]:
    power, limit, left = (round(value / 1000, 1) for value in (rack.power_w, rack.limit_w, rack.headroom_w))
    numbers = rack.used_units, power, limit, left, round(rack.heat_btu_h), round(rack.weight_kg), plugs
    return rack.name, rack.name.rstrip("0123456789"), rack.column + 1, *numbers


def _plugs(design: Blueprint) -> dict[str, list[tuple[Cell, ...]]]:
    """Return every plug by the rack it is in, with where the other end of its cable is."""
    plugs: dict[str, list[tuple[Cell, ...]]] = defaultdict(list)
    floor, sockets = design.floor, design.sockets
    for cable, length, medium in design.laid:
        a, b = sockets.ends(cable)
        rest = sockets.label(cable), bundle_of(floor, cable), length, medium, None
        for near, far in ((a, b), (b, a)):
            rack, unit = floor.rack_and_unit(near.device)
            place = unit or None, near.device, _port(near), *floor.rack_and_unit(far.device), far.device, _port(far)
            plugs[rack or NOWHERE].append((*place, *rest))
    return plugs


def _port(socket: Socket) -> str:
    return socket.panel if socket.name == socket.panel else f"{socket.panel} ({socket.name})"


def _order(plug: Sequence[Cell]) -> tuple[int, str, str]:
    """Order plugs from the top of a rack down, device by device."""
    unit = plug[0] if isinstance(plug[0], int) else 0
    return -unit, str(plug[1]), str(plug[2])
