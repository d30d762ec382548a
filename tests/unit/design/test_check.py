"""A fabric that was built, compared with its design."""

from __future__ import annotations

import pytest

from podwright.design.check import check_fabric, read_links
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
    assert read_links(REAL)[leaf] == host
    assert read_links(REAL)[host] == leaf


@pytest.mark.parametrize("name", ["compute", "storage"])
@pytest.mark.parametrize("nodes", [3, 20, 140])
def test_the_export_reads_back_and_fits(nodes: int, name: str) -> None:
    design = designed(nodes)
    text = ibnetdiscover(design, name)
    assert read_links(text) == fabric_of(design, name).links
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
        "hint: write it with `ibnetdiscover`; switches are known by their names, and this file has dgx0001 mlx5_0"
    )
