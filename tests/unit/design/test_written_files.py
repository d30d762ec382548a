"""What is written is held against what reads it: Graphviz itself, and NetBox's import forms as data."""

from __future__ import annotations

import csv
import html
import io
import re
import subprocess
from collections import Counter
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from podwright import theme
from podwright.design import Design
from podwright.design.discovered import read_discovered
from podwright.design.exports.dot import dot
from podwright.design.exports.files import design_files
from podwright.design.exports.ibnet import Port
from podwright.design.exports.netbox import netbox_files
from podwright.design.exports.schedulers import scheduler_files
from podwright.design.management_tiers import SITE
from podwright.spec import Refusal
from tests.paths import CASES
from tests.unit.design.pods import designed, group

FORMS: dict[str, Any] = yaml.safe_load((CASES / "design" / "netbox_forms.yaml").read_text())
TOKENS = theme.asset("tokens.css")
STORAGE = [
    {"name": "fast", "kind": "lustre", "model": "ddn-ai400x", "bandwidth": "480GB/s"},
    {"name": "home", "kind": "nfs"},
]


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


@pytest.mark.parametrize(("nodes", "model"), [(20, "dgx-a100"), (140, "dgx-a100"), (1023, "dgx-h100")])
@pytest.mark.parametrize("fabric", ["compute", "storage"])
def test_graphviz_draws_a_picture_and_no_strip(nodes: int, model: str, fabric: str) -> None:
    text = dot(designed(nodes, model, storage=STORAGE), fabric)
    drawn = subprocess.run(["dot", "-Tplain"], input=text, capture_output=True, text=True, check=True)
    assert drawn.stderr == ""
    _, _, width, height = drawn.stdout.splitlines()[0].split()
    assert float(width) <= 4 * float(height)


def test_a_graph_has_every_cable() -> None:
    design = designed(140, storage=STORAGE)
    for fabric, wired in design.wired.items():
        labels = re.findall(r'\[label="(\d+)"\]', dot(design, fabric))
        assert sum(map(int, labels)) == len(wired.cables)


@settings(max_examples=8)
@given(
    st.integers(1, 45),
    st.sampled_from(["dgx-a100", "dgx-h100", "dgx-b200", "dgx-b300"]),
    st.sampled_from([{"layout": "rail"}, {"layout": "classic"}, {"kind": "ethernet", "switch": "sn5600"}]),
    st.booleans(),
)
def test_no_port_twice_no_name_twice_and_both_ends_exist(
    nodes: int, model: str, compute: dict[str, str], systems: bool
) -> None:
    design = designed(nodes, model, fabrics={"compute": compute}, storage=STORAGE if systems else [])
    files = design_files(design, TOKENS)
    cables = rows(files["cables.csv"])
    ends = Counter((row[f"device_{side}"], row[f"port_{side}"]) for row in cables for side in "ab")
    assert [end for end, count in ends.items() if count > 1] == []
    names = Counter(device.name for rack in design.floor.racks for _, device in rack.devices)
    assert [name for name, count in names.items() if count > 1] == []
    assert {device for device, _ in ends} <= {*names, *design.floor.pdus, "storage", "home", SITE}
    panels = Counter((row[f"device_{side}"], row[f"panel_{side}"]) for row in cables for side in "ab")
    assert set(panels.values()) == {1}
    labels = Counter(row["label"] for row in cables)
    assert set(labels.values()) == {1}
    assert {row["cable"] for row in rows(files["labels.csv"])} == {row["cable"] for row in cables}
    for fabric in design.wired:
        own = {frozenset(_names(row)) for row in cables if row["fabric"] == fabric}
        if fabric == "storage" or design.underlay is None:
            _check_fabric_files(files, fabric, own)
    _check_sheets(files, cables)
    _check_netbox(design)


def _names(row: dict[str, str]) -> list[str]:
    """Both ends by the names of programs: those of a switch by device and port."""
    return [f"{row[f'device_{side}']} {row[f'port_{side}']}" for side in "ab"]


def _check_fabric_files(files: dict[str, str], fabric: str, cables: set[frozenset[str]]) -> None:
    """What UFM and ibnetdiscover are given are the cables of the plan, each port once."""
    links = read_discovered(files[f"{fabric}.ibnetdiscover"]).ports()
    assert all(links[peer] == port for port, peer in links.items())
    named = {frozenset(_port_name(port) for port in pair) for pair in links.items()}
    assert named == cables
    sheet = list(csv.reader(io.StringIO(files[f"ufm/{fabric}-p2p.csv"])))[1:]
    ends = Counter((row[first + 2], row[first + 3]) for row in sheet for first in (0, 4))
    assert (len(sheet), set(ends.values())) == (len(cables), {1})


def _port_name(port: Port) -> str:
    return port.device if " " in port.device else f"{port.device} {port.number}"


