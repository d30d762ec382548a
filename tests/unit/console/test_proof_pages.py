"""Sweeps, comparisons and suites: the documents of their commands, the verdict first, and no file of this machine."""

from __future__ import annotations

import json
import re

import pytest

from podwright import prove
from podwright.console.routes.sweep import MAX_READ
from podwright.runs import Asked
from tests.fixtures.repeats import Planted, write_repeats
from tests.fixtures.run_folder import START
from tests.fixtures.suites import write_history
from tests.fixtures.sweeps import write_sweep
from tests.unit.console.conftest import GOOD, HOSTILE, SIDES, Site, csrf, furnish

SWEEP = "sweep-00aa"


def same(told: object) -> object:
    return json.loads(json.dumps(told))


def test_a_sweep_says_what_failed_and_which_point_is_best(site: Site) -> None:
    write_sweep(site.session.home.runs, SWEEP)
    page = site.entered().get(f"/runs/{SWEEP}").text
    assert "2 of 16 points failed" in page
    assert "Best is learning_rate=0.03, batch=16: mean IoU 0.673" in page
    [causes] = re.findall(r'aria-label="Failures by cause">(.*?)</table>', page, re.DOTALL)
    assert "uncorrectable ECC error" in causes
    assert f'href="/runs/{SWEEP}-10" class="row"' in page
    shades = {int(shade) for shade in re.findall(r'class="shade-(\d+)', page)}
    assert max(shades) == 10
    assert 'style="' not in page


def test_of_a_sweep_too_large_to_rank_the_index_tells(site: Site) -> None:
    home = site.session.home
    count = MAX_READ + 1
    whole = Asked("large-00aa", "large", "local", "local", START, 1, 1, {"command": ["true"]}, points=count)
    home.create(whole, {}, {})
    for index in range(count):
        home.create(
            Asked(f"large-00aa-{index + 1}", "large", "local", "local", START, 1, 1, {}, parent=whole.id), {}, {}
        )
    page = site.entered().get(f"/runs/{whole.id}").text
    assert "more points than a page can rank" in page
    assert "large-00aa-200<" in page
    assert "large-00aa-201<" not in page
    assert "all 301" in page


def test_a_comparison_is_the_document_of_compare(site: Site) -> None:
    furnish(site)
    told = [pair.as_json() for pair in prove.compare_refs(site.session, SIDES)]
    assert site.entered().get("/api/v1/compare", params={"side": SIDES}).json() == same(told)


def test_what_is_not_proven_says_how_many_runs_would_decide(site: Site) -> None:
    furnish(site)
    page = site.entered().get("/compare", params={"side": SIDES}).text
    assert "too few runs to tell; about 18 a side would decide" in page
    assert "Not proven: about 18 runs a side would decide: 26 runs more" in page
    assert page.count('class="strip-dot"') == 10
    assert "driver 550 and 535" in page


def test_a_difference_is_named_with_its_size(site: Site) -> None:
    write_repeats(site.session.home, "slow-00aa", [70.1, 70.0, 70.2, 69.9, 70.3], Planted())
    write_repeats(site.session.home, "fast-00aa", [60.1, 60.0, 60.2, 59.9, 60.3], Planted())
    page = site.entered().get("/compare", params={"side": ["fast-00aa", "slow-00aa"]}).text
    assert "slow-00aa takes 16.6% longer than fast-00aa" in page
    assert "Different" in page


@pytest.mark.parametrize(
    "ref",
    ["/etc/passwd", "../secret.json", "secret.json", "a/../../b", "~/x", "", "\0", "%2e%2e/x", "night//etc/passwd"],
)
def test_no_file_of_this_machine_is_a_side(ref: str, site: Site) -> None:
    answer = site.entered().get("/api/v1/compare", params={"side": [GOOD, ref or "-"]})
    assert answer.status_code in (400, 404)
    assert "no such file" not in answer.text.lower()
    assert "is not JSON" not in answer.text


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"side": [GOOD]}, "there is nothing to compare it with"),
        ({"side": [GOOD, "none-0000"]}, "none-0000"),
        ({"side": [GOOD] * 9}, "at most 8 are compared at once"),
        ({"side": [GOOD, GOOD], "margin": "much"}, "is not a margin"),
        ({"side": [GOOD, GOOD], "metric": "height"}, "height"),
        ({"side": [HOSTILE, GOOD]}, "is neither a run nor a cell"),
    ],
)
def test_a_comparison_that_is_refused_says_why(asked: dict[str, object], said: str, site: Site) -> None:
    client = site.entered()
    page = client.get("/compare", params=asked)  # type: ignore[arg-type]
    assert page.status_code == 400
    assert said in page.text
    assert HOSTILE not in page.text
    assert client.get("/api/v1/compare", params=asked).status_code in (400, 404)  # type: ignore[arg-type]


def test_chosen_runs_are_compared(site: Site) -> None:
    client = site.entered()
    form = {"csrf": csrf(client.get("/runs").text), "act": "compare", "run": list(SIDES)}
    answer = client.post("/runs/act", data=form)
    assert answer.headers["location"] == "/compare?side=plain-00aa&side=fused-00aa"


def test_a_suite_is_the_document_of_its_commands(site: Site) -> None:
    furnish(site)
    client, folder = site.entered(), prove.known_suite(site.session.home, "nightly")
    told = prove.judge_suite(site.session, folder, prove.GateRequest()).as_json()
    assert client.get("/api/v1/suites/nightly/gate").json() == same(told)
    assert client.get("/api/v1/suites/nightly").json() == same(prove.suite_result(folder).as_json())
    assert client.get("/api/v1/suites/nightly/scaling").status_code == 404
    assert [suite["suite"] for suite in client.get("/api/v1/suites").json()] == ["nightly", "scale-strong-local-resnet"]


def test_a_suite_that_became_slower_shows_since_when(site: Site) -> None:
    furnish(site)
    client = site.entered()
    listed = client.get("/prove").text
    assert "nightly, scale-strong-local-resnet are slower or broken." in listed
    page = client.get("/prove/nightly").text
    assert "slower since round 4" in page
    assert page.count('class="round-change"') == 1
    assert "look at the machines" in page
    assert "predicted from the smallest size alone" not in page
    assert "predicted from the smallest size alone" in client.get("/prove/scale-strong-local-resnet").text


def test_a_suite_of_which_nothing_can_be_judged_is_shown_all_the_same(site: Site) -> None:
    home = site.session.home
    client = site.entered()
    assert "No suite was run here." in client.get("/prove").text
    write_history(prove.SuiteFolder(home.path / "suites" / "first"), [1.0], ["sha256:1"])
    assert "a first round has nothing to be held against" in client.get("/prove/first").text
    page = client.get("/prove/first", params={"metric": "height", "better": "lower"}).text
    assert "no run of first told height" in page
    assert client.get("/prove/none").status_code == 404
    assert client.get("/prove/%2e%2e").status_code == 404
