"""Sizes at which a pod becomes dear, one switch instead of a tree, and a pod in many sizes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from podwright.cli.main import main
from podwright.design import Design, Sweep
from podwright.design.losses import lose
from podwright.spec import Pod, Refusal
from tests.unit.design.pods import designed, group

SINGLE = {"compute": {"layout": "single"}, "storage": {"layout": "single"}}
FAST = {"name": "fast", "kind": "lustre", "model": "ddn-ai400x", "bandwidth": "100GB/s"}


@pytest.mark.parametrize(("nodes", "cheap"), [(32, (31, 15, 30)), (128, (127, 60, 89)), (256, (255, 119, 268))])
def test_the_next_cheaper_size_is_said(nodes: int, cheap: tuple[int, int, int]) -> None:
    fewer, switches, here = cheap
    assert (
        f"{fewer} nodes need {switches} fabric switches where {nodes} need {here}" in designed(nodes, "dgx-h100").notes
    )
    small, large = (designed(count, "dgx-h100") for count in (fewer, nodes))
    assert [sum(len(wired.switches) for wired in one.wired.values()) for one in (small, large)] == [switches, here]


def test_no_size_is_said_where_none_is_cheaper() -> None:
    assert designed(140).cliffs == []


def test_up_links_that_spread_over_many_spines_are_said() -> None:
    (said,) = designed(128, "dgx-h100", fabrics={"compute": {"oversubscription": 3}}).cliffs
    assert said.startswith("11 spines use 40 of 64 ports: 11 up-links of a leaf spread over no fewer")
    assert said.endswith("`oversubscription: 4` (8 up-links) takes 8")
    fewer = designed(128, "dgx-h100", fabrics={"compute": {"oversubscription": 4}}).compute
    assert fewer is not None
    assert fewer.spine == 8


def test_one_switch_is_said_and_taken_by_name() -> None:
    (compute, storage) = designed(1, "dgx-h100").cliffs
    assert compute == "compute: one switch has all ports: `layout: single` saves 8 of 9 switches"
    assert storage == "storage: one switch has all ports: `layout: single` saves 2 of 3 switches"
    design = designed(1, "dgx-h100", fabrics=SINGLE)
    assert [len(wired.switches) for wired in design.wired.values()] == [1, 1]
    assert design.cliffs == []


@pytest.mark.parametrize(("nodes", "model"), [(1, "dgx-h100"), (7, "dgx-h100"), (5, "dgx-a100")])
def test_one_switch_has_every_cable(nodes: int, model: str) -> None:
    design = designed(nodes, model, fabrics=SINGLE, storage=[FAST])
    ports = [
        (cable.fabric, *end) for cable in design.cables for end in ((cable.a, cable.a_port), (cable.b, cable.b_port))
    ]
    assert len(ports) == len(set(ports))
    assert not any(lose(design, []).cut_off.values())
    (unit,) = design.topology.units
    assert len(unit.hosts) == nodes
    assert "leaf-001" in design.files()["compute.svg"]


def test_more_nodes_than_one_switch_has_ports_for_are_refused() -> None:
    with pytest.raises(Refusal) as caught:
        designed(8, "dgx-h100", fabrics=SINGLE)
    assert str(caught.value) == (
        "pod.yaml: fabrics.compute.layout: 8 nodes do not fit one compute switch, which has ports for 7\n\n"
        "hint: leave `layout: single` out, or use a switch with 72 ports"
    )
    small = {"switch": {"ports": 16}, "layout": "single"}
    with pytest.raises(Refusal, match="8 nodes do not fit one storage switch, which has ports for 5"):
        designed(8, "dgx-h100", fabrics={"storage": small}, storage=[FAST])


def pod_of(nodes: int, **more: Any) -> Pod:
    return Pod.model_validate({"name": "pod", "nodes": [group(nodes, "dgx-h100")], **more})


def test_a_sweep_is_the_design_of_each_size() -> None:
    sizes = Sweep.of(pod_of(4, costs={"node_price": 1000}), "nodes=2..5").sizes
    assert [size.nodes for size in sizes] == [2, 3, 4, 5]
    for size in sizes:
        design = Design.of(pod_of(size.nodes))
        assert (size.switches, size.cables) == (len(design.switches), len(design.cables))
        assert (size.power_w, size.price_per_gpu) == (round(design.floor.power_w), 125)


def test_a_long_sweep_has_both_sides_of_each_jump_and_says_what_is_refused() -> None:
    racks = {"count": 16}
    sweep = Sweep.of(pod_of(8, racks=racks), "nodes=10..60")
    nodes = [size.nodes for size in sweep.sizes]
    assert len(nodes) <= 30
    assert {10, 31, 32, 60} <= set(nodes)
    refused = [size for size in sweep.sizes if size.refused]
    assert refused[-1].nodes == 60
    assert "racks" in (refused[-1].refused or "")
    drawing = sweep.files()["sweep.svg"]
    assert ">31<" in drawing
    assert sweep.files()["sweep.csv"].splitlines()[0] == "nodes,switches,cables,power_w,price_per_gpu,refused"


def test_a_sweep_on_the_command_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["design", "--nodes", "4", "--model", "dgx-h100", "--sweep"]
    assert main([*words, "nodes=3..4", "--out", str(tmp_path)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["NODES", "3", "4"]
    assert max(map(len, lines)) <= 80
    assert {path.name for path in tmp_path.iterdir()} == {"sweep.csv", "sweep.svg"}
    assert main([*words, "nodes=3..4", "--json"]) == 0
    keys = {"nodes", "switches", "cables", "power_w", "price_per_gpu", "refused"}
    assert [set(row) for row in json.loads(capsys.readouterr().out)["sweep"]] == [keys, keys]
    assert main([*words, "nodes=4..3"]) == 2
    assert "--sweep: nodes=4..3 is no range of sizes" in capsys.readouterr().err
