"""Plain tables for people with a spreadsheet: every cable, the bill of materials, every address."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from podwright.design.exports.port_names import PortNames
from podwright.design.floor import Floor
from podwright.design.growth import Growth
from podwright.design.plan import Design
from podwright.design.plugs import CageGroup
from podwright.design.wiring import Cable
from podwright.spec.hostlist import natural_key

CABLE_HEAD = (
    *("label", "cable", "fabric", "kind", "bundle", "rack_a", "u_a", "device_a", "port_a", "panel_a"),
    *("rack_b", "u_b", "device_b", "port_b", "panel_b", "length_m", "medium"),
)
LABEL_HEAD = ("near", "far", "bundle", "length", "cable")


def write_csv(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a CSV file."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(head)
    writer.writerows(rows)
    return text.getvalue()


def cable_plan(design: Design) -> str:
    """Return every link with the rack, unit and port of both ends, its length, its bundle and its label.

    The column `cable` differs from `label` where two links share one cable: it is the label of the first of them.
    """
    names, floor, shared = PortNames(design), design.floor, _shared(design)
    rows = []
    for cable, length, medium in design.laid:
        port_a, port_b = names.ends(cable)
        panel_a, panel_b = names.panels(cable)
        a = (*floor.rack_and_unit(cable.a), cable.a, port_a, panel_a)
        b = (*floor.rack_and_unit(cable.b), cable.b, port_b, panel_b)
        length_m = "" if length is None else f"{length:g}"
        first = names.label(shared.get(cable, cable))
        rows.append(
            (names.label(cable), first, cable.fabric, cable.kind, bundle_of(floor, cable), *a, *b, length_m, medium)
        )
    return write_csv(CABLE_HEAD, rows)


def _shared(design: Design) -> dict[Cable, Cable]:
    """Return the first link of the cable that a link shares with another."""
    shared: dict[Cable, Cable] = {}
    for group in design.cage_groups:
        if group.is_shared:
            first = group.cables[0].cable
            shared |= {laid.cable: first for laid in group.cables}
    return shared


def label_list(design: Design) -> str:
    """Return the labels for a label printer: one row for each plug, this end first."""
    names, floor = PortNames(design), design.floor
    rows: list[tuple[str, ...]] = []
    for group in design.cage_groups:
        if group.is_shared:
            rows += _plug_labels(design, group, names)
            continue
        for cable, length, _ in group.cables:
            panel_a, panel_b = names.panels(cable)
            a, b = (_end(floor, cable.a, panel_a), _end(floor, cable.b, panel_b))
            rest = (bundle_of(floor, cable), _metres(length), names.label(cable))
            rows += [(a, b, *rest), (b, a, *rest)]
    return write_csv(LABEL_HEAD, rows)


def _plug_labels(design: Design, group: CageGroup, names: PortNames) -> Iterator[tuple[str, ...]]:
    """Yield the labels of a cable that several links share: one for each cage that it is plugged into."""
    cable, length, _ = group.cables[0]
    rest = (bundle_of(design.floor, cable), _metres(length), names.label(cable))
    twins = [_end(design.floor, *place) for place, sockets in group.cages.items() if len(sockets) > 1]
    branches = [_end(design.floor, *place) for place, sockets in group.cages.items() if len(sockets) == 1]
    if not branches:
        yield twins[0], twins[1], *rest
        yield twins[1], twins[0], *rest
        return
    yield twins[0], " and ".join(branches), *rest
    for branch in branches:
        yield branch, twins[0], *rest


def _metres(length: float | None) -> str:
    return "" if length is None else f"{length:g} m"


def bundle_list(design: Design) -> str:
    """Return how many cables of which kind and length go from rack to rack, the largest bundles first."""
    counted: Counter[tuple[str, str, str, str]] = Counter()
    sizes: Counter[str] = Counter()
    for cable, length, medium in design.laid:
        bundle = bundle_of(design.floor, cable)
        counted[(bundle, cable.fabric, medium, "" if length is None else f"{length:g}")] += 1
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
    rack, unit = floor.rack_and_unit(device)
    where = f" {rack} U{unit}" if rack else ""
    return f"{device} {panel}{where}"


def bill_of_materials(design: Design) -> str:
    """Return the bill of materials."""
    rows = [
        (
            *(item.count, item.kind, item.item),
            *(_number(item.price), _number(item.amount), _number(item.power_w)),
            item.ends or "",
        )
        for item in design.bill()
    ]
    currency = design.pod.costs.currency
    return write_csv(("count", "kind", "item", f"price_{currency}", f"amount_{currency}", "power_w", "ports"), rows)


def addresses(design: Design) -> str:
    """Return every address with its network and VLAN."""
    rows: list[tuple[object, ...]] = []
    for network in design.networks:
        for device, address in network.addresses.items():
            rows.append((device, network.name, network.vlan or "", f"{address}/{network.subnet.prefixlen}"))
    return write_csv(("device", "network", "vlan", "address"), rows)


def growth_plan(growth: Growth, old: Design, new: Design) -> str:
    """Return the cables that growth adds, moves and takes away, in the order in which hands do it."""
    before, after = PortNames(old), PortNames(new)

    def cells(cable: Cable, names: PortNames) -> tuple[str, ...]:
        panel_a, panel_b = names.panels(cable)
        return names.label(cable), cable.fabric, cable.kind, cable.a, panel_a, cable.b, panel_b

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
