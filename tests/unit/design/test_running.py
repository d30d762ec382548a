"""Electricity in a design's total: the price of power, PUE and years reach it, and `cost pod` says the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podwright.cli.main import main

POD = """
name: adas
nodes:
  - {{hosts: "dgx[01-04]", model: dgx-a100}}
costs: {{currency: EUR, node_price: 1000{more}}}
"""


def design(tmp_path: Path, capsys: pytest.CaptureFixture[str], more: str) -> dict[str, object]:
    path = tmp_path / "pod.yaml"
    path.write_text(POD.format(more=more))
    assert main(["design", str(path), "--json"]) == 0
    bill: dict[str, object] = json.loads(capsys.readouterr().out)["bom"]
    return bill


def test_without_a_price_of_power_the_total_is_what_is_bought(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bill = design(tmp_path, capsys, "")
    assert bill["electricity"] is None
    assert bill["total"] == 4000


def test_power_price_years_and_pue_reach_the_total(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    totals = []
    for more in (", power_price_kwh: 0.2", ", power_price_kwh: 0.2, years: 10", ", power_price_kwh: 0.2, pue: 1.5"):
        bill = design(tmp_path, capsys, more)
        power = bill["electricity"]
        assert isinstance(power, dict)
        factor = power["power_price_kwh"] * power["years"] * (power["pue"] or 1)
        assert power["amount"] == pytest.approx(power["power_w"] / 1000 * 8760 * factor)
        assert power["power_w"] >= 4 * 6500
        assert bill["total"] == pytest.approx(4000 + power["amount"])
        totals.append(power["amount"])
    assert totals[1:] == [pytest.approx(totals[0] * 2), pytest.approx(totals[0] * 1.5)]


def test_design_and_cost_pod_agree(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    power = design(tmp_path, capsys, ", power_price_kwh: 0.2, pue: 1.3, years: 4")["electricity"]
    assert isinstance(power, dict)
    assert main(["cost", "pod", str(tmp_path / "pod.yaml"), "--json"]) == 0
    items = {item["name"]: item["amount"] for item in json.loads(capsys.readouterr().out)["items"]}
    assert items["electricity"] + items["cooling"] == pytest.approx(power["amount"])
    assert items["cooling"] == pytest.approx(power["cooling"])


def test_the_terminal_says_what_it_assumes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text(POD.format(more=", power_price_kwh: 0.2, pue: 1.3"))
    assert main(["design", str(path)]) == 0
    printed = capsys.readouterr().out
    line = next(line for line in printed.splitlines() if line.startswith("power "))
    assert "EUR in 5 years (assumed): " in line
    assert line.endswith(" kW, 0.2 a kWh, PUE 1.3")
    assert "EUR with power" in printed
