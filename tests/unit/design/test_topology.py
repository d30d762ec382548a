"""The one topology: every node of a scheduler is in it once, and all that are given it are given the same."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from podwright.bringup.plan.slurm import SlurmSite, render
from podwright.design import Design
from podwright.design.exports.schedulers import scheduler_files
from podwright.design.topology import Topology, topology_conf, topology_of, tree_switches, unit_size
from podwright.spec import Pod, Refusal, SlurmScheduler, expand_hosts, load_pod
from podwright.spec.pod import KubernetesScheduler
from tests.paths import CASES, ROOT

ON_LEAF = re.compile(r"^SwitchName=(\S+) Nodes=(\S+)$", re.MULTILINE)
SLURM_NEEDS = {"sockets": 2, "cores": 64, "threads": 128, "memory_bytes": 2**40}


def loadable_pods() -> list[Path]:
    """The pods of all cases and examples; a file that is refused is a case of spec's own."""
    paths = []
    for path in sorted([*CASES.rglob("*.yaml"), *(ROOT / "examples").rglob("*.yaml")]):
        if re.search(rb"^nodes:\s*[\[\n]", path.read_bytes(), re.MULTILINE):
            try:
                load_pod(path)
            except Refusal:
                continue
            paths.append(path)
    return paths


PODS = loadable_pods()


def design_or_none(pod: Pod) -> Design | None:
    try:
        design = Design.of(pod)
        design.floor  # noqa: B018 - the racks are refused only when they are laid out
    except Refusal:
        return None
    return design


def rendered(pod: Pod, scheduler: SlurmScheduler) -> str:
    """The file that bring-up writes; models that do not say what slurm.conf needs are given it."""
    groups = []
    for group in pod.nodes:
        known = {name: getattr(group.model, name) or value for name, value in SLURM_NEEDS.items()}
        groups.append(group.model_copy(update={"model": group.model.model_copy(update=known)}))
    pod = pod.model_copy(update={"nodes": tuple(groups)})
    return render(pod, scheduler, SlurmSite("ctl", (24, 11)))["topology.conf"]


def leaves(text: str) -> list[tuple[str, str]]:
    """Every host with its leaf, in the order of the file."""
    pairs = []
    for name, hosts in ON_LEAF.findall(text):
        pairs += [(host, name) for host in expand_hosts(hosts)]
    return pairs


def test_the_cases_have_pods_enough() -> None:
    assert len(PODS) > 40


@pytest.mark.parametrize("path", PODS, ids=[str(path.relative_to(ROOT)) for path in PODS])
def test_every_scheduler_has_each_of_its_nodes_once_and_in_one_way(path: Path) -> None:
    pod = load_pod(path)
    units = topology_of(pod).unit_names()
    assert sorted(units) == sorted(pod.hosts())
    design = design_or_none(pod)
    if design is None:  # a pod without a fabric has no files about it
        return
    files = scheduler_files(design)
    for scheduler in pod.schedulers:
        hosts = sorted(pod.scheduler_hosts(scheduler))
        if isinstance(scheduler, KubernetesScheduler):
            nodes = list(yaml.safe_load_all(files["kubernetes/node-labels.yaml"]))
            labels = {node["metadata"]["name"]: node["metadata"]["labels"] for node in nodes}
            assert sorted(node["metadata"]["name"] for node in nodes) == hosts
            assert all(label["podwright.dev/unit"] == units[host] for host, label in labels.items())
        else:
            conf = rendered(pod, scheduler)
            assert sorted(leaves(conf)) == [(host, units[host]) for host in hosts]
            comment, _, exported = files["slurm/topology.conf"].partition("\n")
            assert comment.startswith("# ")
            assert exported == conf


def read(tmp_path: Path, text: str) -> Pod:
    path = tmp_path / "pod.yaml"
    path.write_text(f"name: p\n{text}\n")
    return load_pod(path)


def units(topology: Topology) -> list[tuple[str, ...]]:
    return [unit.hosts for unit in topology.units]


def test_units_follow_the_file(tmp_path: Path) -> None:
    pod = read(tmp_path, 'nodes: [{hosts: "d[1-5]", model: dgx-a100}]\nfabrics: {compute: {scalable_unit: 2}}')
    assert units(topology_of(pod)) == [("d1", "d2"), ("d3", "d4"), ("d5",)]


def test_reserved_slots_are_taken_from_the_first_unit(tmp_path: Path) -> None:
    fabric = "fabrics: {compute: {scalable_unit: 3, reserved_slots: 1}}"
    pod = read(tmp_path, f'nodes: [{{hosts: "d[1-6]", model: dgx-a100}}]\n{fabric}')
    assert units(topology_of(pod)) == [("d1", "d2"), ("d3", "d4", "d5"), ("d6",)]


