"""`podwright waste`, as a person and a program see it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from podwright.cli.commands.look import waste
from podwright.cli.main import main
from podwright.costs.ownership import Price
from podwright.engines.slurm.usage import parse_past
from podwright.runs.goodput import Goodput
from podwright.usage.gather import TargetWaste
from podwright.usage.waste import sum_up
from tests.paths import CASES as ALL_CASES

CASES = ALL_CASES / "usage"
NOW = {"lab": 1794813990.0, "odd": 1700000000.0}
PRICE = Price(2.0, "EUR", "gpu_hour_price of the pod")
Golden = Callable[[Path, str], None]


def recorded(case: str, price: Price | None) -> TargetWaste:
    """The recorded past; the sweep's first point is a run of ours that kept four of its GPUs busy."""
    past = parse_past((CASES / case / "sacct.txt").read_text())
    own = [replace(one, run="sweep-1234-1") if one.name == "sweep-1234" else one for one in past]
    busy = {one: 4.0 for one in own if one.run}
    return TargetWaste("adas", sum_up(own, busy, 1200, NOW[case] - 86400, NOW[case]), True, price)


@pytest.mark.parametrize(("case", "price"), [("lab", None), ("odd", PRICE)])
def test_the_page_of_a_cluster(case: str, price: Price | None, golden: Golden) -> None:
    lines = list(waste.page(recorded(case, price), "1d", 80))
    assert max(map(len, lines)) <= 80
    golden(CASES / case / "expected" / "waste.txt", "\n".join(lines) + "\n")


def test_the_document_of_a_cluster(golden: Golden) -> None:
    text = json.dumps(recorded("odd", PRICE).as_json(), indent=1) + "\n"
    golden(CASES / "odd" / "expected" / "waste.json", text)


def test_long_lists_are_cut_and_say_so() -> None:
    (one,) = parse_past((CASES / "odd" / "sacct.txt").read_text())[2:3]
    many = [replace(one, job=str(number)) for number in range(14)]
    found = TargetWaste("adas", sum_up(many, {}, 8, NOW["odd"] - 86400, NOW["odd"]), True, None)
    assert "and 4 more" in list(waste.page(found, "1d", 80))
    assert len(found.as_json()["runs"]) == 14


def test_what_became_of_the_time_of_own_runs_and_what_it_cost() -> None:
    one = Goodput("gpu_s", {"productive": 27 * 3_600_000, "lost_work": 9 * 3_600_000})
    lines = list(waste.page(replace(recorded("odd", PRICE), goodputs={"a": one, "b": one}), "1d", 80))
    at = next(number for number, line in enumerate(lines) if line.startswith("goodput"))
    assert [line.strip() for line in lines[at : at + 4]] == [
        "goodput   75.0 % of 72 GPU hours productive, 75.0 % with the queue (ETTR)",
        "lost work 25.0 %",
        "what was not productive cost 36.00 EUR",
        "of 2 own runs, each as a whole",
    ]


def test_nothing_and_away() -> None:
    nothing = TargetWaste("adas", sum_up([], {}, None, 0, 10), False, None)
    assert list(waste.page(nothing, "7d", 80)) == [
        "adas: no job held GPUs in the last 7d",
        "seen      own runs only: there is no accounting to ask",
    ]
    kept = TargetWaste("adas", sum_up([], {}, 8, 0, 10), True, None)
    assert list(waste.page(kept, "7d", 80)) == [
        "adas: no job held GPUs in the last 7d",
        "hint      GPUs are on account only with AccountingStorageTRES=gres/gpu in slurm.conf",
    ]
    (one,) = parse_past((CASES / "odd" / "sacct.txt").read_text())[1:2]
    unknown = TargetWaste("adas", sum_up([one], {}, 8, NOW["odd"] - 3600, NOW["odd"]), True, None)
    assert (
        waste.verdict(unknown.waste, unknown.price, "1h")
        == "1120 GPU hours were held, none of which is known to be idle"
    )
    assert TargetWaste("adas", away="no route").as_json() == {"target": "adas", "error": "no route"}


def test_a_time_without_a_unit_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path))
    assert main(["waste", "local", "--since", "7"]) == 2
    assert capsys.readouterr().err == '"7" has no unit\n\nhint: did you mean `7s`? units are d, h, m, s, ms\n'
    assert main(["waste", "local"]) == 0
    assert capsys.readouterr().out == "local: no job held GPUs in the last 7d\n"
