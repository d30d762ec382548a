"""The pod as NetBox imports it: one CSV file for each of its lists, numbered in the order in which to import them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter

from podwright.design.csv_text import write_csv
from podwright.design.floor import Device
from podwright.design.lengths import Laid
from podwright.design.plan import Blueprint
from podwright.design.racks import model_name, switch_model
from podwright.spec import SwitchModel

# Our kind of cable -> NetBox's; a fibre whose kind is not known has none.
CABLES = {"dac": "dac-passive", "aoc": "aoc", "cat6": "cat6", "multimode": "mmf", "single-mode": "smf"}
# Each network has a colour, of a set that colour-blind people tell apart (Okabe and Ito); what is on none is grey.
COLOURS = {"compute": "0072b2", "storage": "e69f00", "management": "009e73"}
GREY = "9e9e9e"
# How the titles of the hardware library begin.
MAKERS = ("NVIDIA", "Mellanox", "DDN", "NetApp", "Pure Storage", "IBM", "Dell", "Supermicro", "HPE", "Lenovo")
NO_MAKER = "Generic"
PDU = Device("", "power feed", "pdu", 0, None)
# A fabric and Gb/s -> NetBox's type of interface. Up to 4.6 a type of InfiniBand is one lane of it, whatever
# the port has: the speed stands in a column of its own.
INFINIBAND = {100: "infiniband-edr", 200: "infiniband-hdr", 400: "infiniband-ndr", 800: "infiniband-xdr"}
ETHERNET = {1: "1000base-t", 10: "10gbase-t", 25: "25gbase-x-sfp28", 100: "100gbase-x-qsfp28", 200: "200gbase-x-qsfp56"}
ETHERNET |= {400: "400gbase-x-osfp", 800: "800gbase-x-osfp"}


# The columns of each file, in the order of import, as NetBox's forms have them from 4.2 on.
COLUMNS: dict[str, tuple[str, ...]] = {
    "sites": ("name", "slug", "status"),
    "manufacturers": ("name", "slug"),
    "device-roles": ("name", "slug", "color"),
    "device-types": ("manufacturer", "model", "slug", "u_height", "weight", "weight_unit"),
    "racks": ("site", "name", "status", "width", "u_height"),
    "devices": ("name", "role", "manufacturer", "device_type", "site", "rack", "position", "face", "status"),
    "interfaces": ("device", "name", "label", "type", "speed"),
    "cables": (
        *("side_a_device", "side_a_type", "side_a_name", "side_b_device", "side_b_type", "side_b_name"),
        *("type", "status", "label", "color", "length", "length_unit"),
    ),
    "vlans": ("vid", "name", "status", "site"),
    "prefixes": ("prefix", "status", "vlan_site", "vlan", "description"),
}
# Forms of older versions that differ; their files lie in a folder of that name.
OLDER_COLUMNS: dict[str, dict[str, tuple[str, ...]]] = {
    "before-4.2": {"prefixes": ("prefix", "status", "site", "vlan", "description")},
    "before-3.6": {
        "devices": ("name", "device_role", *COLUMNS["devices"][2:]),
    },
}
RACK_WIDTH_INCHES = 19
KBPS_OF_GBPS = 1_000_000

Record = dict[str, object]


def netbox_files(design: Blueprint) -> dict[str, str]:
    """Return the files by their names; each is imported whole or not at all."""
    records = _records(design)
    files = {_file(name): _csv(columns, records[name]) for name, columns in COLUMNS.items()}
    for version, forms in OLDER_COLUMNS.items():
        files |= {f"{version}/{_file(name)}": _csv(columns, records[name]) for name, columns in forms.items()}
    return files


def _file(name: str) -> str:
    return f"{list(COLUMNS).index(name) + 1:02d}-{name}.csv"


def _csv(columns: Sequence[str], records: Iterable[Record]) -> str:
    values = itemgetter(*columns)
    return write_csv(columns, map(values, records))


def _records(design: Blueprint) -> dict[str, list[Record]]:
    """Return what each file holds, by the columns of all versions."""
    site, makers = design.pod.name, _makers(design)
    devices: list[tuple[str, int | str, Device]] = []
    for rack in design.floor.racks:
        devices += [(rack.name, unit, device) for unit, device in rack.devices]
    if design.management is not None:
        # A power feed stands beside the rack units, at no position.
        devices += [(design.floor.places[name].rack, "", replace(PDU, name=name)) for name in design.floor.pdus]
    models = {device.model: device for _, _, device in devices}
    roles = sorted({device.kind for _, _, device in devices})
    named = sorted({makers.get(model, NO_MAKER) for model in models})
    return {
        "sites": [{"name": site, "slug": site, "status": "active"}],
        "manufacturers": [{"name": maker, "slug": _slug(maker)} for maker in named],
        "device-roles": [{"name": role, "slug": _slug(role), "color": _colour(role)} for role in roles],
        "device-types": [_device_type(makers.get(device.model, NO_MAKER), device) for device in models.values()],
        "racks": [
            {
                "site": site,
                "name": rack.name,
                "status": "active",
                "width": RACK_WIDTH_INCHES,
                "u_height": design.pod.racks.rack_units,
            }
            for rack in design.floor.racks
        ],
        "devices": [
            {"name": device.name, "role": device.kind, "device_role": device.kind, "site": site, "status": "planned"}
            | {"manufacturer": makers.get(device.model, NO_MAKER), "device_type": device.model}
            | {"rack": rack, "position": unit, "face": "front" if unit else ""}
            for rack, unit, device in devices
        ],
        "interfaces": list(_interfaces(design)),
        "cables": list(_cables(design)),
        "vlans": _vlans(design),
        "prefixes": _prefixes(design),
    }


def _makers(design: Blueprint) -> dict[str, str]:
    """Return who makes each model, as its title in the library begins."""
    models = [*(group.model for group in design.pod.nodes), *design.requirements.manager_models.values()]
    titles = {model.name or "node": model.title for model in models if model is not None}
    for switch in design.switches:
        model = switch_model(design.requirements, switch)
        titles[model_name(model)] = model.title
    for system in design.requirements.systems:
        if system.storage.model is not None:
            titles[system.storage.model.name or system.storage.kind] = system.storage.model.title
    return {name: _maker(title or "") for name, title in titles.items()}


def _maker(title: str) -> str:
    return next((maker for maker in MAKERS if title.startswith(maker)), NO_MAKER)


def _colour(text: str) -> str:
    """Return the colour of the network that a kind of device begins with."""
    return COLOURS.get(text.partition(" ")[0], GREY)


def _device_type(maker: str, device: Device) -> Record:
    return {
        "manufacturer": maker,
        "model": device.model,
        "slug": _slug(device.model),
        "u_height": device.rack_units,
        "weight": device.weight_kg or "",
        "weight_unit": "kg" if device.weight_kg else "",
    }


def _slug(text: str) -> str:
    """Return what NetBox takes as a short name: letters, digits and dashes."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _placed(design: Blueprint) -> Iterable[Laid]:
    """Return the cables that NetBox can import: it knows only devices that stand in a rack."""
    places = design.floor.places
    return (laid for laid in design.laid if laid.cable.a in places and laid.cable.b in places)


