"""Parts of the page: classes, curves, lanes, environment, and how to run it again."""

from dataclasses import replace

import pytest

from podwright.analysis.classes import class_bars, in_use, matrix_rows, most_mixed
from podwright.analysis.curves import curves_of, thin
from podwright.analysis.data import Confusion, ReportData
from podwright.analysis.ranks import story_of
from podwright.analysis.reported import MAX_POINTS, CurvePoint, ToldTrack, summed_up
from podwright.report.facts import environment, recipe
from podwright.report.timeline import lanes_of
from podwright.runs.events import ResultTold
from podwright.runs.series import ToldValue, of_events
from podwright.theme.words import fold, number, quantity, score
from tests.fixtures.run_folder import START
from tests.unit.report.made import made

SMALL = Confusion(("road", "car", "ghost", "never"), ((90, 10, 0, 0), (5, 15, 5, 0), (0,) * 4, (0,) * 4), {})


def told(*values: dict[str, float], rank: int = 0) -> list[ToldValue]:
    events = (ResultTold(time=START + i, epoch=(0, 0), node=0, rank=rank, values=v) for i, v in enumerate(values))
    return list(of_events(events))


def data(**fields: object) -> ReportData:
    return made({"state": "running"}, **fields)


def test_classes_that_never_occurred_take_no_room() -> None:
    bars, absent = class_bars(data(confusion=SMALL))
    assert [(bar.name, bar.shown, bar.recall, bar.precision) for bar in bars] == [
        ("road", "0.86", "90 %", "95 %"),
        ("car", "0.43", "60 %", "60 %"),
        ("ghost", "0.00", "–", "0 %"),  # noqa: RUF001
    ]
    assert absent == ["never"]
    shown = in_use(SMALL)
    assert shown.classes == ("road", "car", "ghost")
    assert [(row.name, [cell.count for cell in row.cells]) for row in matrix_rows(shown)] == [
        ("road", [90, 10, 0]),
        ("car", [5, 15, 5]),
    ]
    assert next((m.truth, m.taken_for, m.share) for m in most_mixed(shown)) == ("car", "road", "20.0 %")


def test_loss_comes_first_then_the_goal_and_nothing_is_said_twice() -> None:
    goal = {"metric": "mean_iou", "at_least": 0.65}
    values = told(
        {"step": 1, "loss": 2.0, "mean_iou": 0.1, "eval_accuracy": 0.1, "lr": 0.5},
        {"step": 2, "loss": 1.0, "mean_iou": 0.2, "eval_accuracy": 0.2, "lr": 0.4, "iou.road": 0.3, "once": 1},
    )
    assert [curve.name for curve in curves_of(made({}, {"workload": {"goal": goal}}, told=summed_up(values)))] == [
        "loss",
        "mean_iou",
        "lr",
    ]


def test_of_several_ranks_the_lowest_is_drawn() -> None:
    values = (*told({"loss": 5.0}, {"loss": 4.0}, rank=3), *told({"loss": 2.0}, {"loss": 1.0}, rank=1))
    assert [point.value for point in curves_of(data(told=summed_up(values)))[0].points] == [2.0, 1.0]


def test_a_long_curve_keeps_its_spikes() -> None:
    points = [CurvePoint(float(i), float(i), 9.0 if i == 4321 else 1.0) for i in range(10_000)]
    kept = thin(points, 200)
    assert len(kept) <= 200
    assert max(point.value for point in kept) == 9.0


def test_a_track_of_any_length_keeps_its_spikes_its_first_and_its_last_point_in_bounded_memory() -> None:
    track = ToldTrack()
    for i in range(100_000):
        value = 1.0 + i % 7
        if i in (4321, 77_777):
            value = (9.0, -9.0)[i > 50_000]
        track.add(CurvePoint(float(i), None, value))
    points = track.points()
    assert len(points) <= MAX_POINTS + 3
    assert [point.t for point in points] == sorted(point.t for point in points)
    assert (max(point.value for point in points), min(point.value for point in points)) == (9.0, -9.0)
    assert points[-1] == CurvePoint(99_999.0, None, 1.0 + 99_999 % 7)


def test_a_short_track_keeps_every_point() -> None:
    track, points = ToldTrack(), [CurvePoint(float(i), float(i), i % 5) for i in range(MAX_POINTS - 1)]
    for point in points:
        track.add(point)
    assert list(track.points()) == points


def test_lanes_tell_attempts_failures_and_what_was_seen(gathered: dict[str, ReportData]) -> None:
    lanes = lanes_of(story_of(gathered["succeeded"]))
    assert [bar.label for bar in lanes.run.bars] == ["attempt 1", "attempt 2"]
    assert [mark.kind for mark in lanes.run.marks if mark.kind != "checkpoint"] == ["retry", "goal"]
    assert [(lane.label, [mark.kind for mark in lane.marks]) for lane in lanes.nodes] == [
        ("dgx001", []),
        ("dgx002", ["seen", "seen", "failed"]),
    ]
    # The outcome keeps its place; what led to it stands to its left.
    assert [mark.nudge for mark in lanes.nodes[1].marks] == [-26, -13, 0]


def test_equal_nodes_are_said_once_and_a_difference_by_name(gathered: dict[str, ReportData]) -> None:
    facts = {fact.name: fact.values for fact in environment(story_of(gathered["succeeded"]))}
    assert facts["Memory"] == (("1 TiB", ""),)
    assert facts["GPUs"] == (("2 x NVIDIA A100-SXM4-80GB, 80 GiB", ""),)
    assert facts["Kernel"] == (("5.15.0-1042", "dgx001"), ("5.15.0-1051", "dgx002"))


def test_the_recipe_unpacks_the_code_and_keeps_the_changes(gathered: dict[str, ReportData]) -> None:
    folder = gathered["succeeded"].record.folder
    assert recipe(story_of(gathered["succeeded"])).commands == (
        f"mkdir segmentation-7f3k-again && tar -xf {folder}/job/code.tar -C segmentation-7f3k-again",
        "podwright run segmentation-7f3k-again/examples/segmentation.yaml --set retries=3 --on local",
    )
    outside = replace(gathered["succeeded"], workload_in_code="")
    assert recipe(story_of(outside)).commands[1] == (
        f"podwright run {folder}/spec/workload.yaml --set code=$PWD/segmentation-7f3k-again --set retries=3 --on local"
    )


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (quantity(85899345920, "bytes"), "80 GiB"),
        (quantity(1.25e9, "bytes_per_s"), "1.25 GB/s"),
        (quantity(12_300, "watts"), "12.3 kW"),
        (quantity(None, "watts"), "–"),  # noqa: RUF001
        (quantity(93.4, "percent"), "93.4 %"),
        (number(0.00001234), "1.23e-05"),
        (number(1234567), "1,234,567"),
        (score(0.7), "0.70"),
        (fold([4, 0, 1, 2, 7]), "0-2, 4, 7"),
    ],
)
def test_figures_in_words(shown: str, expected: str) -> None:
    assert shown == expected
