"""The capacity chain: figures of a talk from stated assumptions, and every case's plan or refusal, compared whole."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright.cli.main import main
from podwright.design import CapacityPlan
from podwright.design.predict.capacity import rounded_up, si
from podwright.design.predict.capacity_file import CapacityFile, parse_capacity
from podwright.spec import load_pod
from podwright.spec.quantity import size_bytes
from tests.paths import ROOT

CASES = ROOT / "tests" / "cases" / "capacity"
NAMES = sorted(path.name for path in CASES.iterdir())
Golden = Callable[[Path, str], None]

# What a talk on training for autonomous driving says, the case that computes it, and how far rounding goes there.
TALK = [
    ("fleet", "data", "bytes_per_year", 200e15, 0.01),
    ("four-k", "data", "bytes_per_day", 1.6e15, 0.01),
    ("images-to-nodes", "training", "node_days_each", 3, 0),
    ("images-to-nodes", "training", "nodes", 30, 0),
]


def load(case: str) -> CapacityFile:
    return parse_capacity((CASES / case / "capacity.yaml").read_text(encoding="utf-8"), "capacity.yaml")


@pytest.mark.parametrize(("case", "section", "name", "said", "rounding"), TALK)
def test_figures_of_the_talk(case: str, section: str, name: str, said: float, rounding: float) -> None:
    assert CapacityPlan.of(load(case)).get(section, name) == pytest.approx(said, rel=rounding)


@pytest.mark.parametrize("case", NAMES)
def test_cases(case: str, golden: Golden, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CASES / case)
    code = main(["capacity", "capacity.yaml"])
    printed = capsys.readouterr()
    if code == 0:
        golden(CASES / case / "expected" / "plan.txt", printed.out)
        assert main(["capacity", "capacity.yaml", "--json"]) == 0
        golden(CASES / case / "expected" / "plan.json", capsys.readouterr().out)
    else:
        assert (code, printed.out) == (2, "")
        golden(CASES / case / "expected" / "errors.txt", printed.err)


def test_the_pod_that_is_written_carries_the_chain(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pod.yaml"
    assert main(["capacity", str(CASES / "fleet" / "capacity.yaml"), "--pod", str(path), "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    pod = load_pod(path)
    assert len(pod.compute_hosts()) == plan["training"]["nodes"]
    held = {storage.name: storage.capacity_bytes or 0 for storage in pod.storage}
    assert held.keys() == plan["tiers"].keys()
    for name, needed in plan["tiers"].items():
        assert needed <= held[name] <= needed * 1.01
    first = pod.storage[0].bandwidth_bytes_s or 0
    assert first >= plan["ingest"]["bytes_s"] + plan["training"]["read_bytes_s"]
    assert main(["design", str(path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["compute"]["units"] == 2


def test_a_pod_file_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text("mine")
    assert main(["capacity", str(CASES / "fleet" / "capacity.yaml"), "--pod", str(path)]) == 2
    assert "is there already" in capsys.readouterr().err
    assert path.read_text() == "mine"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("labels: {images: 5}", "training: the chain does not reach nodes"),
        (
            "labels: {images: 5}\ntraining: {images_per_node_day: 5, within: 1d, gpus_per_node: 4}",
            "training.model: a dgx-a100 has 8 GPUs, and the file computes with 4",
        ),
        (
            "labels: {images: 5}\ntraining: {images_per_node_day: 5, within: 1d, model: dgx-z1}",
            '"dgx-z1" is not in the hardware library',
        ),
    ],
)
def test_a_chain_without_a_pod_is_refused(
    text: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "capacity.yaml").write_text(f"name: part\n{text}\n")
    assert main(["capacity", str(tmp_path / "capacity.yaml"), "--pod", str(tmp_path / "pod.yaml")]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "pod.yaml").exists()


@given(value=st.floats(1, 1e19))
def test_sizes_of_a_pod_are_rounded_up(value: float) -> None:
    assert value <= size_bytes(rounded_up(value, "B")) <= value * 1.011 + 1


@pytest.mark.parametrize("case", ["fleet", "four-k"])
def test_examples_are_the_cases(case: str) -> None:
    example = ROOT / "examples" / f"capacity-{'4k' if case == 'four-k' else case}.yaml"
    assert example.read_text(encoding="utf-8") == (CASES / case / "capacity.yaml").read_text(encoding="utf-8")


def test_no_line_of_a_plan_is_wider_than_80_columns() -> None:
    wide = [
        line for path in CASES.glob("*/expected/plan.txt") for line in path.read_text().splitlines() if len(line) > 80
    ]
    assert wide == []


@given(cars=st.integers(1, 1000), days=st.integers(1, 400), share=st.floats(0.01, 1))
def test_more_cars_need_no_less(cars: int, days: int, share: float) -> None:
    def plan(count: int) -> dict[str, dict[str, float]]:
        text = f"""
name: law
fleet: {{cars: {count}, hours_per_day: 8, sensors: [{{megapixels: 2, fps: 30}}]}}
ingest: {{link: 100Gb/s}}
tiers: [{{name: hot, keep: {days}d}}]
labels: {{share_of_frames: {share}}}
training: {{images_per_node_day: 900000, within: 10d}}
"""
        return CapacityPlan.read(text, "law.yaml").as_json()

    few, many = plan(cars), plan(cars + 1)
    assert many["data"]["bytes_per_day"] > few["data"]["bytes_per_day"]
    assert many["tiers"]["hot"] > few["tiers"]["hot"]
    for section, name in (("ingest", "links"), ("training", "nodes")):
        assert many[section][name] >= few[section][name]
    days_of_work = few["training"]["node_days"] / 10
    assert days_of_work <= few["training"]["nodes"] + 1e-6
    assert few["training"]["nodes"] < days_of_work + 1


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0 B"), (999.0, "999 B"), (999.6, "1 kB"), (198.72e15, "199 PB"), (5e21, "5e+03 EB"), (1.5e9, "1.5 GB")],
)
def test_sizes_have_a_prefix_and_three_figures(value: float, text: str) -> None:
    assert si(value, "B") == text


def test_json_holds_whole_counts() -> None:
    document = json.loads(json.dumps(CapacityPlan.of(load("images-to-nodes")).as_json()))
    assert document["training"]["nodes"] == 30
    assert isinstance(document["training"]["nodes"], int)
