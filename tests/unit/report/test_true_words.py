"""One clock: headline, flag, tables, curve and JSON of recorded runs say the same of the moment the goal was met."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from podwright.cli.terminal import verdict
from podwright.reading.run_data import gather
from podwright.report import render_run
from podwright.runs import Fold, Record, RunFolder

RECORDED = Path(__file__).parents[2] / "fixtures" / "recorded"
MET = ("passed", "retried")
FLAG = re.compile(r'<svg x="([\d.]+)%"[^>]*class="mark"><g[^>]*><title>goal at ([\d.]+ s) \([\d:]+ UTC\): ([^<]*)<')
ROW = re.compile(r'<td class="num">([^<]*)</td><td class="fig">[^<]*</td><td>[^<]*</td><td>goal</td>')
FIGURE = re.compile(r'<dt>Time to train</dt>\s*<dd class="value">([^<]*)</dd>\s*<dd class="note">([^<]*)</dd>')


def page_of(name: str) -> str:
    return render_run(gather(RECORDED / name))


def headline(page: str) -> str:
    return re.findall(r'<h1 id="verdict-h">([^<]*)</h1>', page)[0]


def reasons(page: str) -> list[str]:
    return re.findall(r"<li>([^<]*)</li>", page.split('<ul class="reasons">')[1].split("</ul>")[0])


def payload_of(page: str) -> dict[str, Any]:
    payload: dict[str, Any] = json.loads(re.findall(r'id="data">(.*?)</script>', page, re.DOTALL)[0])
    return payload


def record_of(name: str) -> Record:
    """The record as the events make it today."""
    run = RunFolder(RECORDED / name)
    fold = Fold(run.asked, str(run.path))
    fold.take(run.events())
    return fold.record(0.0)


def sealed(name: str) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((RECORDED / name / "record.json").read_text())
    return record


HEADLINES = {
    "passed": "Reached loss 0.097, goal at most 0.10, in 1.8 s.",
    "retried": "Reached mean IoU 0.68, goal at least 0.65, in 3.9 s.",
    "never": "Finished in 1.5 s but missed the goal: mean IoU 0.649, goal at least 0.65.",
}
LATER = {
    "passed": "It went on: the best was 0.03 at 2.7 s; the last was 0.05 at 3.2 s.",
    "retried": "It went on: the best was 0.71 at 4.3 s; the last was 0.64 at 4.7 s, which misses the goal again.",
}
CLOCKS = {
    "passed": "MLLOG run_start",
    "retried": "the first start of the ranks",
    "never": "the first start of the ranks",
}
LINES = {
    "passed": "loss 0.097 <= 0.1, time to train 1.8 s; ended at 0.05 in 5.4 s",
    "retried": "mean_iou 0.683 >= 0.65, time to train 3.9 s; ended at 0.64 in 4.9 s, 2 attempts",
    "never": "mean_iou 0.649, goal >= 0.65 not reached, in 1.5 s",
}


@pytest.mark.parametrize("name", HEADLINES)
def test_the_headline_says_what_was_true_when_the_goal_was_met(name: str) -> None:
    assert headline(page_of(name)) == HEADLINES[name]


@pytest.mark.parametrize("name", MET)
def test_what_came_later_is_a_statement_of_its_own(name: str) -> None:
    assert reasons(page_of(name)) == [LATER[name]]


@pytest.mark.parametrize("name", MET)
def test_headline_flag_tables_and_json_agree_to_the_tenth_of_a_second(name: str) -> None:
    page, seconds = page_of(name), sealed(name)["time_to_train_s"]
    words = f"{seconds:.1f} s"
    assert record_of(name).time_to_train_s == seconds
    assert headline(page).endswith(f" in {words}.")
    assert [flag[1] for flag in FLAG.findall(page)] == [words]
    assert set(ROW.findall(page)) == {words}
    assert FIGURE.findall(page) == [(words, f"from {CLOCKS[name]} to the goal, measured")]


@pytest.mark.parametrize("name", MET)
def test_the_flag_and_the_curve_stand_where_the_axis_says(name: str) -> None:
    page, record = page_of(name), record_of(name)
    payload = payload_of(page)
    [(left, _, _)] = FLAG.findall(page)
    flag_s = payload["from"] + float(left) / 100 * (payload["to"] - payload["from"])
    assert flag_s == pytest.approx(record.time_to_train_s, abs=0.05)
    assert record.goal is not None
    [line] = next(curve["lines"] for curve in payload["curves"] if curve["key"] == record.goal["metric"])
    at_hit = line["time"][line["values"].index(record.goal_value)]
    assert at_hit == pytest.approx(record.time_to_train_s, abs=0.05)


def test_a_goal_that_was_never_met_has_no_flag_and_no_time() -> None:
    page = page_of("never")
    assert FLAG.findall(page) == ROW.findall(page) == []
    assert FIGURE.findall(page) == [("–", "the goal was not reached")]  # noqa: RUF001
    assert (record_of("never").time_to_train_s, sealed("never")["time_to_train_s"]) == (None, None)


@pytest.mark.parametrize("name", CLOCKS)
def test_the_page_names_its_clock(name: str) -> None:
    assert f"Times count from {CLOCKS[name]}; what came before is below zero." in page_of(name)


@pytest.mark.parametrize("name", LINES)
def test_the_line_in_the_terminal_says_the_same(name: str) -> None:
    record = record_of(name)
    assert verdict.sentence(record, record.goal) == ("succeeded", LINES[name])
