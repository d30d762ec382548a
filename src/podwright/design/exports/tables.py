"""Plain tables for people with a spreadsheet: every cable, the bill of materials, every address."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from podwright.design.exports.port_names import PortNames
from podwright.design.growth import Growth
from podwright.design.plan import Design
from podwright.design.wiring import Cable

CABLE_HEAD = (
    *("label", "fabric", "kind", "rack_a", "u_a", "device_a", "port_a"),
    *("rack_b", "u_b", "device_b", "port_b", "length_m", "medium"),
)


def write_csv(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue()


def cable_plan(design: Design) -> str:
    """Return every cable with the rack, unit and port of both ends, its length and its label."""
    names, floor = PortNames(design), design.floor
    rows = []
    for cable, length, medium in design.laid:
        port_a, port_b = names.ends(cable)
        label = f"{cable.a}:{port_a} - {cable.b}:{port_b}"
        a = (*floor.rack_and_unit(cable.a), cable.a, port_a)
        b = (*floor.rack_and_unit(cable.b), cable.b, port_b)
        length_m = "" if length is None else f"{length:g}"
        rows.append((label, cable.fabric, cable.kind, *a, *b, length_m, medium))
    return write_csv(CABLE_HEAD, rows)


def bill_of_materials(design: Design) -> str:
    """Return the bill of materials."""
    rows = [
        (item.count, item.kind, item.item, _number(item.price), _number(item.amount), _number(item.power_w))
        for item in design.bill()
    ]
    currency = design.pod.costs.currency
    return write_csv(("count", "kind", "item", f"price_{currency}", f"amount_{currency}", "power_w"), rows)


def addresses(design: Design) -> str:
    """Return every address with its network and VLAN."""
    rows: list[tuple[object, ...]] = []
    for network in design.networks:
        for device, address in network.addresses.items():
            rows.append((device, network.name, network.vlan or "", f"{address}/{network.subnet.prefixlen}"))
    return write_csv(("device", "network", "vlan", "address"), rows)


def growth_plan(growth: Growth, design: Design) -> str:
    """Return the cables that growth adds, moves and takes away, in the order in which hands do it."""
    names = PortNames(design)

    def cells(cable: Cable) -> tuple[str, ...]:
        port_a, port_b = names.ends(cable)
        return cable.fabric, cable.kind, cable.a, port_a, cable.b, port_b

    rows = [("remove", *cells(cable), "", "", "", "") for cable in growth.removed]
    rows += [("move", *cells(old), new.a, str(new.a_port), new.b, str(new.b_port)) for old, new in growth.moved]
    rows += [("add", *cells(cable), "", "", "", "") for cable in growth.added]
    head = ("what", "fabric", "kind", "device_a", "port_a", "device_b", "port_b")
    return write_csv((*head, "new_device_a", "new_port_a", "new_device_b", "new_port_b"), rows)


def _number(value: float | None) -> str:
    if value is None:
        return ""
    # From a million on `g` would round, and write 1e+06.
    return f"{value:g}" if value < 1e6 else f"{value:.0f}"
