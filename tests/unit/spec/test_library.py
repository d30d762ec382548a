"""The hardware library: every file holds together, and the facts that design rests on are there."""

from __future__ import annotations

from pathlib import Path

import pytest

import podwright.spec
from podwright import spec

FOLDER = Path(podwright.spec.__file__).parent / "library"
NODES = sorted(path.stem for path in (FOLDER / "nodes").glob("*.yaml"))


def cores(text: str) -> list[int]:
    """Gives the CPUs of a list such as `0-3,8`."""
    ranges = [part.split("-") for part in text.split(",")]
    return [cpu for one in ranges for cpu in range(int(one[0]), int(one[-1]) + 1)]


def test_what_is_in_it() -> None:
    assert {"dgx-1", "dgx-2h", "dgx-a100", "dgx-h100", "dgx-b200", "cpu-server"} <= set(spec.library("nodes"))
    assert {"qm8790", "qm9700", "sn2201", "sn3700", "sb7800"} <= set(spec.library("switches"))
    assert {"netapp-aff-a800", "ddn-ai400x", "spectrum-scale-ess3000", "pure-flashblade"} <= set(
        spec.library("storage")
    )


@pytest.mark.parametrize("kind", ["nodes", "switches", "storage"])
def test_every_file_is_read_and_has_a_source(kind: str) -> None:
    entries = spec.library(kind)
    assert sorted(entries) == sorted(path.stem for path in (FOLDER / kind).glob("*.yaml"))
    assert all(entry.source and entry.title and entry.name == name for name, entry in entries.items())


@pytest.mark.parametrize("name", NODES)
def test_node_holds_together(name: str) -> None:
    node = spec.node_model(name)
    numa = {one.node for one in node.numa}
    if node.gpus:
        assert len(node.gpus.numa) in (0, node.gpus.count)
        assert set(node.gpus.numa) <= numa
    for nic in node.nics:
        assert nic.numa is None or nic.numa in numa
        assert all(node.gpus and gpu < node.gpus.count and node.gpus.numa[gpu] == nic.numa for gpu in nic.gpus)
    listed = [cpu for one in node.numa for cpu in cores(one.cores)]
    assert sorted(listed) == list(range(node.threads or 0))
    names = [nic.name for nic in node.nics if nic.name]
    assert len(names) == len(set(names))


def test_dgx_a100() -> None:
    node = spec.node_model("dgx-a100")
    assert node.gpus is not None
    assert node.gpus.numa == (3, 3, 1, 1, 7, 7, 5, 5)
    assert (node.sockets, node.cores, node.threads, len(node.numa)) == (2, 128, 256, 8)
    assert (node.power_w, node.rack_units) == (6500, 6)
    assert [nic.kind for nic in node.nics].count("compute") == 8
    compute = node.fabrics.compute
    assert compute is not None
    assert compute.switch is not None
    assert (compute.taper, compute.pods_planned, compute.scalable_unit, compute.rails) == (2, 2, 20, 8)
    assert (compute.switch.name, compute.switch.ports) == ("qm8790", 40)


@pytest.mark.parametrize(
    ("name", "gpus", "memory", "ports", "gbps", "units", "power"),
    [
        ("dgx-1", 8, 32 << 30, 4, 100, 3, 3500),
        ("dgx-2h", 16, 32 << 30, 8, 100, 10, 12000),
        ("dgx-a100", 8, 40 << 30, 8, 200, 6, 6500),
        ("dgx-h100", 8, 80 << 30, 8, 400, 8, 10200),
        ("dgx-b200", 8, 180 * 10**9, 8, 400, 10, 14300),
        ("dgx-b300", 8, None, 8, 800, 10, 14500),
    ],
)
def test_published_figures(
    name: str, gpus: int, memory: int | None, ports: int, gbps: int, units: int, power: int
) -> None:
    node = spec.node_model(name)
    assert node.gpus is not None
    assert (node.gpus.count, node.gpus.memory_bytes) == (gpus, memory)
    compute = [nic for nic in node.nics if nic.kind == "compute"]
    assert (len(compute), {nic.speed_gbps for nic in compute}) == (ports, {gbps})
    assert (node.rack_units, node.power_w) == (units, power)


def test_what_binding_needs() -> None:
    hardware = spec.node_model("dgx-a100").hardware()
    assert hardware["numa"][3] == {"node": 3, "cores": "48-63,176-191"}
    assert hardware["gpus"][:3] == [{"index": 0, "numa": 3}, {"index": 1, "numa": 3}, {"index": 2, "numa": 1}]
    assert hardware["nics"][0] == {"name": "mlx5_0", "kind": "compute", "numa": 3, "gpus": [0, 1]}
    assert spec.node_model("dgx-b200").hardware()["nics"] == []


def test_unknown_name() -> None:
    with pytest.raises(spec.Refusal) as caught:
        spec.node_model("dgx-a10")
    assert str(caught.value) == (
        '"dgx-a10" is not in the hardware library\n\n'
        "hint: node model is one of cpu-server, dgx-1, dgx-2h, dgx-a100, dgx-b200, dgx-b300, dgx-gb200, "
        "dgx-gb300, dgx-h100, dgx-h200, ufm-appliance; "
        "did you mean `dgx-a100`?"
    )


def test_unknown_kind() -> None:
    with pytest.raises(spec.Refusal, match="did you mean `nodes`"):
        spec.library("node")


@pytest.mark.parametrize("name", ["dgx-h100", "dgx-h200", "dgx-b200"])
def test_compute_ports_of_a_dgx_are_in_twin_cages(name: str) -> None:
    """DGX user guides, network port mapping: OSFP1P1 to OSFP4P2."""
    ports = [nic for nic in spec.node_model(name).nics if nic.kind == "compute"]
    assert sorted(nic.panel or "" for nic in ports) == [f"OSFP{cage}P{port}" for cage in range(1, 5) for port in (1, 2)]
    assert all((nic.panel or "").startswith(f"{nic.cage}P") for nic in ports)


def test_power_and_weight_of_switches_where_a_manual_gives_them() -> None:
    facts = {name: (model.power_w, model.weight_kg) for name, model in spec.library("switches").items()}
    assert facts["qm9700"] == (1720, 14.8)
    assert facts["qm9790"] == (1610, 14.8)
    assert facts["qm8790"] == (None, 11.4)
    assert facts["sn2201"] == (300, 7.41)
    assert (facts["qm8700"][0], facts["sb7800"][0]) == (1100, 460)
    assert facts["sn5600"] == (None, 23.5)
    # No public source was found for these: a design says "at least" with them.
    unknown = ["q3401-rd", "q3450-ld", "qm8790", "sn3700", "sn5400", "sn5600", "sn5610"]
    assert [name for name, (power, _) in facts.items() if power is None] == unknown
