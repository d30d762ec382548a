"""Costs against a computation by hand, what is missing, what is nonsense, and what a run's record gets."""

from __future__ import annotations

import json
import tempfile
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podwright import spec
from podwright.analysis.energy import Energy, energy_of
from podwright.cli.main import main
from podwright.costs.ownership import pod_costs, pod_price
from podwright.costs.prices import price_tables
from podwright.costs.record import record_cost
from podwright.costs.run_costs import Phases, RunUse, cost_of_run, cost_of_use, phases_of
from podwright.costs.spot import interrupted_use
from podwright.prove.suite_folder import CellKey, suite_folder
from podwright.runs import Home
from podwright.runs.events import Sample
from podwright.runs.goodput import Goodput
from tests.fixtures.repeats import Planted, asked_of, write_one, write_repeats
from tests.fixtures.run_folder import Shape, write_run

NODES = 'name: adas\nnodes:\n  - {hosts: "n[1-2]", model: dgx-a100}\n'
ALL = (
    "{currency: EUR, node_price: 200000, power_price_kwh: 0.2, pue: 1.5, years: 4, utilization: 0.5,"
    " staff_year: 100000, support_percent: 10, finance_percent: 5, space_m2_year: 300,"
    " storage_tb_month: 20, grid_co2_kg_kwh: 0.4}"
)


def write_pod(folder: Path, costs: str) -> Path:
    path = folder / "pod.yaml"
    path.write_text(f"{NODES}costs: {costs}\n")
    return path


@cache
def priced_pod() -> spec.Pod:
    """A pod that is made once: its file's text says whose design it is."""
    with tempfile.TemporaryDirectory() as folder:
        return spec.load_pod(write_pod(Path(folder), ALL))


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "home"))
    return Home.open(tmp_path / "home")


