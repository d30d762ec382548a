"""Exports say what the design says, whatever form they have."""

from __future__ import annotations

import csv
import io
import re
import xml.etree.ElementTree as ET
from collections import Counter

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from podwright import theme
from podwright.design.exports.files import design_files
from podwright.design.exports.rack_drawing import racks_svg
from podwright.design.exports.schedulers import scheduler_files
from podwright.design.exports.svg import CLASSES, palette
from podwright.design.management_tiers import SITE
from podwright.design.topology import tree_switches
from podwright.spec import expand_hosts
from tests.unit.design.pods import designed

TOKENS = theme.asset("tokens.css")


@pytest.fixture(scope="module")
def files() -> dict[str, str]:
    return design_files(designed(140), TOKENS)


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_the_same_pod_gives_the_same_bytes() -> None:
    assert design_files(designed(20), TOKENS) == design_files(designed(20), TOKENS)


def test_the_cable_plan_has_every_cable_with_both_ends(files: dict[str, str]) -> None:
    design = designed(140)
    plan = rows(files["cables.csv"])
    assert len(plan) == len(design.cables)
    assert len({row["label"] for row in plan}) == len(plan)
    first = plan[0]
    assert (first["device_a"], first["port_a"], first["device_b"], first["port_b"]) == (
        *("dgx0001", "mlx5_0"),
        *("leaf-u01-r1", "1"),
    )
    assert [row["device_a"] for row in plan if row["device_b"] == SITE] == ["mg-agg-1-01", "mg-agg-2-01"]
    for row in plan:
        if row["device_b"] == SITE:
            continue
        place = design.floor.places[row["device_b"]]
        assert (row["rack_b"], row["u_b"]) == (place.rack, str(place.unit))


def test_netbox_finds_every_interface_and_device_that_a_cable_names(files: dict[str, str]) -> None:
    devices = {row["name"]: row for row in rows(files["netbox/06-devices.csv"])}
    types = {row["model"] for row in rows(files["netbox/04-device-types.csv"])}
    roles = {row["name"] for row in rows(files["netbox/03-device-roles.csv"])}
    racks = {row["name"] for row in rows(files["netbox/05-racks.csv"])}
    interfaces = Counter((row["device"], row["name"]) for row in rows(files["netbox/07-interfaces.csv"]))
    assert set(interfaces.values()) == {1}
    for row in devices.values():
        assert row["device_type"] in types
        assert row["role"] in roles
        assert row["rack"] in racks
    ends = []
    for row in rows(files["netbox/08-cables.csv"]):
        ends += [(row["side_a_device"], row["side_a_name"]), (row["side_b_device"], row["side_b_name"])]
    assert Counter(ends) == interfaces
    assert {device for device, _ in ends} <= set(devices)


def test_ufm_files_agree_with_each_other(files: dict[str, str]) -> None:
    sheet = list(csv.reader(io.StringIO(files["ufm/compute-p2p.csv"])))
    adapters = {row["port"]: row["hca-name"] for row in rows(files["ufm/compute-hca-map.csv"])}
    topo = files["ufm/compute.topo"]
    assert sheet[0] == ["Rack", "U", "Name", "HCA/Port", "Rack", "U", "Name", "Port"]
    assert len(sheet) - 1 == 2800
    assert topo.count("->") == 1120 + 2 * (1120 + 560)
    node = next(row for row in sheet if row[2] == "dgx0001" and row[3] == "5")
    assert f"    P{node[7]} -4x-50G-> HCA_mlx5 dgx0001 {adapters['5']}/P1\n" in topo
    assert adapters["5"] == "mlx5_6"


@settings(max_examples=20)
@given(st.integers(1, 700))
def test_slurm_gets_every_host_once_and_one_root(nodes: int) -> None:
    design = designed(nodes, fabrics={"compute": {"switch": {"ports": 64}}, "storage": {"switch": {"ports": 128}}})
    tree = tree_switches(design.topology)
    hosts = [host for switch in tree for host in switch.hosts]
    assert sorted(hosts) == sorted(design.requirements.hosts)
    children = [name for switch in tree for name in switch.switches]
    names = [switch.name for switch in tree]
    assert len(set(children)) == len(children)
    assert set(names) - set(children) == {names[-1]}
    files = scheduler_files(design)
    (topology,) = yaml.safe_load(files["slurm/topology.yaml"])
    switches = topology["tree"]["switches"]
    assert [one["switch"] for one in switches] == names
    listed = [host for one in switches if "nodes" in one for host in expand_hosts(one["nodes"])]
    assert listed == list(design.requirements.hosts)
    assert files["slurm/topology.conf"].count("SwitchName=") == len(names)


