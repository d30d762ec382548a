"""Changes of a run, folded into figures, lines and a picture."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podwright.cli.terminal.live import picture
from podwright.cli.terminal.progress import Progress, goal_text
from podwright.cli.terminal.status import status, used_of
from podwright.runs import Record
from podwright.runs.events import Event, Joined, PilotStarted, ResultTold, Sample
from podwright.runs.training_progress import ProgressClock
from tests.paths import CASES as ALL_CASES
from tests.unit.runs.made import parsed

CASES = ALL_CASES / "cli" / "live"
GOAL = {"metric": "mean_iou", "at_least": 0.65}


def record(**given: Any) -> Record:
    fixed = {"id": "segmentation-7f3k", "name": "segmentation", "target": "local", "folder": "/runs", "created_at": 0.0}
    return Record(**{**fixed, "state": "running", "nodes": 2, "world_size": 2, **given})


def pilots(*hosts: str) -> list[Event]:
    return [PilotStarted(time=0.0, epoch=(0, 0), node=number, host=host) for number, host in enumerate(hosts)]


def sample(node: int, gpus: int = 0, use: float = 50.0) -> Sample:
    values = {"cpu_percent": use, "memory_used_bytes": 3.1 * 2**30}
    for gpu in range(gpus):
        values[f"gpu.{gpu}.utilization_percent"] = use
        values[f"gpu.{gpu}.memory_used_bytes"] = 71.0 * 2**30
        values[f"gpu.{gpu}.power_watts"] = 640.0
    return Sample(1.0, (0, 0), node, values)


def result(**values: float) -> Event:
    return ResultTold(time=0.0, epoch=(0, 0), node=0, rank=0, values=values)


def reached(*tells: tuple[float, dict[str, float]], now: float | None = None) -> dict[str, Any]:
    """Return how far a training is that told these counts."""
    clock = ProgressClock()
    for t, values in tells:
        clock.take(t, (0, 0), 0, values)
    progress = clock.at(tells[-1][0] if now is None else now, (0, 0), is_over=False)
    assert progress is not None
    return progress.as_json()


def drawn(progress: Progress, width: int = 80) -> str:
    lines = ["".join(text for text, _ in line).rstrip() for line in picture(progress, 72.4, width)]
    assert [line for line in lines if len(line) > width] == []
    return "\n".join(lines) + "\n"


def with_nodes(count: int, gpus: int) -> Progress:
    progress = Progress(record(nodes=count), GOAL)
    progress.take(record(nodes=count), pilots(*(f"dgx{number:03}" for number in range(1, count + 1))), [])
    for tick in range(40):
        samples = [sample(node, gpus, use=(tick * 5 + node * 7) % 101) for node in range(count)]
        progress.take(record(nodes=count), [], samples)
    values = {"epoch": 3.0, "epochs": 6.0, "loss": 0.412, "mean_iou": 0.58}
    progress.take(record(nodes=count, progress=reached((0.0, values))), [result(**values)], [])
    return progress


@pytest.mark.parametrize(
    ("name", "nodes", "gpus"),
    [("two-nodes", 2, 0), ("two-nodes-gpus", 2, 8), ("one-gpu", 1, 1), ("many-nodes", 140, 8)],
)
def test_picture(name: str, nodes: int, gpus: int, golden: Callable[[Path, str], None]) -> None:
    golden(CASES / f"{name}.txt", drawn(with_nodes(nodes, gpus)))


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_picture_fits_a_terminal_without_gpus(width: int) -> None:
    assert "epoch 3/6" in drawn(with_nodes(2, 0), width)


@pytest.mark.parametrize("width", [60, 80, 120, 160])
def test_status_has_all_that_is_asked_of_it_on_any_terminal(width: int) -> None:
    progress = with_nodes(1, 8)
    counts = reached((10.0, {"step": 100, "steps": 1000}), (15.0, {"step": 120}))
    progress.take(record(nodes=1, progress=counts), [result(loss=0.412)], [])
    lines = ["".join(text for text, _ in line) for line in status(progress, 72.4, width)]
    assert max(map(len, lines)) <= width
    shown = " ".join(" ".join(lines).split())
    for part in ("running", "ETA 3m 40s", "4/s", "gpu 72% mean, slowest 72% dgx001 gpu 0", "1m 12s"):
        assert part in shown
    assert len(lines) == (1 if width > 120 else 2)


def test_memory_is_shown_of_all_there_is() -> None:
    assert used_of(71.2 * 2**30, 80 * 2**30) == "71.2/80 GiB"
    assert used_of(512 * 2**20, 80 * 2**30) == "0.5/80 GiB"
    assert used_of(2**30, None) == "1 GiB"
    assert used_of(None, 2**30) == "-"


def test_picture_before_anything_is_told() -> None:
    progress = Progress(record(state="pending", reason="waiting for 2 nodes"))
    assert drawn(progress) == "pending   waiting for 2 nodes" + " " * 45 + "1m 12s\n"


def test_a_run_that_waits_for_a_node_is_not_shown_where_it_was_before() -> None:
    why = "node 1 was silent for 30 s"
    progress = with_nodes(2, 0)
    progress.take(record(state="pending", reason=why), [], [])
    assert progress.news() == why
    assert drawn(progress).startswith(f"pending   {why}   ")
    assert "loss" not in drawn(progress)


def test_picture_of_a_run_whose_nodes_join() -> None:
    progress = Progress(record(state="starting"))
    progress.take(record(state="starting"), [Joined(time=0.0, epoch=(0, 0), node=0, at_node=1, of=2)], [])
    assert drawn(progress).startswith("starting  1 of 2 nodes joined ")


def test_picture_cuts_a_reason_that_tries_to_move_the_cursor() -> None:
    progress = Progress(record(state="pending", reason="\x1b[2J" + "x" * 200))
    assert "\x1b" not in drawn(progress)
    assert "xxx..." in drawn(progress)


def test_nodes_on_one_host_are_told_apart_by_number() -> None:
    progress = Progress(record())
    progress.take(record(), pilots("laptop", "laptop"), [])
    assert [progress.label(0), progress.label(1)] == ["node0", "node1"]


def test_share_is_of_the_steps_of_the_run() -> None:
    progress = Progress(record(progress=reached((0.0, {"epoch": 1, "epochs": 2, "step": 30, "steps": 120}))))
    assert progress.share() == 0.25
    assert progress.how_far() == "epoch 1/2"


def test_a_line_tells_of_one_thing() -> None:
    tells = [(t, {"epoch": 0.0, "step": 10.0 * t, "steps": 100.0}) for t in (8.0, 9.0)]
    clock = reached(*tells, (10.0, {"epoch": 1.0, "step": 0.0}), (11.0, {"step": 10.0}))
    progress = Progress(record(progress=clock))
    assert progress.news() == "epoch 1, step 10/100  ETA 9 s of this epoch  10/s"


def test_share_is_unknown_without_an_end() -> None:
    progress = Progress(record(progress=reached((0.0, {"step": 30, "steps": 0}))))
    assert progress.share() is None
    assert progress.how_far() == "step 30/0"


def test_quality_prefers_loss_and_the_goal() -> None:
    values = {"lr": 0.1, "mean_iou": 0.5, "loss": 0.4, "accuracy": 0.9}
    with_goal, without = Progress(record(), GOAL), Progress(record())
    for progress in (with_goal, without):
        progress.take(record(), [result(**values)], [])
    assert with_goal.quality() == "loss 0.4  mean_iou 0.5"
    assert without.quality() == "loss 0.4  mean_iou 0.5  accuracy 0.9"


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            {"k": "go", "hosts": ["a", "b"], "attempt": 1, "world_size": 2, "took_s": 1.93},
            ("joined", "world size 2 proven in 1.9 s"),
        ),
        (
            {"k": "go", "hosts": ["a", "b"], "attempt": 2, "world_size": 2, "took_s": 0.5},
            ("joined", "world size 2 proven in 0.50 s, attempt 2"),
        ),
        (
            {"k": "retry", "attempt": 2, "why": "rank 3 exited with 1"},
            ("retry", "attempt 2: rank 3 exited with 1"),
        ),
        (
            {"k": "hang", "rank": 3, "node": 1, "silent_s": 600, "why": ""},
            ("hang", "rank 3 on b was silent for 10m 0s"),
        ),
        (
            {"k": "slow", "rank": 3, "node": 1, "slower_by": 0.45, "evidence": "1.5 s", "stays": "no spare waits"},
            ("slow", "rank 3 is slower by 45%: 1.5 s; it stays: no spare waits"),
        ),
        (
            {"k": "slow", "rank": 3, "node": 1, "slower_by": 0.45, "evidence": "1.5 s", "stays": ""},
            ("slow", "rank 3 is slower by 45%: 1.5 s; a spare takes the place of its node"),
        ),
        (
            {"k": "goal", "metric": "mean_iou", "value": 0.66, "took_s": 114},
            ("goal", "mean_iou 0.66 >= 0.65"),
        ),
        ({"k": "seen", "n": 1, "what": "xid", "device": "gpu 3", "text": "XID 48"}, ("seen", "b gpu 3: XID 48")),
        ({"k": "given_back", "n": 1, "why": "not all nodes came"}, ("waiting", "b: not all nodes came")),
        (
            {"k": "requeued", "e": [0, 0], "why": "waits in the queue lab"},
            ("waiting", "the run waits in the queue lab"),
        ),
        ({"k": "fenced", "n": 1, "by": [1, 0]}, ("fenced", "b gave way to a newer attempt")),
        (
            {"k": "workdir", "files": 2, "bytes": 2048, "left_count": 3, "left": [{"path": "pipe", "why": "a pipe"}]},
            (
                "kept",
                "2 files, 2 KiB, as results/workdir: `podwright pull segmentation-7f3k`\nnot pipe: a pipe\nnor 2 more",
            ),
        ),
    ],
)
def test_events_worth_a_line(event: dict[str, Any], line: tuple[str, str]) -> None:
    progress = Progress(record(), GOAL)
    progress.take(record(), pilots("a", "b"), [])
    row = {"t": 0.0, "e": [0, 0], **event}
    if event["k"] != "requeued":
        row = {"n": 0, **row}
    assert progress.take(record(), parsed(row), []) == [line]


def test_data_on_its_way_is_shown_until_the_ranks_start() -> None:
    progress = Progress(record())
    rows = [{"t": 0.0, "e": [0, 0], "n": n, "k": "staging", "bytes": (n + 1) << 20, "of": 4 << 20} for n in (0, 1)]
    assert progress.take(record(), parsed(*rows), []) == []
    assert progress.waiting_for() == "data 3 MiB of 8 MiB"
    progress.take(
        record(),
        parsed({"t": 1.0, "e": [0, 0], "n": 0, "k": "go", "attempt": 1, "world_size": 2, "hosts": ["a", "b"]}),
        [],
    )
    assert progress.waiting_for() == ""


def test_other_events_are_not_told() -> None:
    kinds = ("staged", "rank", "ready", "checkpoint", "sensor", "thinned")
    quiet = parsed(*({"t": 0.0, "e": [0, 0], "n": 0, "k": kind, "rank": 0} for kind in kinds))
    assert len(quiet) == len(kinds)
    assert Progress(record()).take(record(), quiet, []) == []


def test_a_value_that_was_not_read_keeps_its_last_reading() -> None:
    progress = Progress(record())
    progress.take(record(), [], [sample(0, gpus=1), Sample(2.0, (0, 0), 0, {"cpu_percent": 10.0})])
    node = progress.nodes[0]
    assert (node.cpu_percent, node.gpu_percent, node.gpu_power_w) == (10.0, 50.0, 640.0)


def test_goal_text() -> None:
    assert goal_text({"metric": "loss", "at_most": 3.2, "at_least": None}) == "<= 3.2"
