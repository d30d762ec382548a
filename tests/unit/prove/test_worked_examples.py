"""The worked examples of docs/cost.md, computed by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podwright.cli.main import main
from podwright.runs import Home
from tests.docs.console import read_page
from tests.fixtures.repeats import Planted, asked_of, write_one
from tests.paths import ROOT

PAGE = ROOT / "docs" / "cost.md"
BOUGHT = 20 * 199_000 + 19 * 20_000 + (200 * 900 + 197 * 150 + 50 * 5)
SUPPORT = BOUGHT * 0.08 * 4
POWER = (20 * 6.5 + 2 * 0.3) * 8760 * 4 * 0.22
COOLING = POWER * 0.3
STAFF = 4 * 240_000
TOTAL = BOUGHT + SUPPORT + POWER + COOLING + STAFF
GPU_HOURS = 160 * 8760 * 4 * 0.7


@pytest.fixture
def pod(tmp_path: Path) -> str:
    path = tmp_path / "pod.yaml"
    path.write_text(read_page(PAGE).files["pod.yaml"])
    return str(path)


def test_the_pod(pod: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", "pod", pod, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["total"] == pytest.approx(TOTAL)
    assert document["per_gpu_hour"] == pytest.approx(TOTAL / GPU_HOURS)
    text = PAGE.read_text()
    for amount in (BOUGHT, SUPPORT, POWER, COOLING, STAFF, TOTAL):
        assert f"{amount:,.0f}" in text
    assert f"at least {TOTAL / GPU_HOURS:.2f} EUR a GPU hour" in text


def test_the_result(
    pod: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "home"))
    home = Home.open(tmp_path / "home")
    write_one(home, asked_of("train-aaaa", Planted()), 3600.0, Planted())
    assert main(["cost", "run", "train-aaaa", "--pod", pod, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    amounts = {item["name"]: item["amount"] for item in document["items"]}
    rest, electricity = TOTAL - POWER - COOLING - STAFF, 0.4 * 1.3 * 0.22
    machine, staff, idle = rest / GPU_HOURS, STAFF / GPU_HOURS, (POWER + COOLING) / GPU_HOURS * 0.3
    assert amounts["training"] == pytest.approx(machine)
    assert amounts["staff"] == pytest.approx(staff, rel=1e-3)
    assert amounts["idle electricity"] == pytest.approx(idle, rel=1e-3)
    assert amounts["electricity"] == pytest.approx(electricity)
    assert document["co2_kg"] == pytest.approx(0.4 * 1.3 * 0.35)
    text = PAGE.read_text().replace("\n", " ")
    assert f"{rest:,.0f} EUR, which is {machine:.4f} EUR a GPU hour; staff adds {staff:.4f}." in text
    assert f"{electricity:.4f} EUR of electricity, and {idle:.4f} its share" in text
    assert f"Together {machine + staff + electricity + idle:.4f} EUR" in text


def test_renting(pod: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", "compare", pod, "--rate", "0.92", "--json"]) == 0
    offers = {row["offer"]: row for row in json.loads(capsys.readouterr().out)["offers"]}
    rent = 14.75 / 8 * 0.92
    assert offers["p4d capacity block"]["per_gpu_hour"] == pytest.approx(rent)
    assert offers["p4d capacity block"]["break_even_utilization"] == pytest.approx(TOTAL / (160 * 8760 * 4) / rent)
