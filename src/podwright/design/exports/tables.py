"""Plain tables for people with a spreadsheet: every cable, the bill of materials, every address."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from podwright.design.csv_text import write_csv
from podwright.design.floor import Floor
from podwright.design.growth import Growth
from podwright.design.plan import Blueprint
from podwright.design.plugs import CageGroup
from podwright.design.sockets import Sockets
from podwright.design.wiring import Cable
from podwright.spec.hostlist import natural_key

CABLE_HEAD = (
    *("label", "cable", "fabric", "kind", "bundle", "rack_a", "u_a", "device_a", "port_a", "panel_a"),
    *("rack_b", "u_b", "device_b", "port_b", "panel_b", "length_m", "medium"),
)
LABEL_HEAD = ("near", "far", "bundle", "length", "cable")


def cable_plan(design: Blueprint) -> str:
    """Return every link with the rack, unit and port of both ends, its length, its bundle and its label.

    The column `cable` differs from `label` where two links share one cable: it is the label of the first of them.
    """
    floor, sockets, shared = design.floor, design.sockets, _shared(design)
    rows: list[tuple[object, ...]] = []
    for cable, length, medium in design.laid:
        a, b = ((*floor.rack_and_unit(end.device), end.device, end.name, end.panel) for end in sockets.ends(cable))
        labels = sockets.label(cable), sockets.label(shared.get(cable, cable))
        rows.append((*labels, cable.fabric, cable.kind, bundle_of(floor, cable), *a, *b, _number(length), medium))
    return write_csv(CABLE_HEAD, rows)


def _shared(design: Blueprint) -> dict[Cable, Cable]:
    """Return the first link of the cable that a link shares with another."""
    shared: dict[Cable, Cable] = {}
    for group in design.cage_groups:
        if group.is_shared:
            first = group.cables[0].cable
            shared |= {laid.cable: first for laid in group.cables}
    return shared


def label_list(design: Blueprint) -> str:
    """Return the labels for a label printer: one row for each plug, this end first."""
    return write_csv(LABEL_HEAD, label_rows(design))


def label_rows(design: Blueprint) -> list[tuple[str, ...]]:
    """Return the labels, a row for each plug."""
    rows: list[tuple[str, ...]] = []
    for group in design.cage_groups:
        for laid in group.cables[:1] if group.is_shared else group.cables:
            rest = bundle_of(design.floor, laid.cable), laid.metres, design.sockets.label(laid.cable)
            rows += [(near, far, *rest) for near, far in _plugs(design, group, laid.cable)]
    return rows


def _plugs(design: Blueprint, group: CageGroup, cable: Cable) -> Iterator[tuple[str, str]]:
    """Yield each plug of a cable with what is at its other end; a shared one has a plug for each of its cages."""
    floor = design.floor
    if not group.is_shared:
        a, b = (_end(floor, socket.device, socket.panel) for socket in design.sockets.ends(cable))
        yield from ((a, b), (b, a))
        return
    twins = [_end(floor, *cage) for cage, sockets in group.cages.items() if len(sockets) > 1]
    branches = [_end(floor, *cage) for cage, sockets in group.cages.items() if len(sockets) == 1]
    if not branches:
        yield from ((twins[0], twins[1]), (twins[1], twins[0]))
        return
    yield twins[0], " and ".join(branches)
    yield from ((branch, twins[0]) for branch in branches)


def bundle_list(design: Blueprint) -> str:
    """Return how many cables of which kind and length go from rack to rack, the largest bundles first."""
    counted: Counter[tuple[str, str, str, str]] = Counter()
    sizes: Counter[str] = Counter()
    for cable, length, medium in design.laid:
        bundle = bundle_of(design.floor, cable)
        counted[(bundle, cable.fabric, medium, _number(length))] += 1
        sizes[bundle] += 1
    ordered = sorted(counted, key=lambda key: (-sizes[key[0]], natural_key(key[0]), key[1], key[2], float(key[3] or 0)))
    rows = [(key[0], sizes[key[0]], *key[1:], counted[key]) for key in ordered]
    return write_csv(("bundle", "cables_in_bundle", "fabric", "medium", "length_m", "cables"), rows)


def bundle_of(floor: Floor, cable: Cable) -> str:
    """Return the racks between which a cable runs: A01-A03, or A01 inside one; nothing where an end has no place."""
    racks = {str(floor.rack_and_unit(device)[0]) for device in (cable.a, cable.b)}
    if "" in racks:
        return ""
    # The row after Z is AA: of two names the shorter one comes first.
    return "-".join(sorted(racks, key=lambda rack: (len(rack), rack)))


def _end(floor: Floor, device: str, panel: str) -> str:
    return f"{device} {panel} {floor.spot(device)}".rstrip()


def bill_of_materials(design: Blueprint) -> str:
    """Return the bill of materials."""
    rows: list[tuple[object, ...]] = []
    for item in design.bill():
        numbers = map(_number, (item.price, item.amount, item.power_w))
        rows.append((item.count, item.kind, item.item, *numbers, item.ends or ""))
    currency = design.pod.costs.currency
    return write_csv(("count", "kind", "item", f"price_{currency}", f"amount_{currency}", "power_w", "ports"), rows)


def addresses(design: Blueprint) -> str:
    """Return every address with its network and VLAN."""
    rows: list[tuple[object, ...]] = []
    for network in design.networks:
        for device, address in network.addresses.items():
            rows.append(
                (
                    device,
                    network.name,
                    network.vlan or "",
                    f"{address}/{network.subnet.prefixlen}",
                    f"{network.address6(device)}/64",
                )
            )
    return write_csv(("device", "network", "vlan", "address", "address6"), rows)


def growth_plan(growth: Growth) -> str:
    """Return the cables that growth adds, moves and takes away, in the order in which hands do it."""
    before, after = growth.old.sockets, growth.new.sockets

    def cells(cable: Cable, sockets: Sockets) -> tuple[str, ...]:
        a, b = sockets.ends(cable)
        return sockets.label(cable), cable.fabric, cable.kind, cable.a, a.panel, cable.b, b.panel

    rows = [("remove", *cells(cable, before), "") for cable in growth.removed]
    rows += [("move", *cells(cable, before), after.label(moved)) for cable, moved in growth.moved]
    rows += [("add", *cells(cable, after), "") for cable in growth.added]
    head = ("what", "label", "fabric", "kind", "device_a", "panel_a", "device_b", "panel_b", "new_label")
    return write_csv(head, rows)


def _number(value: float | None) -> str:
    if value is None:
        return ""
    # From a million on `g` would round, and write 1e+06.
    return f"{value:g}" if value < 1e6 else f"{value:.0f}"
