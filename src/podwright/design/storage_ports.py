"""What the ports of a storage fabric lead to, and what of its systems reaches a GPU through them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podwright.design.requirements import Requirements, port_bytes_s
from podwright.design.sizing_storage import StorageSize
from podwright.design.speeds import link_speed
from podwright.design.systems import storage_ends, without_cable
from podwright.spec.problems import Refusal, refuse
from podwright.theme.words import count

if TYPE_CHECKING:
    from podwright.design.systems import System


@dataclass(frozen=True, slots=True)
class Feed:
    """What a storage system gives each GPU, and what holds it back; None where its bandwidth is not known."""

    name: str
    kind: str
    blocks: int | None
    bandwidth_bytes_s: int | None
    per_gpu_bytes_s: float | None
    needed_bytes_s: int
    limit: str | None

    @property
    def feeds(self) -> bool | None:
        """Return whether that is enough."""
        if self.per_gpu_bytes_s is None:
            return None
        return self.per_gpu_bytes_s >= self.needed_bytes_s


def checked_ends(requirements: Requirements, size: StorageSize) -> list[tuple[str, int] | None]:
    """Return what each storage port leads to, or refuse ports that are too few for the blocks."""
    ends = _ends(requirements, size.ports)
    missing = without_cable(requirements.systems, ends)
    if missing:
        raise _too_few(requirements, size, missing)
    return ends


def _ends(requirements: Requirements, ports: int, per_unit: int | None = None) -> list[tuple[str, int] | None]:
    storage, switch = requirements.storage, requirements.storage_switch
    assert storage is not None, "ports are only dealt where there is a storage fabric"
    assert switch is not None, "ports are only dealt where there is a storage fabric"
    return storage_ends(requirements.systems, ports, per_unit or storage.ports_per_unit, port_bytes_s(switch))


def _too_few(requirements: Requirements, size: StorageSize, missing: list[str]) -> Refusal:
    storage = requirements.storage
    assert storage is not None, "ports are only dealt where there is a storage fabric"
    free = storage.node_ports * (storage.switch_ports - size.slots - 1)
    if storage.layout == "single":
        free = storage.switch_ports - storage.node_ports * size.slots
    fits = (
        per_unit
        for per_unit in range(storage.ports_per_unit + 1, free + 1)
        if not without_cable(requirements.systems, _ends(requirements, per_unit * size.units, per_unit))
    )
    per_unit = next(fits, None)
    hint = "less bandwidth, or a switch with more ports"
    if per_unit is not None:
        hint = f"write `ports_per_unit: {per_unit}`"
    return refuse(
        f"{size.ports} storage ports are too few: {len(missing)} blocks have no cable, the first is {missing[0]}",
        hint=hint,
        field="fabrics.storage.ports_per_unit",
    )


def feeds(
    requirements: Requirements, size: StorageSize | None, cables: Mapping[str, int], needed_bytes_s: int
) -> list[Feed]:
    """Return for each storage system what a GPU gets of it when all read at once; `cables` of each of its blocks."""
    each_gpus = [requirements.models[host].gpus for host in requirements.hosts]
    gpus = sum(model_gpus.count for model_gpus in each_gpus if model_gpus)
    shared = _shared_limits(requirements, size)
    rows = []
    for system in requirements.systems:
        read_bytes_s, each, limit = _media_bytes_s(system), None, None
        if read_bytes_s is not None and gpus:
            limits: dict[str, float] = {"media": read_bytes_s, **shared}
            if "node ports" in shared and requirements.storage_switch is not None:
                own = sum(cables.get(name, 0) for name in system.names)
                limits["cables"] = own * port_bytes_s(requirements.storage_switch)
            limit = min(limits, key=limits.__getitem__)
            each = limits[limit] / gpus
        storage = system.storage
        rows.append(Feed(storage.name, storage.kind, system.blocks, read_bytes_s, each, needed_bytes_s, limit))
    return rows


def storage_notes(requirements: Requirements) -> Iterator[str]:
    """Yield what a reader must know of blocks that have no cable."""
    for system in requirements.systems:
        waiting = 0 if system.cabled is None else system.room - system.cabled
        name = system.storage.name
        if system.storage.model is not None and requirements.storage is None:
            text = count(len(system.names), "block")
            yield f"storage: {text} of {name} without a fabric: `fabrics: {{storage: {{switch: qm8700}}}}`"
        elif waiting:
            ports = "`ports_per_unit` of the storage fabric has them now"
            yield f"storage: {count(waiting, 'block')} of {name} get ports with the planned nodes; {ports}"


def _media_bytes_s(system: System) -> int | None:
    """Return what a system reads, as the pod says or as its blocks do, of which some may come later."""
    blocks, model = system.blocks, system.storage.model
    is_part = system.cabled is not None or system.storage.bandwidth_bytes_s is None
    if is_part and blocks and model and model.read_bytes_s:
        return blocks * model.read_bytes_s
    return system.storage.bandwidth_bytes_s


def _shared_limits(requirements: Requirements, size: StorageSize | None) -> dict[str, float]:
    """Return what the fabric lets through, whichever system is read; nothing where ports have no known speed."""
    storage, switch = requirements.storage, requirements.storage_switch
    if size is None or storage is None or switch is None or not switch.speed_gbps:
        return {}
    port = port_bytes_s(switch)
    nodes = 0.0
    for host in requirements.hosts:
        gbps = link_speed(requirements.pod, requirements.models[host], "storage") or switch.speed_gbps
        nodes += storage.node_ports * min(gbps * 1e9 / 8, port)
    if not size.spine:
        return {"node ports": nodes}
    return {"leaf up-links": size.leaf * size.leaf_up * port, "node ports": nodes}