def test_a_pod_without_a_fabric_is_one_unit(tmp_path: Path) -> None:
    pod = read(tmp_path, 'nodes: [{hosts: "c[1-3]", model: cpu-server}]')
    assert units(topology_of(pod)) == [("c1", "c2", "c3")]
    assert unit_size(pod) is None


def test_a_unit_that_the_file_names_holds_without_compute_ports(tmp_path: Path) -> None:
    pod = read(tmp_path, 'nodes: [{hosts: "c[1-3]", model: cpu-server}]\nfabrics: {compute: {scalable_unit: 2}}')
    assert units(topology_of(pod)) == units(Design.of(pod).topology) == [("c1", "c2"), ("c3",)]
    assert unit_size(pod) == 2


def test_a_unit_that_nobody_names_is_as_large_as_the_switch_allows(tmp_path: Path) -> None:
    pod = read(tmp_path, 'nodes: [{hosts: "d[1-20]", model: dgx-1}]')
    assert [len(hosts) for hosts in units(topology_of(pod))] == [18, 2]
    assert unit_size(pod) == 18


@pytest.mark.parametrize(
    ("fabric", "sizes"),
    [
        ("{scalable_unit: 2, rails: 5}", [2, 1]),
        ("{scalable_unit: 2, nodes_planned: 1}", [2, 1]),
        ("{scalable_unit: 2, reserved_slots: 2}", [2, 1]),
    ],
)
def test_a_fabric_that_cannot_be_designed_still_has_units(tmp_path: Path, fabric: str, sizes: list[int]) -> None:
    pod = read(tmp_path, f'nodes: [{{hosts: "d[1-3]", model: dgx-a100}}]\nfabrics: {{compute: {fabric}}}')
    with pytest.raises(Refusal):
        Design.of(pod)
    assert [len(hosts) for hosts in units(topology_of(pod))] == sizes
    assert unit_size(pod) == 2


def test_hosts_outside_the_fabric_are_a_leaf_of_their_own(tmp_path: Path) -> None:
    text = 'nodes: [{hosts: "d[1-3]", model: dgx-a100}, {hosts: "c[1-2]", model: cpu-server}]'
    topology = topology_of(read(tmp_path, f"{text}\nfabrics: {{compute: {{scalable_unit: 2}}}}"))
    assert topology_conf(topology) == (
        "SwitchName=su1 Nodes=d[1-2]\nSwitchName=su2 Nodes=d3\nSwitchName=outside Nodes=c[1-2]\n"
        "SwitchName=spine Switches=su[1-2],outside\n"
    )
    assert topology_conf(topology.part(["c1"])) == "SwitchName=outside Nodes=c1\n"
    assert topology_conf(topology.part(["d3", "c1"])).splitlines()[-1] == "SwitchName=spine Switches=su2,outside"


def test_units_keep_their_group_where_a_scheduler_has_only_some(tmp_path: Path) -> None:
    text = 'nodes: [{hosts: "d[1-420]", model: dgx-a100}, {hosts: c1, model: cpu-server}]'
    topology = topology_of(read(tmp_path, text))
    switches = {switch.name: switch.switches for switch in tree_switches(topology)}
    assert switches["core"] == ("group1", "group2", "outside")
    assert [len(switches[name]) for name in ("group1", "group2")] == [11, 10]
    part = {switch.name: switch.switches for switch in tree_switches(topology.part([f"d{n}" for n in (219, 221)]))}
    assert part == {"su11": (), "su12": (), "group1": ("su11",), "group2": ("su12",), "core": ("group1", "group2")}
    last = tree_switches(topology.part(["d221", "d420"]))[-1]
    assert (last.name, last.switches) == ("spine", ("su12", "su21"))


def test_units_of_a_single_rail_have_groups_too_and_those_of_a_classic_layout_none(tmp_path: Path) -> None:
    nodes = 'nodes: [{hosts: "d[1-1200]", model: {nics: [{kind: compute, speed: 200Gb/s}]}}]'
    fabric = "switch: {ports: 40}, scalable_unit: 20"
    rail = tree_switches(topology_of(read(tmp_path, f"{nodes}\nfabrics: {{compute: {{{fabric}}}}}")))
    assert (rail[-1].name, len(rail[-1].switches)) == ("core", 3)
    classic = tree_switches(
        topology_of(read(tmp_path, f"{nodes}\nfabrics: {{compute: {{{fabric}, layout: classic}}}}"))
    )
    assert (classic[-1].name, len(classic[-1].switches)) == ("spine", 60)


def test_an_engine_that_asks_for_a_unit_does_not_load_the_models_of_the_files() -> None:
    probe = "import sys, podwright.design.topology; print('pydantic' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout
    assert said == "False\n"
