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
    names, places = PortNames(design), design.floor.places
    rows = []
    for cable, length, medium in design.laid:
        a, b = places.get(cable.a), places.get(cable.b)
        port_a, port_b = names.ends(cable)
        rows.append(
            (
                f"{cable.a}:{port_a} - {cable.b}:{port_b}",
                cable.fabric,
                cable.kind,
                a.rack if a else "",
                a.unit if a else "",
                cable.a,
                port_a,
                b.rack if b else "",
                b.unit if b else "",
                cable.b,
                port_b,
                "" if length is None else f"{length:g}",
                medium,
            )
        )
    return write_csv(CABLE_HEAD, rows)


def bill_of_materials(design: Design) -> str:
    """Return the bill of materials."""
    rows = [
        (one.count, one.kind, one.item, _number(one.price), _number(one.amount), _number(one.power_w))
        for one in design.bill()
    ]
    currency = design.pod.costs.currency
    return write_csv(("count", "kind", "item", f"price_{currency}", f"amount_{currency}", "power_w"), rows)


def addresses(design: Design) -> str:
    """Return every address with its network and VLAN."""
    rows = [
        (device, network.name, network.vlan or "", f"{address}/{network.subnet.prefixlen}")
        for network in (design.management.networks if design.management else [])
        for device, address in network.addresses.items()
    ]
    return write_csv(("device", "network", "vlan", "address"), rows)


def growth_plan(growth: Growth, design: Design) -> str:
    """Return the cables that growth adds, moves and takes away, in the order in which hands do it."""
    names = PortNames(design)

    def words(cable: Cable) -> tuple[str, ...]:
        port_a, port_b = names.ends(cable)
        return cable.fabric, cable.kind, cable.a, port_a, cable.b, port_b

    rows = [("remove", *words(cable), "", "", "", "") for cable in growth.removed]
    rows += [("move", *words(old), new.a, str(new.a_port), new.b, str(new.b_port)) for old, new in growth.moved]
    rows += [("add", *words(cable), "", "", "", "") for cable in growth.added]
    head = ("what", "fabric", "kind", "device_a", "port_a", "device_b", "port_b")
    return write_csv((*head, "new_device_a", "new_port_a", "new_device_b", "new_port_b"), rows)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:g}" if value < 1e6 else f"{value:.0f}"