def _check_sheets(files: dict[str, str], cables: list[dict[str, str]]) -> None:
    """Every cable is on the sheets of its switches under its label, and in the bundle of its racks."""
    placed = [row for row in cables if row["bundle"]]
    shown = Counter(html.unescape(text) for text in re.findall("<td>([^<]+ - [^<]+)</td>", files["switches.html"]))
    switches = set(re.findall('<section id="([^"]+)">', files["switches.html"]))
    assert shown == {row["label"]: len(switches & {row["device_a"], row["device_b"]}) for row in cables}
    bundled = re.findall("<td>([^<]+ - [^<]+)</td>", files["bundles.html"])
    assert Counter(map(html.unescape, bundled)) == dict.fromkeys((row["label"] for row in placed), 1)


def _check_netbox(design: Design) -> None:
    """Import all files in their order, row by row, as the forms would: every reference must be there already."""
    known: dict[str, set[tuple[str, ...]]] = {}
    for name, text in netbox_files(design).items():
        version, _, file = name.rpartition("/")
        form = FORMS[version or "current"][file[3:].removesuffix(".csv")]
        records = rows(text)
        columns = set(text.splitlines()[0].split(","))
        assert set(form["required"]) <= columns <= {*form["required"], *form["optional"]}
        for row in records:
            _check_row(row, form, known)
        if not version:
            known[file[3:].removesuffix(".csv")] = _unique(records, form["unique"])


def _check_row(row: dict[str, str], form: dict[str, Any], known: dict[str, set[tuple[str, ...]]]) -> None:
    assert all(row[column] for column in form["required"])
    for column, pattern in form.get("patterns", {}).items():
        assert re.fullmatch(pattern, row[column]), (column, row)
    for columns, list_name in form.get("references", {}).items():
        key = tuple(row[column] for column in columns.split("+"))
        assert key[0] == "" or key in known[list_name], (columns, row)


def _unique(records: list[dict[str, str]], columns: list[list[str]]) -> set[tuple[str, ...]]:
    """Return the key by which others name a row, which is the first; no key of a form is there twice."""
    for key in columns:
        # A value that is left out is no value, and equal to no other.
        values = [tuple(row[column] for column in key) for row in records]
        counted = Counter(value for value in values if all(value))
        assert [value for value, count in counted.items() if count > 1] == []
    return {tuple(row[column] for column in columns[0]) for row in records}


def test_every_file_of_the_large_pods_is_imported_whole() -> None:
    _check_netbox(designed(140, nodes=[group(140)], storage=STORAGE))


@pytest.mark.parametrize(("model", "planes"), [("dgx-h100", 1), ("dgx-b300", 2)])
def test_every_file_of_an_ethernet_pod_is_imported_whole(model: str, planes: int) -> None:
    compute = {"kind": "ethernet", "switch": "sn5600", "planes": planes}
    _check_netbox(designed(70, model, fabrics={"compute": compute}, storage=STORAGE))


def test_interfaces_have_the_speed_of_their_ports() -> None:
    """NetBox's types of InfiniBand are one lane each, so that the type alone does not tell it."""
    files = netbox_files(designed(4, "dgx-h100", storage=STORAGE))
    speeds = {(row["type"], row["speed"]) for row in rows(files["07-interfaces.csv"])}
    assert speeds == {("infiniband-ndr", "400000000"), ("1000base-t", "1000000"), ("200gbase-x-qsfp56", "200000000")}


@pytest.mark.parametrize(
    ("hosts", "storage", "message"),
    [
        ("leaf-u01-r[1-8]", "fast", "nodes: leaf-u01-r1 is the name of a compute leaf switch of this design"),
        ("mg-node-[01-04]", "fast", "nodes: mg-node-01 is the name of a management leaf switch of this design"),
        ("fast-[01-04]", "fast", "nodes: fast-01 is the name of a storage system of this design"),
        ("n[1-4]", "st-spine", "storage: st-spine-01 is the name of a storage spine switch of this design"),
    ],
)
def test_a_name_is_one_device(hosts: str, storage: str, message: str) -> None:
    systems = [{"name": storage, "kind": "lustre", "model": "ddn-ai400x", "bandwidth": "480GB/s"}]
    with pytest.raises(Refusal) as caught:
        designed(1, nodes=[{"hosts": hosts, "model": "dgx-a100"}], storage=systems)
    assert message in str(caught.value)


def test_labels_of_other_schedulers_follow_the_tree() -> None:
    design = designed(420, fabrics={"storage": {"switch": {"ports": 128}}})
    nodes = list(yaml.safe_load_all(scheduler_files(design)["kubernetes/node-labels.yaml"]))
    tiers = ("leaf", "spine", "core")
    last = [nodes[-1]["metadata"]["labels"][f"network.topology.nvidia.com/{tier}"] for tier in tiers]
    assert last == ["pod-su21", "pod-group2", "pod-core"]
