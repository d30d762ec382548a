"""The page of a sweep: what it says first, its maps, its shares, and the order of its points."""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from podwright.analysis.data import ReportData
from podwright.report import render_comparison
from tests.unit.report.made import made
from tests.unit.report.test_page import HOSTILE, Reader

GOAL = {"metric": "mean_iou", "at_least": 0.6}


def point(number: int, matrix: Mapping[str, Any] | None, results: Mapping[str, float], **more: Any) -> ReportData:
    record = {"id": f"toy-1-{number}", "parent": "toy-1", "state": "succeeded", "duration_s": 10.0 + number}
    asked = {"workload": {"goal": more.pop("goal", None)}}
    return made({**record, "matrix": matrix, "results": results, **more}, asked, 100.0)


def grid(goal: Mapping[str, Any] | None = None) -> list[ReportData]:
    places = [(lr, size) for lr in (0.1, 0.01) for size in (8, 16, 32)]
    told = (0.2, 0.3, 0.4, 0.5, 0.7, 0.6)
    return [
        point(i + 1, {"lr": lr, "batch": size}, {"mean_iou": told[i]}, goal=goal) for i, (lr, size) in enumerate(places)
    ]


def lines(runs: list[ReportData]) -> list[str]:
    return Reader(render_comparison(runs)).lines


def test_with_a_goal_the_best_point_is_named_and_comes_first() -> None:
    said = lines(grid(GOAL))
    assert "Best is lr=0.01, batch=16: mean IoU 0.7, goal at least 0.60 reached." in said
    points = [line for line in said if re.fullmatch(r"toy-1-\d", line)]
    assert points == ["toy-1-5", "toy-1-6", "toy-1-4", "toy-1-3", "toy-1-2", "toy-1-1"]


def test_a_point_that_failed_is_not_the_best() -> None:
    runs = [*grid(GOAL), point(7, {"lr": 0.1, "batch": 64}, {"mean_iou": 0.9}, goal=GOAL, state="failed")]
    said = lines(runs)
    best = "Best is lr=0.01, batch=16: mean IoU 0.7, goal at least 0.60 reached."
    assert f"1 of 7 points failed: 1 failed. {best}" in said
    assert [line for line in said if re.fullmatch(r"toy-1-\d", line)][-1] == "toy-1-7"


def test_while_no_point_succeeded_the_best_so_far_is_told() -> None:
    runs = [point(i, {"lr": i}, {"mean_iou": 0.1 * i}, goal=GOAL, state="running") for i in (1, 2)]
    said = "No point that reported it has succeeded; best so far is lr=2: mean IoU 0.2, goal at least 0.60 missed."
    assert said in lines(runs)


def test_without_a_goal_nobody_knows_what_is_best() -> None:
    said = lines(grid())
    assert "mean IoU lies between 0.2 at lr=0.1, batch=8 and 0.7 at lr=0.01, batch=16." in said
    assert "6 points of toy-1" in said
    assert "6 succeeded" in said


def test_two_axes_are_a_map_of_every_figure() -> None:
    page = render_comparison(grid())
    assert re.findall(r"<h3>(.*?)</h3>", page) == ["mean IoU", "duration"]
    [first, _] = re.findall(r'<table class="matrix flat".*?</table>', page, re.DOTALL)
    assert re.findall(r'<th scope="(?:col|row)">(.*?)</th>', first) == ["8", "16", "32", "0.01", "0.1"]
    cells = re.findall(r'shade-(\d+)(?: best)?" [^>]*?data-text="(.*?)".*?>([^<]*)</td>', first)
    assert [text for _, _, text in cells] == ["0.5", "0.7", "0.6", "0.2", "0.3", "0.4"]
    assert [int(shade) for shade, _, _ in cells] == [6, 10, 8, 0, 2, 4]
    assert cells[1][1] == "lr=0.01, batch=16: mean IoU 0.7 (toy-1-5), the best"


def best_cells(page: str) -> list[tuple[str, str]]:
    """The cells with a frame: how strong their colour is, and what they say."""
    return re.findall(r'class="shade-(\d+) best" [^>]*data-text="(.*?)"', page)


def test_the_best_cell_has_a_frame_and_the_strongest_colour() -> None:
    good, quick = best_cells(render_comparison(grid()))
    assert good == ("10", "lr=0.01, batch=16: mean IoU 0.7 (toy-1-5), the best")
    assert quick == ("10", "lr=0.1, batch=8: duration 11 s (toy-1-1), the best")


