"""Ethernet compute fabrics: the published sizes, numbers that nothing has twice, commands for switches, refusals."""

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from ipaddress import IPv4Network
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from podwright import theme
from podwright.cli.main import main
from podwright.design import Design
from podwright.design.ethernet import Underlay
from podwright.design.exports.files import design_files
from podwright.design.exports.switch_ports import cumulus_port, sonic_port
from podwright.design.speeds import switch_at
from podwright.spec import SwitchModel, library, load_pod
from tests.paths import CASES as ALL_CASES

CASES = ALL_CASES / "design"
H100 = "kind: ethernet, switch: sn5600"
B300 = "kind: ethernet, switch: sn5600, planes: 2"


def published() -> list[dict[str, int]]:
    lines = (CASES / "published_spectrum_x.csv").read_text(encoding="utf-8").splitlines()
    rows = csv.DictReader(line for line in lines if not line.startswith("#"))
    return [{name: int(value) for name, value in row.items()} for row in rows]


def pod_file(folder: Path, nodes: int, fabric: str, model: str = "dgx-h100") -> Path:
    path = folder / "pod.yaml"
    hosts = f"dgx[0001-{nodes:04d}]"
    path.write_text(
        f'name: roce\nnodes:\n  - {{hosts: "{hosts}", model: {model}}}\nfabrics:\n  compute: {{{fabric}}}\n'
    )
    return path


def designed(folder: Path, nodes: int, fabric: str, model: str = "dgx-h100") -> Design:
    return Design.of(load_pod(pod_file(folder, nodes, fabric, model)))


def numbers_of(design: Design) -> Underlay:
    assert design.underlay is not None
    return design.underlay


@pytest.mark.parametrize("row", published(), ids=lambda row: str(row["nodes"]))
def test_published_sizes(row: dict[str, int], tmp_path: Path) -> None:
    size = designed(tmp_path, row["nodes"], B300, "dgx-b300").compute
    assert size is not None
    assert (size.leaf, size.spine, size.core) == (row["leaf"], row["spine"], 0)
    assert (size.node_leaf, size.leaf_spine) == (2 * row["node_leaf_pairs"], 2 * row["leaf_spine_pairs"])


def test_the_largest_published_size_needs_its_planes(tmp_path: Path) -> None:
    one_plane = "kind: ethernet, switch: sn5600, scalable_unit: 32"
    size = designed(tmp_path, 1024, one_plane, "dgx-b300").compute
    assert size is not None
    assert size.tiers == 3


@pytest.mark.parametrize(("speed", "ports", "cage"), [(800, 64, 1), (400, 128, 2), (200, 256, 4), (100, 64, 1)])
def test_ports_of_a_switch_follow_their_speed(speed: float, ports: int, cage: int) -> None:
    switch: SwitchModel = library("switches")["sn5600"]
    split = switch_at(switch, speed)
    assert (split.ports, split.cage_ports) == (ports, cage)


def test_planes_share_no_switch(tmp_path: Path) -> None:
    design = designed(tmp_path, 128, B300, "dgx-b300")
    planes = {switch.name: switch.name.split("-")[-2] for switch in design.switches if switch.fabric == "compute"}
    between = [cable for cable in design.wired["compute"].cables if cable.kind == "leaf_spine"]
    assert {planes[cable.a] == planes[cable.b] for cable in between} == {True}
    host = Counter(planes[cable.b] for cable in design.wired["compute"].cables if cable.a == "dgx0001")
    assert host == {"p1": 8, "p2": 8}


FABRICS = st.sampled_from(
    [
        (H100, "dgx-h100"),
        (H100 + ", scalable_unit: 32", "dgx-h100"),
        (H100 + ", oversubscription: 2", "dgx-h200"),
        ("kind: ethernet, switch: {ports: 8, speed: 400Gb/s}, scalable_unit: 4", "dgx-h100"),
        (B300, "dgx-b300"),
    ]
)