def test_rails_in_groups_are_branches_of_slurm() -> None:
    design = designed(420, fabrics={"storage": {"switch": {"ports": 128}}})
    assert design.compute is not None
    assert design.compute.groups == 2
    kinds = Counter(switch.name.rstrip("0123456789") for switch in tree_switches(design.topology))
    assert kinds == {"su": 21, "group": 2, "core": 1}


def test_labels_are_for_the_hosts_of_kubernetes() -> None:
    schedulers = [{"kind": "slurm", "hosts": "dgx[0001-0030]"}, {"kind": "kubernetes", "hosts": "dgx[0031-0040]"}]
    design = designed(40, schedulers=schedulers)
    made = design_files(design, TOKENS)
    labelled = list(yaml.safe_load_all(made["kubernetes/node-labels.yaml"]))
    assert [one["metadata"]["name"] for one in labelled] == expand_hosts("dgx[0031-0040]")
    assert labelled[0]["metadata"]["labels"] == {
        "podwright.dev/pod": "pod",
        "podwright.dev/unit": "su2",
        "podwright.dev/rack": design.floor.places["dgx0031"].rack,
        "topology.kubernetes.io/rack": f"pod-{design.floor.places['dgx0031'].rack}",
        "network.topology.nvidia.com/leaf": "pod-su2",
    }
    assert "dgx0031" not in made["slurm/topology.conf"]


@pytest.mark.parametrize("name", ["compute.svg", "storage.svg", "racks/row-A.svg", "racks/row-C.svg"])
def test_drawings_are_whole_and_nothing_sticks_out(files: dict[str, str], name: str) -> None:
    root = ET.fromstring(files[name])
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    space = "{http://www.w3.org/2000/svg}"
    boxes = root.findall(f"{space}rect")
    for box in boxes:
        x, y = float(box.attrib.get("x", 0)), float(box.attrib.get("y", 0))
        assert 0 <= x <= x + float(box.attrib["width"]) <= width
        assert 0 <= y <= y + float(box.attrib["height"]) <= height
    assert {box.attrib["class"] for box in boxes} <= set(CLASSES)
    assert "var(" not in files[name]
    assert "http" not in files[name].replace("http://www.w3.org/2000/svg", "")


def test_every_switch_is_in_its_drawing(files: dict[str, str]) -> None:
    for name in ("compute", "storage"):
        for switch in designed(140).wired[name].switches:
            assert switch.name in files[f"{name}.svg"]


def test_the_colours_are_the_shared_tokens() -> None:
    colours = palette(TOKENS)
    assert {one for pair in CLASSES.values() for one in pair if one} <= set(colours)


@pytest.mark.parametrize("name", ["racks.html", "switches.html", "bundles.html"])
def test_sheets_have_a_page_each_and_load_nothing(files: dict[str, str], name: str) -> None:
    design = designed(140)
    names = {
        "racks.html": {rack.name for rack in design.floor.racks},
        "switches.html": {switch.name for switch in design.switches},
        "bundles.html": {row["bundle"] for row in rows(files["cables.csv"])} - {""},
    }[name]
    assert set(re.findall('<section id="([^"]+)">', files[name])) == names
    assert "src=" not in files[name]
    assert "break-before: page" in files[name]


def test_labels_have_both_ends_of_every_cable_and_bundles_all_cables(files: dict[str, str]) -> None:
    cables, labels = rows(files["cables.csv"]), rows(files["labels.csv"])
    assert Counter(row["cable"] for row in labels) == Counter({row["label"]: 2 for row in cables})
    assert [row["cable"] for row in cables] == [row["label"] for row in cables]
    assert {(row["near"], row["far"]) for row in labels} == {(row["far"], row["near"]) for row in labels}
    bundles = rows(files["bundles.csv"])
    assert sum(int(row["cables"]) for row in bundles) == len(cables)
    assert Counter(row["bundle"] for row in cables) == {row["bundle"]: int(row["cables_in_bundle"]) for row in bundles}
    sizes = [int(row["cables_in_bundle"]) for row in bundles]
    assert sizes == sorted(sizes, reverse=True)


def test_racks_are_drawn_row_by_row_with_a_legend() -> None:
    drawn = racks_svg(designed(1023, "dgx-h100"), TOKENS)
    assert len(drawn) == 26
    for row, text in drawn.items():
        root = ET.fromstring(text)
        assert float(root.attrib["width"]) <= 1400
        assert float(root.attrib["height"]) <= 1500
        assert f"pod: row {row}, " in text
        assert "cable manager" in text


def test_a_classic_layout_is_drawn_too() -> None:
    made = design_files(designed(30, fabrics={"compute": {"layout": "classic"}}), TOKENS)
    assert "leaf-012" in made["compute.svg"]
    assert "leaf-012" in made["compute.dot"]
