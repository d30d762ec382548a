"""Money in a browser: sums that add up whichever way they are divided, and a pod's own price beside rent."""

from __future__ import annotations

import json

import pytest

from podwright import costs, launch
from podwright.launch import pods
from tests.fixtures.priced import price_run
from tests.fixtures.run_folder import START
from tests.unit.console.conftest import BAD, GOOD, HOSTILE, POD, Site, furnish


def priced(site: Site, run: str, amount: float, **told: str) -> None:
    price_run(site.session.home.runs / run, amount, **told)


def test_spending_adds_up_whichever_way_it_is_divided(site: Site) -> None:
    priced(site, GOOD, 30.0, user="ada", team="vision")
    priced(site, BAD, 12.5, user="grace", team="vision")
    told = site.entered().get("/api/v1/cost").json()
    assert told["totals"] == {"EUR": 42.5}
    assert told["without_price"] == 0
    for by, rows in told["by"].items():
        assert sum(row["amount"] for row in rows) == pytest.approx(42.5), by
    assert [(row["name"], row["amount"]) for row in told["by"]["user"]] == [("ada", 30.0), ("grace", 12.5)]
    assert {row["name"] for row in told["by"]["class"]} >= {"productive", "start"}
    page = site.entered().get("/cost").text
    assert "The last 30 days cost 42.50 EUR, " in page
    assert "of it for time in which no step was made that counts." in page


def test_a_home_without_prices_says_so(site: Site) -> None:
    page = site.entered().get("/cost").text
    assert "No run of the last 30 days has a price." in page
    assert "2 runs without a price" in page


def test_old_runs_are_left_out(site: Site) -> None:
    priced(site, GOOD, 30.0)
    site.hands.time_s = START + 40 * 86400
    assert launch.spent_on_runs(site.session, site.hands.time_s - 86400).totals == {}
    assert site.entered().get("/api/v1/cost", params={"days": 60}).json()["totals"] == {"EUR": 30.0}
    for days in ("0", "-1", "999999", "x"):
        assert site.entered().get("/api/v1/cost", params={"days": days}).status_code == 400


def test_currencies_are_never_added(site: Site) -> None:
    priced(site, GOOD, 30.0)
    priced(site, BAD, 5.0, currency="USD")
    assert site.entered().get("/api/v1/cost").json()["totals"] == {"EUR": 30.0, "USD": 5.0}


def test_who_ran_is_text(site: Site) -> None:
    priced(site, GOOD, 30.0, user=HOSTILE, team=HOSTILE)
    page = site.entered().get("/cost").text
    assert HOSTILE not in page
    assert "&lt;script&gt;" in page


def test_a_pods_bill_is_the_document_of_cost(site: Site) -> None:
    furnish(site)
    client, pod = site.entered(), pods.find(site.session.home, POD)
    told = costs.pod_bill(pod).as_json()
    assert client.get(f"/api/v1/pods/{POD}/cost").json() == json.loads(json.dumps(told))
    rent = costs.own_or_rent(pod, costs.price_tables([]), 0.92).as_json()
    assert client.get(f"/api/v1/pods/{POD}/rent", params={"rate": "0.92"}).json() == json.loads(json.dumps(rent))


def test_rent_in_another_currency_asks_for_the_rate(site: Site) -> None:
    furnish(site)
    client = site.entered()
    page = client.get(f"/cost/{POD}").text
    assert "Rent is not compared." in page
    assert "What it is made of" in page
    assert "% in use" in client.get(f"/cost/{POD}", params={"rate": "0.92"}).text
    wrong = client.get(f"/cost/{POD}", params={"rate": "much"}).text
    assert "write it like 0.92" in wrong
    assert client.get("/cost/none").status_code == 404
