"""Costs against a computation by hand, what is missing, what is nonsense, and what a run's record gets."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podwright import spec
from podwright.analysis.energy import energy_of
from podwright.cli.main import main
from podwright.costs.ownership import pod_costs, pod_price
from podwright.costs.prices import price_tables
from podwright.costs.record import record_cost
from podwright.costs.run_costs import cost_of_run, phases_of
from podwright.runs import Home
from podwright.runs.events import Sample
from tests.fixtures.repeats import Planted, asked_of, write_one, write_repeats

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
