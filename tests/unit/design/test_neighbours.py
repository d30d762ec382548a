"""An Ethernet fabric that was built, compared with its design by what LLDP told its switches."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from podwright.cli.main import main
from podwright.design import Design
from podwright.design.check import Checked, check_neighbours
from podwright.design.exports.ibnet import Port, fabric_of
from podwright.design.exports.switch_ports import cumulus_port, port_number, sonic_port
from podwright.design.neighbours import Neighbour, read_neighbours
from podwright.design.speeds import switch_at
from podwright.spec import Refusal, SwitchModel, library
from tests.unit.design.pods import designed

ROCE = {"compute": {"kind": "ethernet", "switch": "sn5600"}}
# As the reference of NVUE shows it.
TABLE = """\
Interface  Speed  Type  Remote Host      Remote Port
---------  -----  ----  ---------------  -----------------
eth0       1G     eth   oob-mgmt-switch  swp10
swp1s0     400G   swp   dgx0001          48:b0:2d:76:ee:8e
swp33s1    400G   swp   spine-01         swp1s1
swp34s0           swp
"""
# As `lldpctl -f json` prints several neighbours, one alone, and as `-f json0` does.
SEVERAL = """{"lldp": {"interface": [
  {"eth0": {"via": "LLDP", "chassis": {"oob": {"id": {"type": "mac", "value": "44:38:39:00:00:01"}}},
            "port": {"id": {"type": "ifname", "value": "swp10"}, "ttl": "120"}}},
  {"swp1s0": {"via": "LLDP", "rid": "3", "age": "0 day, 00:10:01",
    "chassis": {"dgx0001": {"id": {"type": "mac", "value": "48:b0:2d:76:ee:8e"}, "descr": "Ubuntu"}},
    "port": {"id": {"type": "mac", "value": "48:b0:2d:76:ee:8e"}, "descr": "enp24s0np0", "ttl": "120"}}}]}}"""
ALONE = """{"lldp": {"interface": {"Ethernet256": {
    "chassis": {"spine-01": {"id": {"type": "mac", "value": "b8:ce:f6:00:00:02"}}},
    "port": {"id": {"type": "local", "value": "etp1b"}, "descr": "Ethernet4"}}}}}"""
VERBOSE = """{"lldp": [{"interface": [{"name": "swp1s0", "via": "LLDP",
    "chassis": [{"id": [{"type": "mac", "value": "48:b0:2d:76:ee:8e"}], "name": [{"value": "dgx0001"}]}],
    "port": [{"id": [{"type": "mac", "value": "48:b0:2d:76:ee:8e"}], "descr": [{"value": "enp24s0np0"}]}]}]}]}"""
NAMELESS = """{"lldp": {"interface": {"swp1s0": {
    "chassis": {"id": {"type": "mac", "value": "48:b0:2d:76:ee:8e"}},
    "port": {"id": {"type": "mac", "value": "48:b0:2d:76:ee:8e"}}}}}}"""


@pytest.mark.parametrize(
    ("text", "neighbours"),
    [
        (
            TABLE,
            [
                Neighbour("eth0", "oob-mgmt-switch", "swp10", "1G"),
                Neighbour("swp1s0", "dgx0001", "48:b0:2d:76:ee:8e", "400G"),
                Neighbour("swp33s1", "spine-01", "swp1s1", "400G"),
            ],
        ),
        (SEVERAL, [Neighbour("eth0", "oob", "swp10"), Neighbour("swp1s0", "dgx0001", "enp24s0np0")]),
        (ALONE, [Neighbour("Ethernet256", "spine-01", "etp1b")]),
        (VERBOSE, [Neighbour("swp1s0", "dgx0001", "enp24s0np0")]),
        (NAMELESS, []),
        ('{"lldp": {}}', []),
    ],
)
def test_what_switches_print_is_read(text: str, neighbours: list[Neighbour]) -> None:
    assert read_neighbours(text, "leaf.json") == neighbours


@pytest.mark.parametrize(("speed", "last"), [(800, "Ethernet504"), (400, "Ethernet508"), (200, "Ethernet510")])
def test_ports_have_the_names_of_both_systems(speed: float, last: str) -> None:
    switch: SwitchModel = switch_at(library("switches")["sn5600"], speed)
    assert sonic_port(switch, switch.ports) == last
    for port in range(1, switch.ports + 1):
        assert port_number(switch, cumulus_port(switch, port)) == port
        assert port_number(switch, sonic_port(switch, port)) == port
    assert [port_number(switch, name) for name in ("eth0", "swp65", "swp0", "Ethernet512", "etp1h", "lo")] == [None] * 6


def test_a_switch_of_the_community_calls_its_ports_so() -> None:
    """The file of SN5600 with 128 ports of 400 Gb/s in sonic-buildimage has these pairs."""
    switch = switch_at(library("switches")["sn5600"], 400)
    names = {"Ethernet0": "etp1a", "Ethernet4": "etp1b", "Ethernet64": "etp9a", "Ethernet508": "etp64b"}
    for name, alias in names.items():
        assert port_number(switch, name) == port_number(switch, alias)
        assert sonic_port(switch, port_number(switch, alias) or 0) == name


PLANES = {"compute": {"kind": "ethernet", "switch": "sn5600", "planes": 2}}


def linux_name(adapter: str) -> str:
    """What Linux calls a port: the planes of one share it, so that it tells nothing of them."""
    return f"enp{adapter.partition('-')[0].removeprefix('mlx5_')}s0np0"


def told(design: Design, swaps: Mapping[Port, Port] | None = None) -> dict[str, str]:
    """Returns what NVUE would print on each switch; `swaps` are the ends that some ports see instead."""
    fabric, model = fabric_of(design, "compute"), design.requirements.compute_switch
    assert model is not None
    rows: dict[str, list[str]] = {switch: [TABLE.splitlines()[0]] for switch in fabric.switches}
    for port, peer in fabric.links.items():
        if port.device not in rows:
            continue
        peer = (swaps or {}).get(port, peer)
        host, _, adapter = peer.device.partition(" ")
        far = linux_name(adapter) if adapter else cumulus_port(model, peer.number)
        rows[port.device].append(f"{cumulus_port(model, port.number)}  400G  swp  {host}.example  {far}")
    return {f"lldp/{switch}.txt": "\n".join(lines) for switch, lines in rows.items()}


def faults(checked: Checked) -> list[tuple[str, str]]:
    return [(finding.kind, finding.message) for finding in checked.findings]


@pytest.mark.parametrize(
    ("nodes", "model", "fabrics"), [(4, "dgx-h100", ROCE), (70, "dgx-h100", ROCE), (70, "dgx-b300", PLANES)]
)
def test_what_was_built_as_designed_is_found_so(nodes: int, model: str, fabrics: dict[str, object]) -> None:
    design = designed(nodes, model, fabrics=fabrics)
    checked = check_neighbours(design, told(design), "lldp")
    assert (faults(checked), checked.cables, checked.fabrics) == ([], len(design.wired["compute"].cables), ("compute",))


def test_swapped_rails_a_dead_spine_and_a_slow_port_at_once() -> None:
    design = designed(70, "dgx-h100", fabrics=ROCE)
    first, second = Port("dgx0003 mlx5_0", 1), Port("dgx0003 mlx5_3", 1)
    texts = told(design, {Port("leaf-u01-r1", 3): second, Port("leaf-u01-r2", 3): first})
    texts.pop("lldp/spine-03.txt")
    texts = {
        file: "\n".join(line for line in text.splitlines() if "spine-03" not in line) for file, text in texts.items()
    }
    leaf = "lldp/leaf-u01-r8.txt"
    texts[leaf] = texts[leaf].replace("swp1s0  400G", "swp1s0  200G")
    assert faults(check_neighbours(design, texts, "lldp")) == [
        ("gone", "spine-03 is not there (128 cables)"),
        (
            "wrong",
            "leaf-u01-r1 port 3 (swp2s0) is joined to dgx0003 mlx5_3; leaf-u01-r1 port 3 (swp2s0) belongs to "
            "dgx0003 mlx5_0, dgx0003 mlx5_3 belongs to leaf-u01-r2 port 3 (swp2s0)",
        ),
        (
            "wrong",
            "leaf-u01-r2 port 3 (swp2s0) is joined to dgx0003 mlx5_0; leaf-u01-r2 port 3 (swp2s0) belongs to "
            "dgx0003 mlx5_3, dgx0003 mlx5_0 belongs to leaf-u01-r1 port 3 (swp2s0)",
        ),
        ("speed", "leaf-u01-r8 port 1 (swp1s0) to dgx0001 mlx5_11 runs at 200G; it is designed for 400G"),
    ]


def test_hosts_that_tell_only_addresses_are_compared_by_name() -> None:
    design = designed(4, "dgx-h100", fabrics=ROCE)
    texts = {file: text.replace("enp", "0c:42:a1:").replace("s0np0", "") for file, text in told(design).items()}
    assert faults(check_neighbours(design, texts, "lldp")) == []
    swapped = texts["lldp/leaf-u01-r1.txt"].replace("dgx0001", "\0").replace("dgx0002", "dgx0001")
    texts["lldp/leaf-u01-r1.txt"] = swapped.replace("\0", "dgx0002")
    assert [kind for kind, _ in faults(check_neighbours(design, texts, "lldp"))] == ["wrong", "wrong"]


def test_one_switch_alone_is_compared_by_its_own_cables() -> None:
    design = designed(4, "dgx-h100", fabrics=ROCE)
    texts = told(design)
    file = "lldp/leaf-u01-r1.txt"
    checked = check_neighbours(design, {file: texts[file]}, file)
    own = [cable for cable in design.wired["compute"].cables if "leaf-u01-r1" in (cable.a, cable.b)]
    assert (faults(checked), checked.cables) == ([], len(own))


@pytest.mark.parametrize(
    ("file", "text", "message"),
    [
        ("leaf-u01-r1.json", '{"lldp": ', "leaf-u01-r1.json:1:10: is not JSON"),
        ("leaf-u01-r1.txt", "swp1 dgx0001", "leaf-u01-r1.txt: is neither form of LLDP neighbours"),
        ("sw7.json", "{}", "lldp: has no file of a switch of this design"),
    ],
)
def test_files_that_tell_nothing_are_refused(file: str, text: str, message: str) -> None:
    with pytest.raises(Refusal) as caught:
        check_neighbours(designed(4, "dgx-h100", fabrics=ROCE), {file: text}, "lldp")
    assert str(caught.value).startswith(message)
    assert "hint: " in str(caught.value)


def test_the_command_takes_a_folder_and_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pod = tmp_path / "pod.yaml"
    pod.write_text(
        json.dumps({"name": "pod", "nodes": [{"hosts": "dgx[0001-0004]", "model": "dgx-h100"}], "fabrics": ROCE})
    )
    (tmp_path / "lldp").mkdir()
    for file, text in told(designed(4, "dgx-h100", fabrics=ROCE)).items():
        (tmp_path / file).write_text(text)
    assert main(["design", str(pod), "--check", str(tmp_path / "lldp")]) == 0
    assert capsys.readouterr().out == "checked   64 cables of compute: as designed\n"
    leaf = tmp_path / "lldp" / "leaf-u01-r1.txt"
    leaf.write_text(leaf.read_text().replace("dgx0001", "dgx0009"))
    assert main(["design", str(pod), "--check", str(leaf)]) == 1
    printed = capsys.readouterr().out
    assert "leaf-u01-r1 port 1 (swp1s0) is joined to dgx0009.example mlx5_0" in printed
    pod.write_text(json.dumps({"name": "pod", "nodes": [{"hosts": "dgx[0001-0004]", "model": "dgx-h100"}]}))
    assert main(["design", str(pod), "--check", str(tmp_path / "lldp")]) == 2
    assert "is about an Ethernet fabric, and this pod has none" in capsys.readouterr().err