def _cables(design: Blueprint) -> Iterator[Record]:
    modes = design.fibre_modes
    for cable, length, medium in _placed(design):
        a, b = design.sockets.ends(cable)
        yield {
            "side_a_device": cable.a,
            "side_a_type": "dcim.interface",
            "side_a_name": a.name,
            "side_b_device": cable.b,
            "side_b_type": "dcim.interface",
            "side_b_name": b.name,
            "type": CABLES.get(modes.get(cable, medium), ""),
            "status": "planned",
            "label": design.sockets.label(cable),
            "color": _colour(cable.fabric),
            "length": f"{length:g}",
            "length_unit": "m",
        }


def _interfaces(design: Blueprint) -> Iterator[Record]:
    switches = _switches(design)
    for cable, _, medium in _placed(design):
        kind, gbps = ETHERNET[1], 1.0
        if medium != "cat6":
            kind, gbps = _interface_kind(switches.get(cable.fabric))
        speed = f"{gbps * KBPS_OF_GBPS:.0f}" if gbps else ""
        for end in design.sockets.ends(cable):
            label = "" if end.panel == end.name else end.panel
            yield {"device": end.device, "name": end.name, "label": label, "type": kind, "speed": speed}


def _switches(design: Blueprint) -> dict[str, SwitchModel | None]:
    """Return the switches whose ports the cables of each fabric go to."""
    fabric = design.pod.management_fabric()
    switches = {name: design.requirements.switch_of(name) for name in ("compute", "storage")}
    return {**switches, "management": fabric.aggregation if fabric else None}


def _interface_kind(switch: SwitchModel | None) -> tuple[str, float]:
    """Return NetBox's type of a switch's ports, and their Gb/s."""
    if switch is None:
        return "other", 0.0
    types = ETHERNET if switch.kind == "ethernet" else INFINIBAND
    gbps = switch.speed_gbps or 0.0
    return types.get(int(gbps), "other"), gbps


def _vlans(design: Blueprint) -> list[Record]:
    return [
        {"vid": network.vlan, "name": network.name, "status": "active", "site": design.pod.name}
        for network in design.networks
        if network.vlan
    ]


def _prefixes(design: Blueprint) -> list[Record]:
    """Return the networks; a VLAN is found by its number and its site, and a network without one has neither."""
    records: list[Record] = []
    for network in design.networks:
        record: Record = {
            "status": "active",
            "site": design.pod.name,
            "vlan_site": design.pod.name if network.vlan else "",
            "vlan": network.vlan or "",
            "description": network.purpose,
        }
        records += [{"prefix": prefix, **record} for prefix in (network.subnet, network.subnet6)]
    return records
