"""Whether the ports that are joined fit each other: the kind of network, and the speed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Literal

from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.spec import NodeGroup, NodeModel, Pod, SwitchModel

# Twisted pair steps down to what the switch has; anything faster needs a port of its own kind.
FASTEST_TWISTED_GBPS = 10
TWISTED_PAIR = "rj45"
TITLES = {"infiniband": "InfiniBand", "ethernet": "Ethernet"}


def check_ports(pod: Pod, groups: Sequence[NodeGroup]) -> None:
    """Refuse a switch of the wrong kind or with other sockets, planes without a speed, and two generations as one."""
    kinds = _kinds(pod)
    for field, fabric, switch in _switches(pod):
        kind = kinds.get(fabric)
        if kind is not None and switch.kind is not None and switch.kind != kind:
            hint = f"name an {TITLES[kind]} switch"
            if fabric == "compute":
                hint += f", or write `kind: {switch.kind}`"
            raise refuse(
                f"{switch.name or 'the switch'} is an {TITLES[switch.kind]} switch, "
                f"and the {fabric} fabric is {TITLES[kind]}",
                hint=hint,
                field=field,
            )
        if field != "fabrics.management.switch":
            _check_sockets(field, fabric, switch, groups)
    for fabric in ("compute", "storage"):
        _check_generations(fabric, groups)
    _check_planes(pod, groups)


def _check_sockets(field: str, fabric: str, switch: SwitchModel, groups: Sequence[NodeGroup]) -> None:
    """Refuse ports that no cable can join: a plug of a fast port does not go into a socket of twisted pair."""
    for group in groups:
        speed = _speed(group.model, fabric)
        if switch.connector == TWISTED_PAIR and speed is not None and speed > FASTEST_TWISTED_GBPS:
            raise refuse(
                f"{switch.name or 'the switch'} has sockets of twisted pair, "
                f"and the {fabric} ports of {group.model.name or 'a node'} run at {speed:g} Gb/s",
                hint=f"name a switch with ports of {speed:g} Gb/s",
                field=field,
            )


def _check_planes(pod: Pod, groups: Sequence[NodeGroup]) -> None:
    """Refuse planes that split the ports of nodes into parts of a speed that the switch does not have."""
    compute = pod.compute_fabric()
    if compute is None or compute.planes == 1 or compute.switch is None or compute.switch.speed_gbps is None:
        return
    for speed in sorted({_speed(group.model, "compute") or 0 for group in groups} - {0}):
        plane_gbps = speed / compute.planes
        if switch_at(compute.switch, plane_gbps).speed_gbps == plane_gbps:
            continue
        modes = {compute.switch.speed_gbps, *(mode.speed_gbps for mode in compute.switch.modes)}
        fitting = sorted(int(speed / mode) for mode in modes if speed >= mode and (speed / mode).is_integer())
        raise refuse(
            f"{compute.planes} planes split compute ports of {speed:g} Gb/s into parts of {plane_gbps:g}, "
            f"and {compute.switch.name or 'the switch'} has no such ports",
            hint=f"planes that fit: {', '.join(map(str, fitting)) or 'none'}",
            field="fabrics.compute.planes",
        )


def switch_at(switch: SwitchModel, speed_gbps: float) -> SwitchModel:
    """Return a switch whose cages are split into ports of this speed; as it is where they cannot be."""
    for mode in switch.modes:
        if mode.speed_gbps == speed_gbps:
            more = {"ports": mode.ports, "speed_gbps": mode.speed_gbps, "cage_ports": mode.ports // switch.ports}
            return switch.model_copy(update=more)
    return switch


def link_speed(pod: Pod, model: NodeModel, fabric: str) -> float | None:
    """Return the speed of a node's links to a fabric: that of its ports, less where they are split over planes."""
    speed = _speed(model, fabric)
    compute = pod.compute_fabric()
    if speed is None or fabric != "compute" or compute is None:
        return speed
    return speed / compute.planes


def slower_ports(pod: Pod, groups: Sequence[NodeGroup]) -> Iterator[str]:
    """Yield a warning for each fabric whose nodes and switches have ports of different speeds."""
    for field, fabric, switch in _switches(pod):
        # Twisted pair steps down by itself; of the management ports only the fast ones go to another switch.
        if field == "fabrics.management.switch" or switch.speed_gbps is None:
            continue
        for speed in sorted({link_speed(pod, group.model, fabric) or 0 for group in groups}):
            if speed > FASTEST_TWISTED_GBPS and speed != switch_at(switch, speed).speed_gbps:
                slower = min(speed, switch.speed_gbps)
                ports = f"{fabric} ports of {speed:g} Gb/s on {switch.name or 'switches'} of {switch.speed_gbps:g}"
                yield f"{ports}: links run at {slower:g} Gb/s"


def _kinds(pod: Pod) -> dict[str, Literal["infiniband", "ethernet"]]:
    """Return the kind that the switches of a fabric must be; storage systems are sold for both."""
    compute = pod.compute_fabric()
    return {"compute": compute.kind if compute else "infiniband", "management": "ethernet"}


def _switches(pod: Pod) -> Iterator[tuple[str, str, SwitchModel]]:
    """Yield each switch that the pod names, or its nodes' reference design, with its field and its fabric."""
    compute, storage, management = pod.compute_fabric(), pod.storage_fabric(), pod.management_fabric()
    rows = (
        ("fabrics.compute.switch", "compute", compute.switch if compute else None),
        ("fabrics.storage.switch", "storage", storage.switch if storage else None),
        ("fabrics.management.switch", "management", management.switch if management else None),
        ("fabrics.management.aggregation", "management", management.aggregation if management else None),
    )
    for field, fabric, switch in rows:
        if switch is not None:
            yield field, fabric, switch


def _check_generations(fabric: str, groups: Sequence[NodeGroup]) -> None:
    speeds = {group.model.name or "a node": _speed(group.model, fabric) for group in groups}
    by_model = {name: speed for name, speed in speeds.items() if speed is not None}
    if len(set(by_model.values())) > 1:
        listed = ", ".join(f"{name} has {speed:g} Gb/s" for name, speed in by_model.items())
        raise refuse(
            f"nodes with {fabric} ports of different speeds share one fabric: {listed}",
            hint="give each generation a pod of its own",
            field="nodes",
        )


def _speed(model: NodeModel, fabric: str) -> float | None:
    return max((nic.speed_gbps for nic in model.nics if nic.kind == fabric), default=None)
