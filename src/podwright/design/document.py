"""A design as the one JSON document of `podwright design --json`; its keys are a contract."""

from __future__ import annotations

from typing import Any

from podwright.design.bom import total
from podwright.design.growth import Growth
from podwright.design.lengths import Laid
from podwright.design.plan import NEEDED_BYTES_S, Design


def design_json(design: Design, needed_bytes_s: int = NEEDED_BYTES_S) -> dict[str, Any]:
    """Return the whole document; a fabric that the pod does not have is null."""
    return {
        "compute": _compute(design),
        "storage": _storage(design),
        "management": _management(design),
        "racks": _racks(design),
        "bom": _bom(design, needed_bytes_s),
    }


def cables_json(design: Design) -> list[dict[str, Any]]:
    """Return every cable, as `--cables --json` prints them."""
    return [_cable(one) for one in design.laid]


def _compute(design: Design) -> dict[str, Any] | None:
    size = design.compute
    if size is None:
        return None
    return {
        "tiers": size.tiers,
        "units": size.units,
        "leaf": size.leaf,
        "spine": size.spine,
        "core": size.core,
        "cables": {
            "node_leaf": size.node_leaf,
            "leaf_spine": size.leaf_spine,
            "spine_core": size.spine_core,
            "fabric_manager": size.fabric_manager,
        },
    }


def _storage(design: Design) -> dict[str, Any] | None:
    size = design.storage
    if size is None:
        return None
    return {
        "ports": size.ports,
        "leaf": size.leaf,
        "spine": size.spine,
        "cables": {"node_leaf": size.node_leaf, "leaf_spine": size.leaf_spine, "storage": size.ports},
        "subscription": size.subscription,
        "subscription_nodes": size.subscription_nodes,
        "subscription_all": size.subscription_all,
    }


def _management(design: Design) -> dict[str, Any] | None:
    made = design.management
    if made is None:
        return None
    return {
        "switches": made.count("leaf"),
        "aggregation": made.count("aggregation"),
        "ports": made.node_ports,
        "bmc_ports": made.bmc_ports,
        "cables": len(made.cables),
        "networks": [
            {
                "name": one.name,
                "purpose": one.purpose,
                "vlan": one.vlan or None,
                "subnet": str(one.subnet),
                "members": len(one.addresses),
            }
            for one in made.networks
        ],
        "notes": list(made.notes),
    }


def _racks(design: Design) -> dict[str, Any]:
    floor = design.floor
    return {
        "count": len(floor.racks),
        "power_w": round(floor.power_w),
        "unknown_power": list(floor.unknown_power),
        "racks": [
            {
                "name": rack.name,
                "power_w": round(rack.power_w),
                "used_units": rack.used_units,
                "devices": [
                    {"unit": unit, "name": device.name, "model": device.model} for unit, device in rack.devices
                ],
            }
            for rack in floor.racks
        ],
    }


def _bom(design: Design, needed_bytes_s: int) -> dict[str, Any]:
    items = design.bill()
    amount, without = total(items)
    return {
        "items": [
            {
                "kind": one.kind,
                "item": one.item,
                "count": one.count,
                "price": one.price,
                "amount": one.amount,
                "power_w": one.power_w,
            }
            for one in items
        ],
        "price": {"amount": amount, "currency": design.pod.costs.currency, "without": without},
        "storage_systems": [
            {
                "name": one.name,
                "kind": one.kind,
                "blocks": one.blocks,
                "bandwidth_bytes_s": one.bandwidth_bytes_s,
                "per_gpu_bytes_s": one.per_gpu_bytes_s,
                "needed_bytes_s": one.needed_bytes_s,
                "feeds": one.feeds,
            }
            for one in design.feeds(needed_bytes_s)
        ],
    }


def _cable(one: Laid) -> dict[str, Any]:
    cable = one.cable
    return {
        "fabric": cable.fabric,
        "kind": cable.kind,
        "a": cable.a,
        "a_port": cable.a_port,
        "b": cable.b,
        "b_port": cable.b_port,
        "length_m": one.length_m,
        "medium": one.medium,
    }


def growth_json(growth: Growth) -> dict[str, Any]:
    """Return what growth adds, moves and takes out; the key `growth` of the document with `--grow-from`."""
    return {
        "added": [one._asdict() for one in growth.added],
        "moved": [{"from": old._asdict(), "to": new._asdict()} for old, new in growth.moved],
        "removed": [one._asdict() for one in growth.removed],
        "switches_added": growth.switches_added,
        "switches_removed": growth.switches_removed,
    }
