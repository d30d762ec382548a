"""What is written is held against what reads it: Graphviz itself, and NetBox's import forms as data."""

from __future__ import annotations

import csv
import io
import re
import subprocess
from collections import Counter
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from podwright.design.exports.dot import dot
from podwright.design.exports.netbox import netbox_files
from podwright.design.exports.schedulers import scheduler_files
from podwright.design.exports.tables import cable_plan
from podwright.design.plan import Design
from podwright.spec import Refusal
from tests.paths import CASES
from tests.unit.design.pods import designed, group

FORMS: dict[str, Any] = yaml.safe_load((CASES / "design" / "netbox_forms.yaml").read_text())
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
    st.sampled_from(["dgx-a100", "dgx-h100"]),
    st.sampled_from(["rail", "classic"]),
    st.booleans(),
)
def test_no_port_twice_no_name_twice_and_both_ends_exist(nodes: int, model: str, layout: str, systems: bool) -> None:
    design = designed(nodes, model, fabrics={"compute": {"layout": layout}}, storage=STORAGE if systems else [])
    cables = rows(cable_plan(design))
    ends = Counter((row[f"device_{side}"], row[f"port_{side}"]) for row in cables for side in "ab")
    assert [end for end, count in ends.items() if count > 1] == []
    names = Counter(device.name for rack in design.floor.racks for _, device in rack.devices)
    assert [name for name, count in names.items() if count > 1] == []
    assert {device for device, _ in ends} <= {*names, "storage", "home"}
    _check_netbox(design)


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
        counted = Counter(tuple(row[column] for column in key) for row in records)
        assert [value for value, count in counted.items() if count > 1] == []
    return {tuple(row[column] for column in columns[0]) for row in records}


def test_every_file_of_the_large_pods_is_imported_whole() -> None:
    _check_netbox(designed(140, nodes=[group(140)], storage=STORAGE))


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
