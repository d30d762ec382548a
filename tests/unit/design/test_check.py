"""A fabric that was built, compared with its design."""

from __future__ import annotations

import re

import pytest

from podwright.design.check import check_fabric
from podwright.design.discovered import name_map, read_discovered
from podwright.design.exports.ibnet import Port, fabric_of, ibnetdiscover
from podwright.spec import Refusal
from tests.unit.design.pods import designed

# As a managed switch and two hosts show up in a real fabric.
REAL = """\
vendid=0x2c9
devid=0xd2f0
sysimgguid=0x1
switchguid=0x1(1)
Switch	41 "S-0000000000000001"		# "MF0;leaf-u01-r1:MQM8700/U1" enhanced port 0 lid 3 lmc 0
[1]	"H-0000000000000002"[1](2) 		# "dgx0001 mlx5_0" lid 5 4xHDR
[21]	"S-0000000000000004"[1]		# "spine-01" lid 2 4xHDR

caguid=0x2
Ca	1 "H-0000000000000002"		# "dgx0001 mlx5_0"
[1](2) 	"S-0000000000000001"[1]		# lid 5 lmc 0 "MF0;leaf-u01-r1:MQM8700/U1" lid 3 4xHDR
"""


def test_what_ibnetdiscover_prints_is_read() -> None:
    leaf, host = Port("leaf-u01-r1", 1), Port("dgx0001 mlx5_0", 1)
    assert read_discovered(REAL).ports()[leaf] == host
    assert read_discovered(REAL).ports()[host] == leaf


@pytest.mark.parametrize("name", ["compute", "storage"])
@pytest.mark.parametrize("nodes", [3, 20, 140])
def test_the_export_reads_back_and_fits(nodes: int, name: str) -> None:
    design = designed(nodes)
    text = ibnetdiscover(design, name)
    assert read_discovered(text).ports() == fabric_of(design, name).links
    checked = check_fabric(design, text, "fabric.txt")
    assert (checked.fabrics, checked.cables, checked.findings) == ((name,), len(design.wired[name].cables), [])


def swapped(text: str, first: str, second: str) -> str:
    """Swaps two names wherever they stand."""
    return text.replace(first, "\0").replace(second, first).replace("\0", second)


def test_two_swapped_cables_are_found_and_named() -> None:
    design = designed(20)
    text = ibnetdiscover(design, "compute")
    ids = [line.split('"')[1] for name in ("dgx0003 mlx5_2", "dgx0004 mlx5_2") for line in text.splitlines()
           if line.startswith("Ca") and f'"{name}"' in line]  # fmt: skip
    lines = [swapped(line, *ids) if line.startswith("[") and "mlx5_2" in line else line for line in text.splitlines()]
    wrong = "\n".join(lines)
    # The adapters' own blocks say the same as the leaf's.
    blocks = wrong.split("\n\n")
    a, b = (next(i for i, block in enumerate(blocks) if f'Ca\t1 "{one}"' in block) for one in ids)
    link_a, link_b = blocks[a].splitlines()[-1], blocks[b].splitlines()[-1]
    blocks[a], blocks[b] = blocks[a].replace(link_a, link_b), blocks[b].replace(link_b, link_a)
    found = check_fabric(design, "\n\n".join(blocks), "fabric.txt").findings
    assert [(one.kind, one.message) for one in found] == [
        (
            "wrong",
            "dgx0003 mlx5_2 is joined to leaf-u01-r3 port 4; dgx0003 mlx5_2 belongs to leaf-u01-r3 port 3, "
            "leaf-u01-r3 port 4 belongs to dgx0004 mlx5_2",
        ),
        (
            "wrong",
            "dgx0004 mlx5_2 is joined to leaf-u01-r3 port 3; dgx0004 mlx5_2 belongs to leaf-u01-r3 port 4, "
            "leaf-u01-r3 port 3 belongs to dgx0003 mlx5_2",
        ),
    ]


def test_a_pulled_cable_is_missing() -> None:
    design = designed(20)
    text = ibnetdiscover(design, "compute")
    kept = [line for line in text.splitlines() if not (line.startswith("[21]") or 'S-0002c90300000010"[21]' in line)]
    found = check_fabric(design, "\n".join(kept), "fabric.txt").findings
    assert ("missing", "leaf-u01-r1 port 21 is not joined to spine-01 port 1") in [(f.kind, f.message) for f in found]


def test_a_file_of_another_fabric_is_refused() -> None:
    with pytest.raises(Refusal) as caught:
        check_fabric(designed(20), REAL.replace("leaf-u01-r1", "sw7").replace("spine-01", "sw8"), "other.txt")
    assert str(caught.value) == (
        "other.txt: names no switch of this design\n\n"
        "hint: write it with `ibnetdiscover`; switches are known by their names or by their hosts, "
        "and this file has dgx0001 mlx5_0"
    )


