"""An architect's audit of a design: what must hold for any pod, and pods made by chance to hold it against."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

from podwright.design import Design
from podwright.design.losses import leaf_losses, lose
from podwright.spec import Pod, Refusal
from podwright.spec.hostlist import expand_hosts, natural_key

MODELS = ("dgx-1", "dgx-a100", "dgx-h100", "dgx-h200", "dgx-b200", "dgx-b300", "dgx-gb200", "dgx-gb300")
ETHERNET = {"kind": "ethernet", "switch": "sn5600", "planes": 2}
SYSTEMS: tuple[dict[str, Any], ...] = (
    {"name": "fast", "kind": "lustre", "model": "ddn-ai400x", "bandwidth": "200GB/s"},
    {"name": "wide", "kind": "lustre", "model": "ddn-a3i-9-to-1"},
    {"name": "home", "kind": "netapp", "model": "netapp-aff-a800"},
    {"name": "cold", "kind": "nfs"},
)
RACKS: tuple[dict[str, Any], ...] = (
    {},
    {"rack_units": 48, "power": "60kW"},
    {"rack_units": 24, "power": "17kW", "per_row": 7},
    {"rack_units": 42, "switches_per_manager": 0, "per_row": 3},
)


def chance(seed: int, most: int, least: int = 1) -> dict[str, Any]:
    """A pod's file by a seed: small ones are as likely as large ones."""
    random = Random(seed)
    nodes = min(most, max(least, round(least * (most / least) ** random.random())))
    model = random.choice(MODELS)
    groups = [{"hosts": f"n[0001-{nodes:04d}]", "model": model}]
    groups += [{"hosts": "m[1-3]", "model": "cpu-server", "roles": ["management"]}] * random.randint(0, 1)
    compute: dict[str, Any] = {"nodes_planned": nodes + random.choice((0, 0, nodes // 3))}
    compute |= random.choice(({}, {}, {"layout": "classic"}, {"oversubscription": 2}, {"oversubscription": 3}))
    if model == "dgx-b300" and random.random() < 0.3:
        compute |= ETHERNET
    fabrics: dict[str, Any] = {"compute": compute}
    if random.random() < 0.3:
        fabrics["management"] = {"switch": "sn2201", "aggregation": "sn3700"}
    storage = random.sample(SYSTEMS, random.randint(0, len(SYSTEMS)))
    return {"name": "p", "nodes": groups, "fabrics": fabrics, "storage": storage, "racks": random.choice(RACKS)}


def audited(given: dict[str, Any]) -> Design | None:
    """Design a pod and audit it; None where it is refused, which must say where and what would do."""
    try:
        design = Design.of(Pod.model_validate(given))
    except Refusal as refusal:
        check_hint(refusal)
        return None
    _check_ports(design)
    _check_places(design)
    _check_networks(design)
    _check_management(design)
    return design


def check_hint(refusal: Refusal) -> None:
    """A refusal says where and how to mend it."""
    assert all(problem.hint and problem.field for problem in refusal.problems)


def _check_ports(design: Design) -> None:
    ends = Counter((c.fabric, *end) for c in design.cables for end in ((c.a, c.a_port), (c.b, c.b_port)))
    assert [end for end, count in ends.items() if count > 1] == []
    labels = Counter(design.sockets.label(cable) for cable in design.cables)
    assert [label for label, count in labels.items() if count > 1] == []


def _check_places(design: Design) -> None:
    """Every device stands once, within the limits of its rack; a cable is as long as its way at the least."""
    height, said = design.pod.racks.rack_units, "without one of two feeds it must draw less" in " ".join(design.notes)
    names = Counter(device.name for device in design.floor.devices)
    assert [name for name, count in names.items() if count > 1] == []
    for rack in design.floor.racks:
        assert rack.power_w <= rack.limit_w or said
        used = [unit + offset for unit, device in rack.devices for offset in range(device.rack_units)]
        assert len(used) == len(set(used))
        assert 1 <= min(used) <= max(used) <= height
    assert {*design.pod.hosts(), *(switch.name for switch in design.switches)} <= set(names)


def _check_networks(design: Design) -> None:
    """Every node reaches every other and its storage, all blocks have a cable, and no address is there twice."""
    addresses = Counter(address for network in design.networks for address in network.addresses.values())
    assert not addresses or max(addresses.values()) == 1
    six = Counter(network.address6(name) for network in design.networks for name in network.addresses)
    assert not six or max(six.values()) == 1
    assert {name: out for name, out in lose(design, []).cut_off.items() if out} == {}
    for system in design.requirements.systems:
        if "storage" in design.wired and system.storage.model is not None:
            assert set(system.names) <= {cable.a for cable in design.wired["storage"].cables}


def _check_management(design: Design) -> None:
    """What one lost switch cuts off is said: of switches above the first tier nothing."""
    if design.management is None:
        return
    said = leaf_losses(design.management.cables)
    above = [switch.name for switch in design.management.switches if switch.tier != "leaf"]
    for name in [*list(said)[:2], *above[:2], *above[-1:]]:
        out = lose(design, [name]).cut_off
        for network, folded in said.get(name, {"management": "", "bmc": ""}).items():
            assert out[network] == _hosts(folded)


def _hosts(folded: str) -> list[str]:
    return sorted(expand_hosts(folded), key=natural_key) if folded else []
