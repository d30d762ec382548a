"""A design as the one JSON document of `podwright design --json`; its keys are a contract."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from podwright.design.floor import Rack
from podwright.design.losses import leaf_losses
from podwright.design.plan import NEEDED_BYTES_S, Blueprint


def design_json(design: Blueprint, needed_bytes_s: int = NEEDED_BYTES_S) -> dict[str, Any]:
    """Return the whole document; a fabric that the pod does not have is null."""
    return {
        "compute": _compute(design),
        "storage": _storage(design),
        "management": _management(design),
        "racks": _racks(design),
        "bom": _bom(design, needed_bytes_s),
    }


def _compute(design: Blueprint) -> dict[str, Any] | None:
    size = design.compute
    if size is None:
        return None
    parameters, switch = design.requirements.compute, design.requirements.compute_switch
    return {
        "kind": switch.kind if switch else None,
        "planes": parameters.planes if parameters else 1,
        **_pick(size, "tiers", "units", "leaf", "spine", "core"),
        "cables": _pick(size, "node_leaf", "leaf_spine", "spine_core", "fabric_manager"),
    }


def _storage(design: Blueprint) -> dict[str, Any] | None:
    size = design.storage
    if size is None:
        return None
    return {
        **_pick(size, "tiers", "ports", "leaf", "spine", "core"),
        "cables": {**_pick(size, "node_leaf", "leaf_spine", "spine_core"), "storage": design.storage_cables},
        **_pick(size, "subscription", "subscription_nodes", "subscription_all"),
    }


def _management(design: Blueprint) -> dict[str, Any] | None:
    management = design.management
    if management is None:
        return None
    return {
        "switches": management.count("leaf"),
        "aggregation": management.count("aggregation"),
        "core": management.count("core"),
        "power_feeds": len(management.pdus),
        "ports": management.node_ports,
        "bmc_ports": management.bmc_ports,
        "cables": len(management.cables),
        "networks": [
            {
                **_pick(network, "name", "purpose"),
                "vlan": network.vlan or None,
                "subnet": str(network.subnet),
                "subnet6": str(network.subnet6),
                "members": len(network.addresses),
            }
            for network in management.networks
        ],
        "cut_off": leaf_losses(management.cables),
        "notes": design.notes,
    }


def _racks(design: Blueprint) -> dict[str, Any]:
    floor = design.floor
    return {
        "count": len(floor.racks),
        "nvlink_domains": len(design.requirements.domains_there),
        "power_w": round(floor.power_w),
        "unknown_power": list(floor.unknown_power),
        "weight_kg": round(floor.weight_kg),
        "unknown_weight": list(floor.unknown_weight),
        "racks": [_rack(rack) for rack in floor.racks],
    }


def _rack(rack: Rack) -> dict[str, Any]:
    devices = [{"unit": unit, **_pick(device, "name", "model")} for unit, device in rack.devices]
    sizes = {"power_w": round(rack.power_w), "weight_kg": round(rack.weight_kg), "used_units": rack.used_units}
    sizes |= {"limit_w": round(rack.limit_w), "headroom_w": round(rack.headroom_w)}
    sizes["heat_btu_h"] = round(rack.heat_btu_h)
    return {"name": rack.name, **sizes, "devices": devices}


def _bom(design: Blueprint, needed_bytes_s: int) -> dict[str, Any]:
    items = design.bill()
    amount, without = design.total()
    fields = ("name", "kind", "blocks", "bandwidth_bytes_s", "per_gpu_bytes_s", "needed_bytes_s", "feeds", "limit")
    return {
        "items": [
            {**_pick(item, "kind", "item", "count", "price", "amount", "power_w"), "ports": item.ends or None}
            for item in items
        ],
        "price": {"amount": amount, "currency": design.pod.costs.currency, "without": without},
        **_owned(design, amount),
        "storage_systems": [_pick(feed, *fields) for feed in design.feeds(needed_bytes_s)],
    }


def _owned(design: Blueprint, bought: float) -> dict[str, Any]:
    """Return the electricity of the years that a pod stands, and the total with it."""
    power = design.electricity()
    if power is None:
        return {"electricity": None, "total": bought}
    document = _pick(power, "amount", "cooling", "power_w")
    document |= {"power_price_kwh": power.price_kwh, **_pick(power, "pue", "years")}
    return {"electricity": document, "total": bought + power.amount}


def _pick(record: object, *names: str) -> dict[str, Any]:
    """Return fields and properties of a record by their names."""
    return dict(zip(names, attrgetter(*names)(record), strict=True))