@pytest.mark.parametrize(
    ("name", "goal", "best"),
    [
        ("loss", None, ["0.2"]),
        ("val_loss", None, ["0.2"]),
        ("accuracy", None, ["0.7"]),
        ("height", None, []),
        ("height", {"metric": "height", "at_most": 1.0}, ["0.2"]),
        ("height", {"metric": "height", "at_least": 1.0}, ["0.7"]),
    ],
)
def test_what_is_best_says_the_goal_or_a_name_that_leaves_no_doubt(name: str, goal: Any, best: list[str]) -> None:
    runs = [
        replace(run, record=replace(run.record, results={name: run.record.results["mean_iou"]}, duration_s=1.0))
        for run in grid(goal)
    ]
    page = render_comparison(runs)
    assert [re.findall(r"[\d.]+(?= \()", text)[0] for _, text in best_cells(page)] == best
    assert ("the stronger the colour, the better" in page) == bool(best)


def test_a_cell_without_a_point_that_succeeded_is_not_the_best() -> None:
    runs = grid()
    runs[4] = point(5, {"lr": 0.01, "batch": 16}, {"mean_iou": 0.9}, state="failed")
    assert best_cells(render_comparison(runs))[0][1] == "lr=0.01, batch=32: mean IoU 0.6 (toy-1-6), the best"


def test_points_that_were_repeated_are_told_by_their_median() -> None:
    runs = [
        point(i + 1, {"lr": lr, "batch": size}, {"loss": float(value)})
        for i, (lr, size, value) in enumerate(
            (lr, size, value) for lr in (1, 2) for size in (1, 2) for value in (3, 9, 4)
        )
    ]
    page = render_comparison(runs)
    assert "Several points each: a map shows their median" in page
    assert page.count("loss 4 (median of 3, 3 to 9)") == 8, "as text and as label of four places"


def test_a_place_without_a_value_says_why() -> None:
    runs = grid()
    runs[0] = point(1, {"lr": 0.1, "batch": 8}, {}, state="failed", reason="rank 0 exited with 1", duration_s=None)
    del runs[1]
    page = render_comparison(runs)
    assert "lr=0.1, batch=8: Failed: rank 0 exited with 1." in page
    assert "lr=0.1, batch=16: no such point" in page


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "0.9"])
def test_a_training_that_diverged_has_no_figure(value: Any) -> None:
    runs = grid(GOAL)
    runs[4] = point(5, {"lr": 0.01, "batch": 16}, {"mean_iou": value}, goal=GOAL)
    said = lines(runs)
    assert "Best is lr=0.01, batch=32: mean IoU 0.6, goal at least 0.60 reached." in said
    assert [line for line in said if line.startswith("toy-1-")][-1] == "toy-1-5"


def test_more_axes_are_told_one_by_one() -> None:
    places = [(a, b, c) for a in (1, 2) for b in (1, 2) for c in ("x", "y")]
    runs = [point(i, {"a": a, "b": b, "c": c, "d": 5}, {"loss": float(i)}) for i, (a, b, c) in enumerate(places)]
    said = lines(runs)
    at = said.index("loss by a")
    assert said[at + 1 : at + 16] == [
        *("a", "Points", "Least", "Median", "Greatest"),
        *("1", "4", "0", "1.5", "3"),
        *("2", "4", "4", "5.5", "7"),
    ]
    assert "loss by c" in said
    assert "loss by d" not in said, "it is the same for all"


def test_many_runs_without_a_matrix_are_rows_too() -> None:
    runs = [point(i, None, {"loss": 1.0}) for i in range(12)]
    said = lines(runs)
    assert "loss is 1 at every point." in said
    assert [line for line in said if line.startswith("toy-1-")] == [f"toy-1-{i}" for i in range(12)]


@pytest.mark.parametrize("odd", [[1, 2], {"a": 1}, None, True, float("nan"), HOSTILE])
def test_odd_values_are_shown_not_believed(odd: Any) -> None:
    runs = [point(i, {"x": odd if i % 2 else 1, "y": i}, {"loss": 1.0}) for i in range(4)]
    page = render_comparison(runs)
    assert Reader(page).open == []
    assert "<img" not in page
