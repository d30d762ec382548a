"""`podwright design` as a user meets it."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podwright.cli.main import main
from podwright.design.exports.ibnet import ibnetdiscover
from tests.paths import ROOT
from tests.unit.design.pods import designed

EXAMPLES = ROOT / "examples"
Call = Callable[..., tuple[int, str, str]]


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Call:
    """Runs a command line; gives its exit code, stdout and stderr."""

    def run(*args: str) -> tuple[int, str, str]:
        code = main(["design", *args])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_json_has_exactly_these_keys(call: Call) -> None:
    code, out, err = call(str(EXAMPLES / "superpod-140.yaml"), "--json")
    document: dict[str, Any] = json.loads(out)
    assert (code, err) == (0, "")
    assert list(document) == ["compute", "storage", "management", "racks", "bom"]
    assert document["compute"] == {
        "kind": "infiniband",
        "planes": 1,
        "tiers": 3,
        "units": 7,
        "leaf": 56,
        "spine": 80,
        "core": 28,
        "cables": {"node_leaf": 1120, "leaf_spine": 1120, "spine_core": 560, "fabric_manager": 0},
    }
    assert document["storage"] == {
        "tiers": 2,
        "ports": 56,
        "leaf": 14,
        "spine": 8,
        "core": 0,
        "cables": {"node_leaf": 280, "leaf_spine": 224, "spine_core": 0, "storage": 56},
        "subscription": "5:4",
        "subscription_nodes": "5:4",
        "subscription_all": "3:2",
    }


def test_without_a_file(call: Call) -> None:
    code, out, _ = call("--nodes", "20", "--model", "dgx-a100", "--json")
    assert (code, json.loads(out)["compute"]["core"]) == (0, 0)
    code, out, _ = call("--nodes", "20", "--model", "dgx-a100")
    assert out.startswith("pod: 20 nodes dgx-a100, dgx[001-020]\n\ncompute     two tiers, 1 scalable unit, qm8790")
    assert max(map(len, out.splitlines())) <= 80


def test_a_pod_or_numbers(call: Call) -> None:
    words = "needs a pod's file, or --nodes and --model"
    for args in ((), ("--nodes", "4"), ("--model", "dgx-a100")):
        code, out, err = call(*args)
        assert (code, out, err.splitlines()[0]) == (2, "", words)
    code, out, err = call("pod.yaml", "--nodes", "4", "--model", "dgx-a100")
    assert err.startswith("a pod's file and --nodes or --model were given: they say the same thing twice\n")
    assert call("--nodes", "4", "--model", "dgx-a10")[2].endswith("did you mean `dgx-a100`?\n")


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        ("0", "--nodes: must be at least 1"),
        ("2001", "nodes: 2,001 nodes with 8 compute ports are more than any tree of 40-port switches can hold"),
        ("100001", "--nodes: more than 100,000 nodes"),
        ("9" * 30, "--nodes: more than 100,000 nodes"),
    ],
)
def test_too_few_and_too_many_nodes(call: Call, nodes: str, words: str) -> None:
    code, out, err = call("--nodes", nodes, "--model", "dgx-a100")
    assert (code, out, err.splitlines()[0]) == (2, "", words)


def test_a_pod_without_a_fabric_says_so(call: Call, tmp_path: Path) -> None:
    pod = tmp_path / "pod.yaml"
    pod.write_text('name: small\nnodes: [{hosts: "m[1-3]", model: cpu-server, roles: [management]}]\n')
    code, out, _ = call(str(pod))
    assert (code, out.splitlines()[:3]) == (
        *(0, ["small: no node is on a fabric", "", "racks       1 rack of 42 units and 35 kW, power not known"]),
    )


def test_cables(call: Call) -> None:
    code, out, _ = call("--nodes", "20", "--model", "dgx-a100", "--cables")
    lines = out.splitlines()
    assert code == 0
    assert lines[0].split() == ["FABRIC", "KIND", "FROM", "TO", "LENGTH", "MADE", "OF"]
    cables = json.loads(call("--nodes", "20", "--model", "dgx-a100", "--cables", "--json")[1])
    assert len(cables) == len(lines) - 1
    assert set(cables[0]) == {"fabric", "kind", "a", "a_port", "b", "b_port", "length_m", "medium"}


def test_growth_that_was_planned(call: Call) -> None:
    old, new = str(EXAMPLES / "superpod-20.yaml"), str(EXAMPLES / "superpod-100.yaml")
    code, out, err = call(new, "--grow-from", old)
    assert (code, err) == (0, "")
    assert out.splitlines()[1] == "moved       0 cables; taken out 0 cables"
    growth = json.loads(call(new, "--grow-from", old, "--json")[1])["growth"]
    assert (growth["moved"], growth["removed"]) == ([], [])
    assert sum(cable["kind"] == "node_leaf" and cable["fabric"] == "compute" for cable in growth["added"]) == 640


def test_growth_that_was_not_planned_is_refused(call: Call, tmp_path: Path) -> None:
    files = {}
    for nodes in (20, 40):
        files[nodes] = tmp_path / f"{nodes}.yaml"
        files[nodes].write_text(f'name: p\nnodes: [{{hosts: "d[001-{nodes:03d}]", model: dgx-a100}}]\n')
    code, out, err = call(str(files[40]), "--grow-from", str(files[20]))
    assert (code, out) == (2, "")
    assert "growing from 20 to 40 nodes moves" in err
    assert err.endswith("hint: `nodes_planned: 40` in the old file would have moved none; `--allow-moves` lists them\n")
    code, out, _ = call(str(files[40]), "--grow-from", str(files[20]), "--allow-moves", "--out", str(tmp_path / "out"))
    assert code == 0
    assert out.splitlines()[3].split() == ["FABRIC", "FROM", "TO"]
    rows = list(csv.DictReader(io.StringIO((tmp_path / "out" / "growth.csv").read_text())))
    assert {row["what"] for row in rows} == {"add", "move"}
    moved = next(row for row in rows if row["what"] == "move")
    assert (moved["label"], moved["new_label"]) == (*("leaf-u01-r1:23 - spine-01:3", "leaf-u01-r1:23 - spine-02:1"),)


def test_check(call: Call, tmp_path: Path) -> None:
    pod = tmp_path / "pod.yaml"
    pod.write_text('name: p\nnodes: [{hosts: "dgx[0001-0020]", model: dgx-a100}]\n')
    file = tmp_path / "fabric.txt"
    file.write_text(ibnetdiscover(designed(20), "compute"))
    assert call(str(pod), "--check", str(file)) == (0, "checked   320 cables of compute: as designed\n", "")
    lines = file.read_text().splitlines()
    file.write_text("\n".join(line for line in lines if not line.startswith("[21]")))
    code, out, err = call(str(pod), "--check", str(file))
    assert (code, err) == (1, "")
    assert out.splitlines()[-1].startswith("checked   320 cables of compute: ")
    document = json.loads(call(str(pod), "--check", str(file), "--json")[1])
    assert document["fabrics"] == ["compute"]
    assert document["findings"] == [
        {"kind": "missing", "message": "leaf-u01-r5 port 21 is not joined to spine-01 port 21"}
    ]
    assert call(str(pod), "--check", str(tmp_path / "none.txt"))[0] == 2
