"""The pod as NetBox imports it: one CSV file for each of its lists, numbered in the order in which to import them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from podwright.design.exports.port_names import PortNames
from podwright.design.exports.tables import write_csv
from podwright.design.lengths import Laid
from podwright.design.plan import Design
from podwright.design.racks import Device
from podwright.spec import SwitchModel

# Our kind of cable -> NetBox's.
CABLES = {"dac": "dac-passive", "aoc": "aoc", "fibre": "smf", "cat6": "cat6", "unknown": ""}
# A fabric and Gb/s -> NetBox's type of interface.
INFINIBAND = {100: "infiniband-edr", 200: "infiniband-hdr", 400: "infiniband-ndr", 800: "infiniband-xdr"}
ETHERNET = {1: "1000base-t", 10: "10gbase-t", 25: "25gbase-x-sfp28", 100: "100gbase-x-qsfp28", 200: "200gbase-x-qsfp56"}
ETHERNET |= {400: "400gbase-x-osfp"}


def netbox_files(design: Design) -> dict[str, str]:
    """Return the files by their names."""
    site = design.pod.name
    devices: list[tuple[str, int, Device]] = []
    for rack in design.floor.racks:
        devices += [(rack.name, unit, device) for unit, device in rack.devices]
    models = {(device.model, device.rack_units): None for _, _, device in devices}
    roles = sorted({device.kind for _, _, device in devices})
    racks = [(site, rack.name, "active", design.pod.racks.rack_units) for rack in design.floor.racks]
    tables: dict[str, tuple[Sequence[str], Iterable[Sequence[object]]]] = {
        "sites": (("name", "slug", "status"), [(site, site, "active")]),
        "manufacturers": (("name", "slug"), [("Generic", "generic")]),
        "device-roles": (("name", "slug", "color"), [(role, role.replace(" ", "-"), "9e9e9e") for role in roles]),
        "device-types": (
            ("manufacturer", "model", "slug", "u_height"),
            [("Generic", model, model.replace(" ", "-"), height) for model, height in models],
        ),
        "racks": (("site", "name", "status", "u_height"), racks),
        "devices": (
            ("name", "role", "manufacturer", "device_type", "site", "rack", "position", "face", "status"),
            [(d.name, d.kind, "Generic", d.model, site, name, u, "front", "planned") for name, u, d in devices],
        ),
        "interfaces": (("device", "name", "type"), list(_interfaces(design))),
        "cables": (_CABLE_HEAD, list(_cables(design))),
        "vlans": (("vid", "name", "status", "site"), _vlans(design)),
        "prefixes": (("prefix", "status", "site", "vlan", "description"), _prefixes(design)),
    }
    return {f"{number:02d}-{name}.csv": write_csv(*table) for number, (name, table) in enumerate(tables.items(), 1)}


_CABLE_HEAD = (
    *("side_a_device", "side_a_type", "side_a_name", "side_b_device", "side_b_type", "side_b_name"),
    *("type", "status", "label", "length", "length_unit"),
)


def _placed(design: Design) -> Iterable[Laid]:
    """Return the cables that NetBox can import: it knows only devices that stand in a rack."""
    places = design.floor.places
    return (laid for laid in design.laid if laid.cable.a in places and laid.cable.b in places)


def _cables(design: Design) -> Iterable[tuple[object, ...]]:
    names = PortNames(design)
    for cable, length, medium in _placed(design):
        a, b = names.ends(cable)
        sides = (cable.a, "dcim.interface", a, cable.b, "dcim.interface", b)
        yield (*sides, CABLES[medium], "planned", f"{cable.a}:{a} - {cable.b}:{b}", f"{length:g}", "m")


def _interfaces(design: Design) -> Iterable[tuple[str, str, str]]:
    names = PortNames(design)
    kinds = _interface_kinds(design)
    for cable, _, medium in _placed(design):
        kind = ETHERNET[1] if medium == "cat6" else kinds[cable.fabric]
        a, b = names.ends(cable)
        yield cable.a, a, kind
        yield cable.b, b, kind


def _interface_kinds(design: Design) -> dict[str, str]:
    fabric = design.pod.management_fabric()
    switches = {"compute": design.requirements.compute_switch, "storage": design.requirements.storage_switch}
    if fabric is not None:
        switches["management"] = fabric.aggregation
    return {name: _interface_kind(switch) for name, switch in switches.items()}


def _interface_kind(switch: SwitchModel | None) -> str:
    if switch is None:
        return "other"
    known = ETHERNET if switch.kind == "ethernet" else INFINIBAND
    return known.get(int(switch.speed_gbps or 0), "other")


def _vlans(design: Design) -> list[tuple[object, ...]]:
    site = design.pod.name
    return [(network.vlan, network.name, "active", site) for network in design.networks if network.vlan]


def _prefixes(design: Design) -> list[tuple[object, ...]]:
    site = design.pod.name
    return [(network.subnet, "active", site, network.vlan or "", network.purpose) for network in design.networks]
