"""The bill of materials: what to buy, how many, what it draws, and what it costs where prices are given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podwright.design.domains import NVLINK_SWITCH, PARTS, POWER_SHELF
from podwright.design.floor import CABLE_MANAGER, Floor
from podwright.design.plugs import CablePart
from podwright.design.racks import model_name, switch_model
from podwright.design.requirements import Requirements
from podwright.design.wiring import Switch
from podwright.spec import SwitchModel
from podwright.spec.hardware import StorageModel

if TYPE_CHECKING:
    from podwright.spec.pod import CablePrices


@dataclass(frozen=True, slots=True)
class Item:
    """One line: what it is in short and in full, how many, and of each its price and power, None where not given.

    A cable or transceiver belongs to a fabric, and is plugged into so many ports.
    """

    kind: str
    name: str
    item: str
    count: int
    price: float | None
    power_w: float | None
    fabric: str = ""
    ends: int = 0

    @property
    def amount(self) -> float | None:
        """Return the price of all of them."""
        if self.price is None:
            return None
        return self.price * self.count


def bill(
    requirements: Requirements, switches: Iterable[Switch], floor: Floor, parts: Mapping[CablePart, int]
) -> list[Item]:
    """List everything, in the order nodes, switches, fabric managers, storage, racks, cables, transceivers."""
    height = f"{requirements.pod.racks.rack_units} units"
    return [
        *_nodes(requirements),
        *_switches(requirements, switches),
        *_managers(requirements),
        *_storage(requirements),
        Item("rack", height, f"rack, {height}", len(floor.racks), None, None),
        *_domain_parts(floor),
        *_cable_managers(floor),
        Item("power feed", "pdu", "power distribution unit, one feed", len(floor.pdus), None, None),
        *_parts(requirements.pod.costs.cable_prices, parts),
    ]


def total(items: Iterable[Item]) -> tuple[float, list[str]]:
    """Return the price of what has one, and the names of what has none."""
    rows = list(items)
    without = [row.item for row in rows if row.amount is None and row.count]
    return sum(row.amount or 0 for row in rows), without


def _nodes(requirements: Requirements) -> list[Item]:
    rows = []
    for group in requirements.pod.nodes:
        model, price, name = group.model, group.model.price, group.model.name or "node"
        if price is None and group.hosts[0] in set(requirements.hosts):
            price = requirements.pod.costs.node_price
        rows.append(Item("node", name, model.title or name, len(group.hosts), price, model.power_w))
    return rows


def _switches(requirements: Requirements, switches: Iterable[Switch]) -> list[Item]:
    counted: Counter[tuple[str, str]] = Counter()
    models: dict[str, SwitchModel] = {}
    for switch in switches:
        model = switch_model(requirements, switch)
        models[model_name(model)] = model
        counted[(f"{switch.fabric} {switch.tier}", model_name(model))] += 1
    rows = []
    for (kind, name), count in counted.items():
        model = models[name]
        price = requirements.pod.costs.switch_price if model.price is None else model.price
        rows.append(Item(f"{kind} switch", name, model.title or name, count, price, model.power_w))
    return rows


def _managers(requirements: Requirements) -> list[Item]:
    models = list(requirements.manager_models.values())
    if not models:
        return []
    title, power_w = "fabric manager (UFM), 1 unit", None
    if models[0] is not None:
        title, power_w = models[0].title or title, models[0].power_w
    return [Item("manager", "ufm", title, len(models), None, power_w)]


def _cable_managers(floor: Floor) -> list[Item]:
    if not floor.cable_managers:
        return []
    return [Item(CABLE_MANAGER, CABLE_MANAGER, f"{CABLE_MANAGER}, 1 unit", floor.cable_managers, None, None)]


def _domain_parts(floor: Floor) -> list[Item]:
    """List what comes with the racks of NVLink domains; its power is in that of their nodes."""
    counted = Counter((device.kind, device.model) for device in floor.devices if device.kind in PARTS)
    titles = {NVLINK_SWITCH: "tray of NVLink switches, 1 unit", POWER_SHELF: "power shelf, 1 unit"}
    return [Item(kind, model, titles[kind], count, None, 0.0) for (kind, model), count in counted.items()]


def _storage(requirements: Requirements) -> list[Item]:
    rows = []
    for system in requirements.systems:
        kind, count = system.storage.kind, system.blocks or 1
        model = system.storage.model or StorageModel(kind=kind)
        title = model.title or f"{kind} system"
        rows.append(Item("storage", model.name or kind, title, count, model.price, model.power_w))
    return rows


def _parts(prices: CablePrices, parts: Mapping[CablePart, int]) -> list[Item]:
    """Return cables and then transceivers, fabric by fabric, short ones first."""
    rows = []
    for part in sorted(parts, key=lambda part: (part.kind, part.fabric, part.medium, part.length_m or 0, part.text)):
        price = getattr(prices, part.medium, None)
        if part.kind == "transceiver" and price is None and prices.fibre is not None:
            # A price of fibre alone holds those of its transceivers.
            price = 0.0
        rows.append(Item(part.kind, part.medium, part.text, parts[part], price, None, part.fabric, part.ends))
    return rows
