"""`podwright predict` as a user meets it: sheets compared whole, wrong command lines refused in our words."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from podwright.cli.main import main
from tests.paths import CASES as ALL_CASES

CASES = ALL_CASES / "collectives"
POD = 'name: adas\nnodes:\n  - {hosts: "dgx[001-140]", model: dgx-a100}\n'
CALLS = {
    "one-node": ["--nodes", "1"],
    "sixteen-nodes": ["--nodes", "16"],
    "across-units": ["--hosts", "dgx[011-030]"],
    "across-pods": ["--nodes", "140", "--pods", "2"],
}


@pytest.fixture
def pod(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pod.yaml").write_text(POD)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "home"))


@pytest.mark.usefixtures("pod")
@pytest.mark.parametrize("case", CALLS)
def test_sheet_in_the_terminal(
    case: str, golden: Callable[[Path, str], None], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["predict", "pod.yaml", *CALLS[case]]) == 0
    printed = capsys.readouterr().out
    golden(CASES / case / "expected" / "sheet.txt", printed)
    assert [line for line in printed.splitlines() if len(line) > 80] == []


@pytest.mark.usefixtures("pod")
def test_json_and_csv_hold_the_same_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "pod.yaml", "--nodes", "16", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert main(["predict", "pod.yaml", "--nodes", "16", "--csv"]) == 0
    rows = [line.split(",") for line in capsys.readouterr().out.splitlines()[1:]]
    told = [[str(row["bus_gb_s"]), str(row["alarm_under_gb_s"] or "")] for row in document["collectives"]["sizes"]]
    assert [row[-2:] for row in rows] == told
    assert document["training"] is None


@pytest.mark.usefixtures("pod")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pod.yaml"], "say which nodes"),
        (["pod.yaml", "--nodes", "2", "--hosts", "dgx001"], "say which nodes"),
        (["pod.yaml", "--nodes", "0"], "nodes and pods are whole positive numbers"),
        (["pod.yaml", "--nodes", "141"], "the pod adas has 140 nodes with GPUs, not 141"),
        (["pod.yaml", "--hosts", "dgx[139-141]"], '"dgx141" is not a host of the pod adas'),
        (["nopod", "--nodes", "2"], "there is no pod"),
        (["gone.yaml", "--nodes", "2"], "there is no such file"),
    ],
)
def test_refusals(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", *arguments]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert "hint: " in printed.err or "dgx141" in printed.err
    assert printed.out == ""