def faults(text: str) -> list[tuple[str, str]]:
    return [(one.kind, one.message) for one in check_fabric(designed(140), text, "fabric.txt").findings]


def test_a_link_at_another_width_or_speed_is_named() -> None:
    text = ibnetdiscover(designed(140), "compute")
    lines = text.splitlines()
    slow = next(number for number, line in enumerate(lines) if "dgx0001 mlx5_0" in line and line.startswith("[1]"))
    lines[slow] = lines[slow].replace("4xHDR", "1xSDR")
    message = "dgx0001 mlx5_0 to leaf-u01-r1 port 1 runs at 1xSDR; it is designed for 4xHDR"
    back = lines.index(next(line for line in lines if line.startswith("Ca") and '"dgx0001 mlx5_0"' in line)) + 1
    lines[back] = lines[back].replace("4xHDR", "1xSDR")
    assert faults("\n".join(lines)) == [("speed", message)]
    everything = faults(text.replace("4xHDR", "1xSDR"))
    assert everything == [("speed", "all 2,800 links run at 1xSDR; they are designed for 4xHDR")]


def test_a_port_is_also_called_what_its_panel_calls_it() -> None:
    design = designed(31, "dgx-h100")
    lines = ibnetdiscover(design, "compute").splitlines()
    slow = next(number for number, line in enumerate(lines) if "dgx0002 mlx5_0" in line and line.startswith("[2]"))
    lines[slow] = lines[slow].replace("4xNDR", "2xNDR")
    back = next(number for number, line in enumerate(lines) if line.startswith("Ca") and '"dgx0002 mlx5_0"' in line)
    lines[back + 1] = lines[back + 1].replace("4xNDR", "2xNDR")
    (deviation,) = check_fabric(design, "\n".join(lines), "fabric.txt").findings
    assert deviation.message == (
        "dgx0002 mlx5_0 (OSFP4P2) to leaf-u01-r1 port 2 (1/2) runs at 2xNDR; it is designed for 4xNDR"
    )


def without(text: str, device: str) -> str:
    """Takes a device out: its own block, and the ends of its cables."""
    blocks = [block for block in text.split("\n\n") if f'# "{device}' not in block.partition("\n[")[0]]
    lines = "\n\n".join(blocks).splitlines()
    return "\n".join(line for line in lines if not (line.startswith("[") and f'# "{device}' in line))


def test_a_dead_switch_and_a_dead_node_are_a_line_each() -> None:
    text = ibnetdiscover(designed(140), "compute")
    assert faults(without(without(text, "spine-r3-05"), "dgx0007 ")) == [
        ("gone", "dgx0007 is not there (8 cables)"),
        ("gone", "spine-r3-05 is not there (21 cables)"),
    ]


def unnamed(text: str) -> str:
    """Calls all switches what those that are managed from outside are called."""
    return re.sub('# "(leaf|spine|core)-[^"]*"', '# "Quantum Mellanox Technologies"', text)


def test_unnamed_switches_are_named_by_what_they_are_joined_to() -> None:
    design = designed(140)
    text = ibnetdiscover(design, "compute")
    checked = check_fabric(design, unnamed(text), "fabric.txt")
    assert (checked.findings, checked.cables) == ([], 2800)
    named = {line.split('"')[1]: line.split('"')[3] for line in text.splitlines() if line.startswith("Switch")}
    assert checked.inferred == named
    assert '0x0002c90300000010 "leaf-u01-r1"\n' in name_map(checked.inferred)


def test_all_faults_at_once() -> None:
    """Switches without names, a dead spine, two rails of a node swapped, one link at 1x SDR."""
    lines = unnamed(without(ibnetdiscover(designed(140), "compute"), "spine-r3-05")).splitlines()
    for number, line in enumerate(lines):
        if line.startswith("Ca"):
            lines[number] = swapped(line, '"dgx0003 mlx5_0"', '"dgx0003 mlx5_1"')
        if line.startswith("Ca") and '"dgx0001 mlx5_0"' in line:
            lines[number + 1] = lines[number + 1].replace("4xHDR", "1xSDR")
    assert faults("\n".join(lines)) == [
        ("gone", "spine-r3-05 is not there (21 cables)"),
        (
            "wrong",
            "dgx0003 mlx5_0 is joined to leaf-u01-r2 port 3; dgx0003 mlx5_0 belongs to leaf-u01-r1 port 3, "
            "leaf-u01-r2 port 3 belongs to dgx0003 mlx5_1",
        ),
        (
            "wrong",
            "dgx0003 mlx5_1 is joined to leaf-u01-r1 port 3; dgx0003 mlx5_1 belongs to leaf-u01-r2 port 3, "
            "leaf-u01-r1 port 3 belongs to dgx0003 mlx5_0",
        ),
        ("speed", "dgx0001 mlx5_0 to leaf-u01-r1 port 1 runs at 1xSDR; it is designed for 4xHDR"),
    ]