@settings(max_examples=15, deadline=None)
@given(nodes=st.integers(1, 70), fabric=FABRICS)
def test_no_number_is_given_twice(
    nodes: int, fabric: tuple[str, str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    if "ports: 8" in fabric[0]:
        nodes = min(nodes, 16)
    design = designed(tmp_path_factory.mktemp("law"), nodes, *fabric)
    numbers = numbers_of(design)
    addresses = [router.loopback for router in numbers.routers]
    for link in numbers.links:
        addresses += [link.leaf_address, link.host_address]
    assert len(addresses) == len(set(addresses))
    network = IPv4Network("172.16.0.0/12")
    assert all(address in network for address in addresses)
    leaves = [router for router in numbers.routers if router.switch.tier == "leaf"]
    assert len({router.asn for router in leaves}) == len(leaves)
    asns = {router.switch.name: router.asn for router in numbers.routers}
    sessions = Counter[str]()
    for cable in design.wired["compute"].cables:
        if cable.kind in ("leaf_spine", "spine_core"):
            assert asns[cable.a] != asns[cable.b]
            sessions.update([cable.a, cable.b])
    assert sessions == {name: len(ports) for name, ports in numbers.sessions.items()}
    assert len(numbers.links) == sum(cable.kind == "node_leaf" for cable in design.wired["compute"].cables)


def test_growth_changes_no_number(tmp_path: Path) -> None:
    planned = H100 + ", nodes_planned: 192"
    small, large = (numbers_of(designed(tmp_path, nodes, planned)) for nodes in (70, 190))
    after = {router.switch.name: (router.asn, router.loopback, router.block) for router in large.routers}
    for router in small.routers:
        assert after[router.switch.name] == (router.asn, router.loopback, router.block)
    hosts = {(link.cable.a, link.cable.a_port): link.host_address for link in large.links}
    for link in small.links:
        assert hosts[link.cable.a, link.cable.a_port] == link.host_address


def test_commands_of_a_leaf_and_a_spine(tmp_path: Path, golden: Callable[[Path, str], None]) -> None:
    files = design_files(designed(tmp_path, 4, H100 + ", scalable_unit: 4"), theme.asset("tokens.css"))
    switches = [f"{system}/{switch}.sh" for system in ("nvue", "sonic") for switch in ("leaf-u01-r1", "spine-01")]
    for name in (*switches, "bgp.csv", "compute-addresses.csv"):
        golden(CASES.parent / "ethernet" / name, files[name])
    assert not [name for name in files if name.startswith(("ufm/compute", "compute.ibnet"))]
    for name in ("cables.csv", "compute.dot", "compute.svg", "netbox/08-cables.csv", "slurm/topology.conf"):
        assert name in files or name.startswith("slurm"), name


def test_commands_name_ports_that_are_cabled(tmp_path: Path) -> None:
    design = designed(tmp_path, 70, B300, "dgx-b300")
    files = design_files(design, theme.asset("tokens.css"))
    switch = design.requirements.compute_switch
    assert switch is not None
    cabled: dict[str, set[int]] = {}
    for cable in design.wired["compute"].cables:
        for device, port in ((cable.a, cable.a_port), (cable.b, cable.b_port)):
            cabled.setdefault(device, set()).add(port)
    for device in (switch.name for switch in design.wired["compute"].switches):
        words = files[f"nvue/{device}.sh"].split()
        named = {after for before, after in pairwise(words) if before in ("interface", "neighbor")}
        ports = {cumulus_port(switch, port) for port in cabled[device]}
        assert {name for name in named if "s" in name[3:] and "-" not in name} == ports
        words = files[f"sonic/{device}.sh"].split()
        named = {after for before, after in pairwise(words) if before in ("add", "use-link-local-only")}
        assert named - {"Loopback0"} == {sonic_port(switch, port) for port in cabled[device]}


# A command of SONiC -> the field of its models that each group of it is written to.
SONIC_COMMANDS = (
    (r"config hostname (?P<hostname>\S+)", "DEVICE_METADATA"),
    (r'sonic-db-cli CONFIG_DB hset "DEVICE_METADATA\|localhost" \S+ (?P<docker_routing_config_mode>\S+)', "mode"),
    (r"config loopback add (?P<loopback_name>\S+)", "LOOPBACK_INTERFACE"),
    (r"config interface ip add (?P<port_name>\S+) (?P<ip_prefix>\S+)", "INTERFACE"),
    (r'sonic-db-cli CONFIG_DB hset "PORT\|(?P<port_name>[^"]+)" description "(?P<port_description>[^"]*)"', "PORT"),
    (r"config interface ipv6 (?P<ipv6_use_link_local_only>\S+) use-link-local-only (?P<port_name>\S+)", "INTERFACE"),
)


def test_sonic_takes_what_is_written_by_its_own_models(tmp_path: Path) -> None:
    """Every value that our commands write is one that SONiC's models allow; all kinds of commands are there."""
    schema = yaml.safe_load((CASES / "sonic_schema.yaml").read_text(encoding="utf-8"))
    files = design_files(designed(tmp_path, 70, B300, "dgx-b300"), theme.asset("tokens.css"))
    lines = [line for name, text in files.items() if name.startswith("sonic/") for line in text.splitlines()]
    checked: Counter[str] = Counter()
    for line in lines:
        for pattern, kind in SONIC_COMMANDS:
            if match := re.fullmatch(pattern, line):
                checked[kind] += 1
                wrong = [field for field, value in match.groupdict().items() if not re.fullmatch(schema[field], value)]
                assert wrong == [], line
    assert set(checked) == {kind for _, kind in SONIC_COMMANDS}
    other = ("config qos reload", "config save -y")
    commands = [line for line in lines if line.startswith(("config ", "sonic-db-cli ")) and line not in other]
    assert checked.total() == len(commands)


def test_a_shell_reads_the_commands(tmp_path: Path) -> None:
    files = design_files(designed(tmp_path, 4, H100), theme.asset("tokens.css"))
    scripts = [text for name, text in files.items() if name.endswith(".sh")]
    assert len(scripts) == 2 * len(numbers_of(designed(tmp_path, 4, H100)).routers)
    for script in scripts:
        assert subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=True).stderr == ""


def test_netbox_has_ethernet_interfaces(tmp_path: Path) -> None:
    files = design_files(designed(tmp_path, 4, H100), theme.asset("tokens.css"))
    rows = csv.DictReader(files["netbox/07-interfaces.csv"].splitlines())
    kinds = {row["type"] for row in rows if row["device"] == "leaf-u01-r1"}
    assert kinds == {"400gbase-x-osfp", "1000base-t"}


def test_dot_reads_the_graph(tmp_path: Path) -> None:
    dot = shutil.which("dot")
    assert dot is not None, "install graphviz"
    text = design_files(designed(tmp_path, 70, B300, "dgx-b300"), theme.asset("tokens.css"))["compute.dot"]
    done = subprocess.run([dot, "-Tplain"], input=text, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_json_says_what_kind_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["design", str(pod_file(tmp_path, 64, B300, "dgx-b300")), "--json"]) == 0
    compute = json.loads(capsys.readouterr().out)["compute"]
    assert (compute["kind"], compute["planes"], compute["leaf"], compute["spine"]) == ("ethernet", 2, 16, 8)


def test_collectives_of_an_ethernet_pod_are_predicted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", str(pod_file(tmp_path, 8, H100)), "--nodes", "8", "--json"]) == 0
    sizes = json.loads(capsys.readouterr().out)["collectives"]["sizes"]
    assert {"sharp"} & set(sizes[0]["algorithms"]) == set()


REFUSED = {
    "kind: ethernet, switch: qm9700": "qm9700 is an InfiniBand switch, and the compute fabric is Ethernet",
    "switch: sn5600": "sn5600 is an Ethernet switch, and the compute fabric is InfiniBand",
    "kind: ethernet": "no compute switch is named",
    "planes: 2": "an InfiniBand fabric is one plane",
    H100 + ", sharp: true": "Ethernet switches add up nothing",
    H100 + ", reserved_slots: 1": "an Ethernet fabric has no fabric manager",
    H100 + ", planes: 2, layout: classic": "planes are made of rails",
    H100 + ", network: 10.0.0.0/28": "10.0.0.0/28 is too small for 8 leaves",
    H100 + ", network: ten": '"ten" is not an IPv4 network',
    H100 + ", first_asn: 7": "7 to 10015 are not all numbers for private use",
    "kind: ethernat, switch: sn5600": "fabrics.compute.kind",
    H100 + ", planes: 3": (
        "3 planes split compute ports of 400 Gb/s into parts of 133.333, and sn5600 has no such ports"
    ),
    "kind: ethernet, switch: sn2201": (
        "sn2201 has sockets of twisted pair, and the compute ports of dgx-h100 run at 400 Gb/s"
    ),
}


@pytest.mark.parametrize("fabric", REFUSED)
def test_refusals(fabric: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = pod_file(tmp_path, 4, fabric)
    assert main(["design", str(path)]) == 2
    printed = capsys.readouterr().err
    assert REFUSED[fabric] in printed
    assert printed.startswith(f"{path}:5:")
    assert "hint: " in printed


def test_planes_that_need_a_core_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["design", str(pod_file(tmp_path, 1025, B300, "dgx-b300"))]) == 2
    assert "1,025 nodes in 2 planes need a third tier, which is not designed: two tiers hold 1,024" in (
        capsys.readouterr().err
    )