def test_a_pod_by_hand(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two DGX A100 of 6.5 kW each and a switch of 0.3 kW, 16 GPUs, four years."""
    assert main(["cost", "pod", str(write_pod(tmp_path, ALL)), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    amounts = {item["name"]: item["amount"] for item in document["items"]}
    assert amounts["nodes"] == 2 * 200_000
    assert amounts["support"] == pytest.approx(400_000 * 0.10 * 4)
    assert amounts["financing"] == pytest.approx(400_000 * 0.05 * 4 / 2)
    assert amounts["electricity"] == pytest.approx(13.3 * 8760 * 4 * 0.2)
    assert amounts["cooling"] == pytest.approx(13.3 * 8760 * 4 * 0.2 * 0.5)
    assert amounts["staff"] == 400_000
    known = [amount for amount in amounts.values() if amount is not None]
    assert document["total"] == pytest.approx(sum(known))
    assert document["per_gpu_hour"] == pytest.approx(sum(known) / (16 * 8760 * 4 * 0.5))
    assert document["energy_kwh_year"] == pytest.approx(13.3 * 8760 * 1.5)
    assert document["co2_kg_year"] == pytest.approx(13.3 * 8760 * 1.5 * 0.4)
    assert document["currency"] == "EUR"
    assert all(item["origin"] for item in document["items"])


def test_what_nobody_gave_a_price_for_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_pod(tmp_path, "{currency: EUR, node_price: 200000}")
    assert main(["cost", "pod", str(path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    amounts = {item["name"]: item["amount"] for item in document["items"]}
    assert (amounts["staff"], amounts["electricity"], document["total"]) == (None, None, 400_000)
    assert document["at_least"]
    assert {"staff", "electricity", "cooling", "financing"} <= set(document["missing"])
    assert main(["cost", "pod", str(path)]) == 0
    shown = capsys.readouterr().out
    assert "at least 400,000 EUR over 5 years (assumed)" in shown
    assert "every hour counted as used" in shown


@pytest.mark.parametrize(
    ("costs", "message", "hint"),
    [
        ("{currency: EUR, node_price: 1, utilization: 0}", "costs.utilization: must be more than 0", "70 of 100 hours"),
        ("{currency: EUR, node_price: 1, utilization: 1.2}", "costs.utilization: must be more than 0", "70 of 100"),
        ("{currency: EUR, node_price: -1}", "costs.node_price: must be 0 or more", "leave a price out"),
        ("{node_price: 1}", "costs.currency: is missing", "write `currency: EUR`"),
        ("{currency: EUR}", "costs: has no prices", "node_price: 199000"),
        ("{currency: EUR, staf_year: 1}", "costs.staf_year: unknown field", "did you mean `staff_year`?"),
    ],
)
def test_nonsense_is_refused_with_a_hint(
    costs: str, message: str, hint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cost", "pod", str(write_pod(tmp_path, costs))]) == 2
    said = capsys.readouterr().err
    assert "pod.yaml:4:" in said
    assert message in said
    assert hint in said


@pytest.mark.parametrize(
    ("costs", "price", "origin"),
    [
        ("{gpu_hour_price: 2.5, node_price: 100000}", 2.5, "gpu_hour_price of the pod"),
        ("{}", None, ""),
        ("{node_price: 175200, years: 5}", 0.5, "modelled: nodes over 5 years, every hour counted"),
        ("{node_price: 175200, utilization: 0.5}", 1.0, "modelled: nodes over 5 years (assumed), 50% of hours used"),
        (
            "{node_price: 175200, years: 5, power_price_kwh: 0.4, pue: 1.25}",
            0.5 + 13.3 * 1.25 * 0.4 / 16,
            "modelled: nodes, electricity, cooling over 5 years, every hour counted",
        ),
    ],
)
def test_the_price_of_a_gpu_hour(tmp_path: Path, costs: str, price: float | None, origin: str) -> None:
    row = pod_price(spec.load_pod(write_pod(tmp_path, costs)))
    assert ((row and row.origin) or "") == origin
    assert (row and row.per_gpu_hour) == (price if price is None else pytest.approx(price))


def test_what_the_price_hangs_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cost", "pod", str(write_pod(tmp_path, ALL)), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    levers = {row["input"]: row["per_gpu_hour"] for row in document["sensitivity"]}
    price = document["per_gpu_hour"]
    # A price for an hour in use is as its inverse: a fifth fewer hours make it a quarter dearer.
    assert levers["utilization"] == [pytest.approx(price / 0.8), pytest.approx(price / 1.2)]
    staff = 400_000 / (16 * 8760 * 4 * 0.5)
    assert levers["staff_year"] == [pytest.approx(price - 0.2 * staff), pytest.approx(price + 0.2 * staff)]
    bought = 400_000 * (1 + 0.1 * 4 + 0.05 * 2) / (16 * 8760 * 4 * 0.5)
    assert levers["node_price"] == [pytest.approx(price - 0.2 * bought), pytest.approx(price + 0.2 * bought)]
    reaches = [abs(high - low) for low, high in levers.values()]
    assert reaches == sorted(reaches, reverse=True)


def test_an_hour_of_rent_is_worth_what_a_run_makes_of_it() -> None:
    hour = 3_600_000
    told = {"productive": 80 * hour, "data_wait": 10 * hour, "lost_work": 6 * hour, "start": 4 * hour}
    use = interrupted_use("train-aaaa", Goodput("gpu_s", told, interruptions=4, running=10 * hour))
    assert use is not None
    # 10 GPU hours of 5 attempts on 10 GPUs: each interruption takes 0.2 h of all of them.
    assert use.lost_h == pytest.approx(0.2)
    assert use.steady == pytest.approx(80 / 90)
    assert use.goodput_at(0) == use.steady
    assert use.goodput_at(12) == pytest.approx(80 / 90 * (1 - 0.5 * 0.2))
    assert use.goodput_at(1000) == 0
    assert interrupted_use("none", None) is None
    assert interrupted_use("idle", Goodput("gpu_s", {"other": hour}, running=hour)) is None


def test_spot_machines_are_priced_by_a_run(home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, table = write_pod(tmp_path, ALL), tmp_path / "prices.yaml"
    table.write_text(
        "name: ours\nsource: an offer\nseen: 2026-10-01\ntrust: high\ncurrency: EUR\noffers:\n"
        "  - {name: rented, accelerator: A100, gpus: 8, per_hour: 24}\n"
        "  - {name: spot, accelerator: A100, gpus: 8, per_hour: 8, interruptions_per_day: 48}\n"
    )
    write_run(home.runs / "segmentation-7f3k", Shape())
    compare = ["cost", "compare", str(path), "--prices", str(table), "--run", "segmentation-7f3k"]
    assert main([*compare, "--json"]) == 0
    rented, spot = json.loads(capsys.readouterr().out)["offers"]
    assert rented["per_productive_gpu_hour"] == pytest.approx(3 / rented["goodput"])
    assert spot["goodput"] < rented["goodput"]
    assert main(compare) == 0
    assert "productive: an hour in which a GPU makes steps that count" in capsys.readouterr().out


def test_owning_against_renting(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, table = write_pod(tmp_path, ALL), tmp_path / "prices.yaml"
    table.write_text(
        "name: ours\nsource: an offer\nseen: 2026-10-01\ntrust: high\ncurrency: EUR\n"
        "offers: [{name: rented, accelerator: A100, gpus: 8, per_hour: 24}]\n"
    )
    assert main(["cost", "compare", str(path), "--prices", str(table), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    [offer] = document["offers"]
    assert offer["per_gpu_hour"] == 3
    # At that share of hours in use an hour of the pod costs what the rented one does.
    assert document["total"] / (16 * 8760 * 4 * offer["break_even_utilization"]) == pytest.approx(3)
    assert main(["cost", "compare", str(path)]) == 2
    assert "are in USD, those of adas in EUR" in capsys.readouterr().err
    assert main(["cost", "compare", str(path), "--rate", "nought"]) == 2
    assert "--rate: 'nought' is no rate" in capsys.readouterr().err
    assert main(["cost", "compare", str(path), "--rate", "0.9"]) == 0
    assert "low trust, 2026-11" in capsys.readouterr().out
    table.write_text("name: ours\noffers: [{name: rented, gpus: 0, per_hour: -1}]\n")
    assert main(["cost", "compare", str(path), "--prices", str(table)]) == 2
    said = capsys.readouterr().err
    assert "offers[0].gpus: must be a whole positive number" in said
    assert "currency: is missing" in said


def test_prices_that_ship_say_where_they_are_from() -> None:
    tables = price_tables()
    assert {offer.name: offer.per_hour for table in tables for offer in table.offers} == {
        "p4d capacity block": 14.75,
        "p5 capacity block": 39.33,
        "OpenCost default": 0.95,
        "calculator's cloud": 4.5,
    }
    assert all(table.source and table.seen and table.trust == "low" for table in tables)


def test_a_result_by_hand(home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An hour of one GPU at 400 W, four seconds after it was asked for, one of them for its pilot to start."""
    write_one(home, asked_of("train-aaaa", Planted()), 3600.0, Planted())
    pod = write_pod(tmp_path, ALL)
    assert main(["cost", "run", "train-aaaa", "--pod", str(pod), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    costs = pod_costs(spec.load_pod(pod))
    power = costs.sheet.amount("electricity") + costs.sheet.amount("cooling")
    used = 16 * 8760 * 4 * 0.5
    hour = ((costs.sheet.total or 0) - power - costs.sheet.amount("staff")) / used
    amounts = {item["name"]: item["amount"] for item in document["items"]}
    assert amounts["queue"] == 0
    assert amounts["start-up"] == pytest.approx(hour / 3600)
    assert amounts["training"] == pytest.approx(hour)
    assert amounts["staff"] == pytest.approx(costs.sheet.amount("staff") / used * 3601 / 3600)
    assert amounts["electricity"] == pytest.approx(0.4 * 1.5 * 0.2)
    assert amounts["idle electricity"] == pytest.approx(power / used / 2 * 3601 / 3600)
    assert (document["at_least"], document["missing"]) == (bool(costs.sheet.missing), costs.sheet.missing)
    assert document["energy_kwh"] == pytest.approx(0.4 * 1.5)
    assert document["co2_kg"] == pytest.approx(0.4 * 1.5 * 0.4)
    assert document["per_result"] == document["total"] == pytest.approx(sum(amounts.values()))


def test_results_pay_for_runs_that_failed(home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_repeats(home, "train-aaaa", [60.0, 60.0], Planted())
    failed = asked_of("train-bbbb", Planted(state="failed"))
    write_one(home, failed, 60.0, Planted(state="failed"))
    pod = str(write_pod(tmp_path, ALL))
    assert main(["cost", "run", "train-aaaa", "--pod", pod, "--json"]) == 0
    both = json.loads(capsys.readouterr().out)
    assert both["per_result"] == pytest.approx(both["total"] / 2)
    assert main(["cost", "run", "train-bbbb", "--pod", pod]) == 0
    assert "and there is no result" in capsys.readouterr().out
    assert main(["cost", "run", "train-aaaa"]) == 2
    assert "ran on local, which has no prices" in capsys.readouterr().err


def test_a_cell_of_a_suite_costs_what_its_runs_do(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its results pay for those that failed; warm-ups are none of it."""
    suite, cell = suite_folder(home, "night"), CellKey("train", "local", "bare", 1)
    suite.note("round", round=1, file="suite.yaml")
    for name, state in (("warm", "succeeded"), ("good", "succeeded"), ("best", "succeeded"), ("lost", "failed")):
        run = f"train-{name}"
        write_one(home, asked_of(run, Planted(state=state)), 60.0, Planted(state=state))
        suite.note("asked", round=1, cell=asdict(cell), warmup=name == "warm", run=run)
        suite.note("done", run=run, state=state, values={"duration_s": 60.0})
    pod = str(write_pod(tmp_path, ALL))
    documents = []
    for asked in ("night/train", "train-good"):
        assert main(["cost", "run", asked, "--pod", pod, "--json"]) == 0
        documents.append(json.loads(capsys.readouterr().out))
    both, one = documents
    assert (both["run"], both["runs"], both["results"]) == ("night/train/local/bare/1", 3, 2)
    assert both["total"] == pytest.approx(3 * one["total"])
    assert both["per_result"] == pytest.approx(1.5 * one["total"])
    assert main(["cost", "run", "night/resnet", "--pod", pod]) == 2
    assert "night has no cell 'resnet'" in capsys.readouterr().err


def test_the_time_of_failed_tries_is_told_apart(home: Home) -> None:
    from tests.fixtures.run_folder import Shape, write_run

    folder = home.folder("segmentation-7f3k")
    write_run(folder.path, Shape(retry_at=38, seconds=131))
    record = home.read("segmentation-7f3k")
    phases = phases_of(record, folder.events())
    assert phases.failed_s == pytest.approx(40.5 - 3.9)
    assert phases.held_s == pytest.approx(130.9, abs=0.2)


def test_energy_from_counters_and_from_power() -> None:
    def sample(at: float, node: int = 0, **values: float) -> Sample:
        return Sample(at, (0, 0), node, {name.replace("__", "."): value for name, value in values.items()})

    counted = [sample(0, gpu__0__energy_joules_total=1e6), sample(30, gpu__0__energy_joules_total=4.6e6)]
    assert energy_of(counted).gpu_kwh == pytest.approx(1.0)
    drawn = [sample(at, gpu__0__power_watts=360.0) for at in (0, 5, 10, 500)]
    assert energy_of(drawn).gpu_kwh == pytest.approx(360 * 10 / 3.6e6)
    # Two nodes on one machine read the same CPUs.
    twice = [sample(at, node, cpu_energy_joules_total=at * 3.6e6) for at in (0, 1) for node in (0, 1)]
    assert energy_of(twice, {0: "n1", 1: "n1"}).cpu_kwh == pytest.approx(1.0)
    assert energy_of(twice, {0: "n1", 1: "n2"}).cpu_kwh == pytest.approx(2.0)
    assert energy_of([]).kwh is None


def test_a_run_on_a_priced_pod_has_its_cost(home: Home, tmp_path: Path) -> None:
    write_one(home, asked_of("train-aaaa", Planted()), 3600.0, Planted())
    folder = home.folder("train-aaaa")
    record = home.read("train-aaaa")
    assert record_cost(folder, record) is None
    (folder.path / "spec").mkdir()
    (folder.path / "spec" / "pod.yaml").write_text(f"{NODES}costs: {{currency: EUR, gpu_hour_price: 2.5}}\n")
    cost = record_cost(folder, record)
    assert cost is not None
    assert cost["amount"] == pytest.approx(2.5 * 3601 / 3600, abs=1e-4)
    assert (cost["currency"], cost["origin"]) == ("EUR", "1h 0m x 1 GPU")
    (folder.path / "spec" / "pod.yaml").write_text("name: [\n")
    assert record_cost(folder, record) is None


def test_runs_that_fill_the_used_hours_come_to_the_pod(home: Home, tmp_path: Path) -> None:
    """Modelled, since nothing was measured: half of the hours are used, and their runs pay for all."""
    write_one(home, asked_of("train-aaaa", Planted()), 3600.0, Planted(watts=0.0))
    pod = spec.load_pod(write_pod(tmp_path, ALL))
    sheet = pod_costs(pod).sheet
    folder = home.folder("train-aaaa")
    (folder.path / "metrics.parquet").unlink()
    for path in folder.path.glob("record/*/metrics.jsonl"):
        path.unlink()
    costs = cost_of_run(folder, home.read("train-aaaa"), pod)
    hours = 3601 / 3600
    assert costs.sheet.total == pytest.approx((sheet.total or 0) / (16 * 8760 * 4 * 0.5) * hours)


def test_what_a_pod_lacks_a_run_lacks(home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_one(home, asked_of("train-aaaa", Planted()), 3600.0, Planted())
    pod = write_pod(tmp_path, "{currency: EUR, node_price: 100000}")
    assert main(["cost", "run", "train-aaaa", "--pod", str(pod), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["at_least"]
    assert "staff" in document["missing"]
    assert main(["cost", "run", "train-aaaa", "--pod", str(pod)]) == 0
    assert "cost at least" in capsys.readouterr().out


def test_a_price_given_and_a_price_computed_are_two_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pod = write_pod(tmp_path, "{currency: USD, node_price: 100000, gpu_hour_price: 1.9, utilization: 0.6}")
    assert main(["cost", "pod", str(pod), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["per_gpu_hour_given"] == 1.9
    assert document["per_gpu_hour_computed"] == pytest.approx(document["total"] / (16 * 8760 * 5 * 0.6))
    assert main(["cost", "pod", str(pod)]) == 0
    assert "given     1.90 USD a GPU hour: gpu_hour_price" in capsys.readouterr().out


def test_owning_is_what_the_lines_come_to_though_an_hour_has_a_price(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pod = write_pod(tmp_path, "{currency: USD, node_price: 90000..110000, gpu_hour_price: 1.9, utilization: 0.6}")
    assert main(["cost", "compare", str(pod), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    offer = next(row for row in document["offers"] if row["break_even_utilization"] is not None)
    even = document["total"] / (16 * 8760 * 5 * offer["break_even_utilization"])
    assert even == pytest.approx(offer["per_gpu_hour"])
    assert document["per_gpu_hour_range"] is None
    low, high = document["per_gpu_hour_computed_range"]
    assert low < document["per_gpu_hour_computed"] < high
    assert main(["cost", "compare", str(pod)]) == 0
    shown = capsys.readouterr().out
    assert (
        f"own       at least {document['per_gpu_hour_computed']:.2f} USD ({low:.2f} to {high:.2f}) a GPU hour" in shown
    )
    assert "given     1.90 USD a GPU hour: gpu_hour_price" in shown
    assert main(["cost", "pod", str(pod)]) == 0
    assert f"({low:.2f} to {high:.2f}) a GPU hour" in capsys.readouterr().out
    assert main(["cost", "compare", str(write_pod(tmp_path, "{currency: USD, gpu_hour_price: 1.9}"))]) == 0
    assert "own       1.90 USD a GPU hour: gpu_hour_price" in capsys.readouterr().out


@pytest.mark.parametrize(("currency", "hint"), [("dollars", "USD"), ("EURO", "EUR"), ("UDS", "USD")])
def test_an_unknown_currency_is_refused(
    currency: str, hint: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pod = write_pod(tmp_path, f"{{currency: {currency}, node_price: 100000}}")
    assert main(["cost", "pod", str(pod)]) == 2
    said = capsys.readouterr().err
    assert f"costs.currency: '{currency}' is no currency" in said
    assert f"did you mean `{hint}`?" in said


def test_hours_of_different_gpus_are_compared_by_their_work(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, table = write_pod(tmp_path, ALL), tmp_path / "prices.yaml"
    offer = "name: rented, accelerator: H100, gpus: 8, per_hour: 24"
    head = "name: ours\nsource: an offer\nseen: 2026-10-01\ntrust: high\ncurrency: EUR\n"
    table.write_text(f"{head}offers: [{{{offer}}}, {{{offer}, work_per_gpu_hour: 5000}}]\n")
    assert main(["cost", "compare", str(path), "--prices", str(table), "--work", "2500", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    hours, work = document["offers"]
    assert (hours["comparable"], hours["break_even_utilization"]) == (False, None)
    assert work["per_work"] == pytest.approx(3 / 5000)
    # An hour of the pod does half of the work, so that it may cost half of the rent.
    assert document["total"] / (16 * 8760 * 4 * work["break_even_utilization"]) == pytest.approx(1.5)
    assert [round(10 * point["utilization"]) for point in document["curve"]] == list(range(1, 11))
    assert main(["cost", "compare", str(path), "--prices", str(table)]) == 0
    shown = capsys.readouterr().out
    assert "another GPU" in shown
    assert "--work" in shown


def _with_prices(node: str, power: str) -> str:
    costs = ALL.replace("node_price: 200000", f"node_price: {node}")
    return costs.replace("power_price_kwh: 0.2,", f"power_price_kwh: {power},")


def test_a_price_that_is_a_range_is_one_everywhere(
    home: Home, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each end comes to what the same pod with that price alone comes to; what has no price stays unknown."""
    write_one(home, asked_of("train-aaaa", Planted()), 3600.0, Planted())

    def documents(*prices: str) -> list[dict[str, Any]]:
        pod = str(write_pod(tmp_path, _with_prices(*prices)))
        found = []
        for words in (["pod", pod], ["run", "train-aaaa", "--pod", pod], ["compare", pod, "--rate", "0.9"]):
            assert main(["cost", *words, "--json"]) == 0
            found.append(json.loads(capsys.readouterr().out))
        return found

    low, high = documents("180000", "0.1"), documents("220000", "0.3")
    both = documents("180000..220000", "0.1..0.3")
    for row, below, above in zip(both, low, high, strict=True):
        assert row["total_range"] == pytest.approx([below["total"], above["total"]])
        assert below["total_range"] is None
        assert row["total"] == pytest.approx((below["total"] + above["total"]) / 2)
        ranges = {item["name"]: item["range"] for item in row["items"]}
        assert all(ranges[name] is None for name in set(row["missing"]) & set(ranges))
    assert both[0]["per_gpu_hour_range"] == pytest.approx([low[0]["per_gpu_hour"], high[0]["per_gpu_hour"]])
    assert both[1]["per_result_range"] == pytest.approx([low[1]["per_result"], high[1]["per_result"]])
    evens = [document["offers"][0]["break_even_utilization"] for document in (low[2], high[2])]
    assert both[2]["offers"][0]["break_even_range"] == pytest.approx(evens)
    pod = str(write_pod(tmp_path, _with_prices("180000..220000", "0.1..0.3")))
    assert main(["cost", "pod", pod]) == 0
    assert "360,000 to 440,000; 2 dgx-a100" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("price", "message"),
    [
        ("220000..180000", "costs.node_price: 220000..180000 ends below its start"),
        ("-1..2", "costs.node_price: must be a number"),
        ("'5'", "costs.node_price: must be a number"),
    ],
)
def test_a_range_that_is_none_is_refused(
    price: str, message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["cost", "pod", str(write_pod(tmp_path, f"{{currency: EUR, node_price: {price}}}"))]) == 2
    assert message in capsys.readouterr().err


def test_an_offer_that_is_a_range(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, table = write_pod(tmp_path, ALL), tmp_path / "prices.yaml"
    head = "name: ours\nsource: an offer\nseen: 2026-10-01\ntrust: high\ncurrency: EUR\n"
    table.write_text(f"{head}offers: [{{name: rented, accelerator: A100, gpus: 8, per_hour: 16..32}}]\n")
    assert main(["cost", "compare", str(path), "--prices", str(table), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    [offer] = document["offers"]
    assert offer["per_gpu_hour_range"] == [2, 4]
    for rent, share in zip((4, 2), offer["break_even_range"], strict=True):
        assert document["total"] / (16 * 8760 * 4 * share) == pytest.approx(rent)


SHARES = st.lists(st.floats(0.01, 1.0), min_size=1, max_size=6)


@settings(max_examples=25)
@given(shares=SHARES, is_measured=st.lists(st.booleans(), min_size=6, max_size=6))
def test_runs_sum_to_the_pod(shares: list[float], is_measured: list[bool]) -> None:
    """However the used hours are dealt out: a draw that was measured as the full one counts like a modelled one."""
    pod = priced_pod()
    whole = pod_costs(pod)
    used_h = 8760 * 4 * 0.5
    kwh_h = (whole.power_w or 0.0) / 1000
    total = 0.0
    for share, measured in zip(shares, is_measured, strict=False):
        hours = used_h * share / sum(shares)
        energy = Energy(kwh_h * hours, None) if measured else Energy(None, None)
        phases = Phases(5.0, hours * 360, hours * 360, hours * 360, hours * 2520)
        total += cost_of_use(RunUse(16, 2, phases, energy), pod).sheet.total or 0.0
    assert total == pytest.approx(whole.sheet.total)
