"""A design as the one JSON document of `podwright design --json`; its keys are a contract."""

from __future__ import annotations

from typing import Any

from podwright.design.bom import total
from podwright.design.floor import Rack
from podwright.design.growth import Growth
from podwright.design.lengths import Laid
from podwright.design.plan import NEEDED_BYTES_S, Design
from podwright.design.running import electricity


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
    return [_cable(laid) for laid in design.laid]


def _compute(design: Design) -> dict[str, Any] | None:
    size = design.compute
    if size is None:
        return None
    parameters, switch = design.requirements.compute, design.requirements.compute_switch
    return {
        "kind": switch.kind if switch else None,
        "planes": parameters.planes if parameters else 1,
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
    management = design.management
    if management is None:
        return None
    return {
        "switches": management.count("leaf"),
        "aggregation": management.count("aggregation"),
        "ports": management.node_ports,
        "bmc_ports": management.bmc_ports,
        "cables": len(management.cables),
        "networks": [
            {
                "name": network.name,
                "purpose": network.purpose,
                "vlan": network.vlan or None,
                "subnet": str(network.subnet),
                "members": len(network.addresses),
            }
            for network in management.networks
        ],
        "notes": design.notes,
    }


def _racks(design: Design) -> dict[str, Any]:
    floor = design.floor
    return {
        "count": len(floor.racks),
        "power_w": round(floor.power_w),
        "unknown_power": list(floor.unknown_power),
        "weight_kg": round(floor.weight_kg),
        "unknown_weight": list(floor.unknown_weight),
        "racks": [_rack(rack) for rack in floor.racks],
    }


def _rack(rack: Rack) -> dict[str, Any]:
    devices = [{"unit": unit, "name": device.name, "model": device.model} for unit, device in rack.devices]
    return {
        "name": rack.name,
        "power_w": round(rack.power_w),
        "weight_kg": round(rack.weight_kg),
        "used_units": rack.used_units,
        "devices": devices,
    }


def _bom(design: Design, needed_bytes_s: int) -> dict[str, Any]:
    items = design.bill()
    amount, without = total(items)
    return {
        "items": [
            {
                "kind": item.kind,
                "item": item.item,
                "count": item.count,
                "price": item.price,
                "amount": item.amount,
                "power_w": item.power_w,
                "ports": item.ends or None,
            }
            for item in items
        ],
        "price": {"amount": amount, "currency": design.pod.costs.currency, "without": without},
        **_owned(design, amount),
        "storage_systems": [
            {
                "name": feed.name,
                "kind": feed.kind,
                "blocks": feed.blocks,
                "bandwidth_bytes_s": feed.bandwidth_bytes_s,
                "per_gpu_bytes_s": feed.per_gpu_bytes_s,
                "needed_bytes_s": feed.needed_bytes_s,
                "feeds": feed.feeds,
            }
            for feed in design.feeds(needed_bytes_s)
        ],
    }


def _owned(design: Design, bought: float) -> dict[str, Any]:
    """Return the electricity of the years that a pod stands, and the total with it."""
    power = electricity(design.pod.costs, design.bill())
    if power is None:
        return {"electricity": None, "total": bought}
    document = {
        "amount": power.amount,
        "cooling": power.cooling,
        "power_w": power.power_w,
        "power_price_kwh": power.price_kwh,
        "pue": power.pue,
        "years": power.years,
    }
    return {"electricity": document, "total": bought + power.amount}


def _cable(laid: Laid) -> dict[str, Any]:
    cable = laid.cable
    return {
        "fabric": cable.fabric,
        "kind": cable.kind,
        "a": cable.a,
        "a_port": cable.a_port,
        "b": cable.b,
        "b_port": cable.b_port,
        "length_m": laid.length_m,
        "medium": laid.medium,
    }


def growth_json(growth: Growth) -> dict[str, Any]:
    """Return what growth adds, moves and takes out; the key `growth` of the document with `--grow-from`."""
    return {
        "added": [cable._asdict() for cable in growth.added],
        "moved": [{"from": old._asdict(), "to": new._asdict()} for old, new in growth.moved],
        "removed": [cable._asdict() for cable in growth.removed],
        "switches_added": growth.switches_added,
        "switches_removed": growth.switches_removed,
    }
