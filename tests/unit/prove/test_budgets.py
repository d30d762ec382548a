"""What teams spent of their budgets, and where the month goes."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from podwright import spec
from podwright.cli.main import main
from podwright.costs.budgets import DAY_S, Charge, Month, TeamSpending, spending
from podwright.launch import Session
from podwright.runs import Home
from podwright.usage import spent
from tests.fixtures.repeats import START, Planted, asked_of, write_one

POD = """\
name: adas
nodes:
  - {hosts: "n[1-2]", model: dgx-a100}
costs: {currency: EUR, gpu_hour_price: 2.5}
teams:
  - {name: vision, members: [ada, bob], budget: 1000}
  - {name: speech, members: [cyd]}
"""
BEGAN = datetime(2026, 11, 1, tzinfo=UTC).timestamp()


def pod(folder: Path) -> spec.Pod:
    path = folder / "pod.yaml"
    path.write_text(POD)
    return spec.load_pod(path)


def charge(team: str | None, day: float, amount: float, days: float = 0.5, **cost: object) -> Charge:
    """A run that began on this day of the month."""
    began = BEGAN + day * DAY_S
    return Charge(team, began, began + days * DAY_S, {"amount": amount, "currency": "EUR", **cost})


def by_team(folder: Path, charges: list[Charge], day: float) -> dict[str, TeamSpending]:
    return {row.team: row for row in spending(pod(folder), charges, BEGAN + day * DAY_S).teams}


def test_an_even_month_goes_on_evenly(tmp_path: Path) -> None:
    rows = by_team(tmp_path, [charge("vision", day, 20) for day in range(10)], 10)
    assert list(rows) == ["vision", "speech"]
    vision = rows["vision"]
    assert (vision.spent, vision.forecast, vision.runs) == (pytest.approx(200), pytest.approx(600), 10)
    assert vision.forecast_range == pytest.approx((600, 600))
    assert vision.state == "within"
    assert (rows["speech"].spent, rows["speech"].forecast, rows["speech"].state) == (0, 0, "no budget")


def test_the_forecast_is_as_wide_as_its_days_spread(tmp_path: Path) -> None:
    """By hand: days of 10 and 40 in turn, mean 25 and deviation 15.81 of ten; t of 9 is 1.833 for 90 %."""
    rows = by_team(tmp_path, [charge("vision", day, 10 + 30 * (day % 2)) for day in range(10)], 10)
    vision = rows["vision"]
    reach = 1.8331 * 15.8114 * (20 + 20**2 / 10) ** 0.5
    assert vision.forecast == pytest.approx(750)
    assert vision.forecast_range == pytest.approx((750 - reach, 750 + reach), rel=1e-4)
    assert vision.state == "within"
    tight = replace(vision, budget=800.0)
    assert (tight.state, replace(vision, budget=700.0).state) == ("may be over", "will be over")
    assert replace(vision, budget=249.0).state == "over"


def test_two_days_say_nothing_of_a_month(tmp_path: Path) -> None:
    vision = by_team(tmp_path, [charge("vision", 0, 100)], 2.9)["vision"]
    assert (vision.forecast, vision.forecast_range, vision.state) == (None, None, "too early to say")


def test_who_is_in_no_team_is_unassigned(tmp_path: Path) -> None:
    rows = by_team(tmp_path, [charge(None, 1, 5), charge("gone", 2, 7), charge("vision", 2, 1)], 5)
    assert list(rows) == ["vision", "speech", "unassigned"]
    assert (rows["unassigned"].spent, rows["unassigned"].budget, rows["unassigned"].runs) == (12, None, 2)


def test_a_run_over_midnight_of_the_month_counts_with_its_part(tmp_path: Path) -> None:
    rows = by_team(tmp_path, [charge("vision", -1, 100, days=4), charge("vision", -3, 50)], 10)
    assert rows["vision"].spent == pytest.approx(75)
    assert rows["vision"].runs == 1


def test_what_has_no_price_makes_it_at_least(tmp_path: Path) -> None:
    dollars = replace(charge("vision", 1, 5), cost={"amount": 5, "currency": "USD"})
    vision = by_team(tmp_path, [dollars, replace(dollars, cost=None), charge("vision", 1, 3)], 5)["vision"]
    assert (vision.spent, vision.without_price, vision.as_json()["at_least"]) == (3, 2, True)


def test_ranges_are_kept(tmp_path: Path) -> None:
    rows = by_team(tmp_path, [charge("vision", 1, 5, range=[4, 6]), charge("vision", 2, 5, range=[3, 7])], 5)
    assert rows["vision"].spent_range == pytest.approx((7, 13))


def test_december_ends_with_the_year() -> None:
    month = Month.of(datetime(2026, 12, 31, 12, tzinfo=UTC).timestamp())
    assert (month.name, month.days, month.days_left) == ("2026-12", 30.5, 0.5)


def test_the_runs_of_a_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour of one GPU on the pod, another that still goes on, and one that went elsewhere."""
    home = Home.open(tmp_path / "home")
    monkeypatch.setenv("PODWRIGHT_HOME", str(home.path))
    given = pod(tmp_path)
    for run, target, team in (("train-aaaa", "adas:slurm", "vision"), ("train-bbbb", "local", None)):
        write_one(home, replace(asked_of(run, Planted()), target=target, team=team), 3600.0, Planted())
    with Session.open() as session:
        [vision, _] = spent(session, given, START + 4 * DAY_S).teams
    # Its record has no cost, since its own pod had no prices.
    assert vision.spent == pytest.approx(2.5 * 3601 / 3600, abs=1e-3)
    assert vision.runs == 1


def test_the_page_and_the_document(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "home"))
    path = str(pod(tmp_path).path)
    assert main(["cost", "pod", path, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert [(row["team"], row["budget"], row["spent"]) for row in document["teams"]] == [
        ("vision", 1000, 0),
        ("speech", None, 0),
    ]
    assert document["month"]
    assert main(["cost", "pod", path]) == 0
    shown = capsys.readouterr().out
    assert "BUDGET EUR" in shown
    assert "runs of this home and what colleagues share" in shown
