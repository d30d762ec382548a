"""Racks of NVLink domains: placed whole, scheduled whole, predicted as one machine."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
import yaml

from podwright import theme
from podwright.bringup.plan.slurm import SlurmSite, render
from podwright.cli.main import main
from podwright.clients.kubernetes.names import NVLINK_DOMAIN
from podwright.design import AcceptanceSheet, Design
from podwright.design.domains import NVLINK_SWITCH, POWER_SHELF
from podwright.design.exports.rack_drawing import WIDTH, racks_svg
from podwright.design.exports.schedulers import scheduler_files
from podwright.design.predict.placement import place
from podwright.design.topology import DOMAIN_LABEL
from podwright.engines.kubernetes.run_spec import near_labels
from podwright.spec import Pod, Refusal, SlurmScheduler
from tests.unit.design.pods import designed, group

MODELS = ("dgx-gb200", "dgx-gb300")


def pod_of(nodes: int, model: str = "dgx-gb200", **more: Any) -> Pod:
    return Pod.model_validate({"name": "pod", "nodes": [group(nodes, model)], **more})


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("nodes", [1, 18, 19, 144])
def test_a_domain_fills_a_rack_of_its_own(model: str, nodes: int) -> None:
    design = designed(nodes, model)
    racks = [rack for rack in design.floor.racks if any(device.kind == "node" for _, device in rack.devices)]
    assert len(racks) == -(-nodes // 18)
    for rack in racks:
        kinds = Counter(device.kind for _, device in rack.devices)
        assert kinds[NVLINK_SWITCH] == 9
        assert kinds[POWER_SHELF] == 8
        assert set(kinds) == {"node", NVLINK_SWITCH, POWER_SHELF}
        units = [unit for unit, _ in rack.devices]
        assert len(units) == len(set(units))
        assert rack.limit_w == 8 * 33_000 / 2
        # The shelves are its feeds: it has no other power distribution units.
        assert not any(pdu.startswith(f"pdu-{rack.name}-") for pdu in design.floor.pdus)


def test_nodes_have_the_same_place_in_a_rack_that_is_not_full() -> None:
    full, part = designed(18, "dgx-gb200"), designed(3, "dgx-gb200")
    places = {host: part.floor.places[host].unit for host in part.pod.hosts()}
    assert places == {host: full.floor.places[host].unit for host in part.pod.hosts()}


def test_eight_racks_have_the_leaves_that_the_reference_architectures_name() -> None:
    # A note that cites them: eight leaves for each rail of a GB200 unit of eight racks, two for each of a GB300 one.
    sizes = [designed(144, model).compute for model in MODELS]
    assert [size.leaf for size in sizes if size] == [4 * 8, 4 * 2]


def test_power_is_that_of_the_racks_that_the_sources_name() -> None:
    power = [designed(18, model).floor.racks for model in MODELS]
    assert [round(max(rack.power_w for rack in racks), -3) for racks in power] == [120_000, 142_000]


def test_a_feed_that_does_not_carry_a_rack_alone_is_said() -> None:
    notes = [" ".join(designed(18, model).notes) for model in MODELS]
    assert "an NVLink domain" not in notes[0]
    assert "an NVLink domain draws 142.0 kW, and half of its power shelves give 132.0 kW" in notes[1]


def test_switches_and_shelves_are_managed_and_bought() -> None:
    design = designed(19, "dgx-gb300")
    cabled = {cable.a for cable in design.cables if cable.fabric == "management"}
    addresses = set(next(network for network in design.networks if network.name == "switches").addresses)
    names = {f"nvl{rack}-{part}" for rack in ("01", "02") for part in ("switch1", "switch9", "shelf1", "shelf8")}
    assert names <= cabled
    assert names <= addresses
    bought = {item.kind: item.count for item in design.bill()}
    assert (bought[NVLINK_SWITCH], bought[POWER_SHELF]) == (18, 16)


def test_growth_by_a_rack_moves_nothing() -> None:
    planned = {"compute": {"nodes_planned": 36}}
    old, new = (designed(nodes, "dgx-gb200", fabrics=planned) for nodes in (18, 36))
    growth = new.growth_from(old)
    assert not growth.moved
    assert not growth.removed


def test_slurm_has_a_block_for_each_domain_from_the_version_on_that_knows_it() -> None:
    pod = pod_of(40, schedulers=[{"kind": "slurm"}])
    scheduler = pod.scheduler()
    assert isinstance(scheduler, SlurmScheduler)
    new, old = (render(pod, scheduler, SlurmSite("ctl", version)) for version in ((23, 11), (22, 5)))
    assert new["topology.conf"] == (
        "BlockName=nvl01 Nodes=dgx[0001-0018]\n"
        "BlockName=nvl02 Nodes=dgx[0019-0036]\n"
        "BlockName=nvl03 Nodes=dgx[0037-0040]\n"
        "BlockSizes=4\n"
    )
    assert "TopologyPlugin=topology/block\n" in new["slurm.conf"]
    assert old["topology.conf"].startswith("SwitchName=su1 Nodes=dgx[0001-0018]\n")
    assert "TopologyPlugin=topology/tree\n" in old["slurm.conf"]
    files = scheduler_files(Design.of(pod))
    assert files["slurm/block/topology.conf"].partition("\n")[2] == new["topology.conf"]
    block = yaml.safe_load(files["slurm/block/topology.yaml"])[0]["block"]
    assert block["block_sizes"] == [4]
    assert [row["block"] for row in block["blocks"]] == ["nvl01", "nvl02", "nvl03"]


def test_kubernetes_nodes_are_labelled_with_their_domain() -> None:
    nodes = yaml.safe_load_all(scheduler_files(designed(19, "dgx-gb200"))["kubernetes/node-labels.yaml"])
    labels = [node["metadata"]["labels"] for node in nodes]
    assert labels[0]["podwright.dev/nvlink-domain"] == "nvl01"
    assert labels[18]["network.topology.nvidia.com/accelerator"] == "pod-nvl02"


def test_runs_are_wished_into_one_domain_and_then_one_unit() -> None:
    labels = [near_labels(pod_of(36, model)) for model in ("dgx-gb200", "dgx-h100")]
    domain = ("nvidia.com/gpu.clique", "podwright.dev/nvlink-domain")
    assert labels == [(*domain, "podwright.dev/unit"), ("podwright.dev/unit",)]
    assert NVLINK_DOMAIN == DOMAIN_LABEL


def test_racks_are_drawn_against_their_own_limits() -> None:
    drawing = "".join(racks_svg(designed(36, "dgx-gb200"), theme.asset("tokens.css")).values())
    assert "at most 35 or 132 kW a rack" in drawing
    # A domain of 120 kW fills 91 % of the bar.
    assert f'width="{WIDTH * 119_988 / 132_000:g}"' in drawing


def test_other_pods_have_no_blocks() -> None:
    files = scheduler_files(designed(2))
    assert "slurm/block/topology.conf" not in files
    assert "accelerator" not in files["kubernetes/node-labels.yaml"]


def test_a_domain_is_one_machine_to_a_collective() -> None:
    pod = pod_of(36)
    sheets = [AcceptanceSheet(place(pod, pod.hosts()[:count])) for count in (18, 36)]
    one, two = (sheet.verdict.expected.bus_gb_s for sheet in sheets)
    spans = [sheet.placement.span for sheet in sheets]
    assert spans == ["one NVLink domain", "2 NVLink domains"]
    # The tray's four ports carry 192 GB/s: what is more goes over NVLink.
    assert one > 192
    assert two <= one
    assert all(row.alarm_gb_s is None for sheet in sheets for row in sheet.rows())


@pytest.mark.parametrize("nodes", [1, 2, 17, 18, 36, 40, 144])
def test_a_collective_never_is_faster_on_more_domains(nodes: int) -> None:
    pod = pod_of(144, "dgx-gb300")
    times = [row.expected.time_s for row in AcceptanceSheet(place(pod, pod.hosts()[:nodes])).rows()]
    assert times == sorted(times)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"fabrics": {"compute": {"scalable_unit": 20}}}, "units of 20 nodes tear NVLink domains of 18 apart"),
        ({"racks": {"power": "35kW"}}, "an NVLink domain of dgx-gb200 draws 119,988 W, and a rack takes 35,000 W"),
        ({"racks": {"rack_units": 30}}, "an NVLink domain of dgx-gb200 is 35 rack units high, and a rack has 30"),
    ],
)
def test_what_tears_or_starves_a_domain_is_refused(more: dict[str, Any], message: str) -> None:
    with pytest.raises(Refusal, match=message):
        Design.of(pod_of(60, **more))


def test_the_document_has_domains_and_headroom(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["design", "--nodes", "18", "--model", "dgx-gb200", "--json"]) == 0
    racks = json.loads(capsys.readouterr().out)["racks"]
    assert racks["nvlink_domains"] == 1
    fullest = max(racks["racks"], key=lambda rack: rack["power_w"])
    assert fullest["limit_w"] - fullest["power_w"] == fullest["headroom_w"] == 132_000 - 119_988
