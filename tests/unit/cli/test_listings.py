"""The tables and fact lines of `ps`, `show` and `top`, compared whole."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from podwright.cli.commands.look import show, top
from podwright.cli.terminal import follow, listing, output
from podwright.cli.terminal.progress import Progress
from podwright.cli.terminal.status import machine_pieces
from podwright.runs import Record
from podwright.runs.events import PilotStarted, RankStarted, ResultTold, Sample
from podwright.runs.record import from_row
from podwright.runs.training_progress import ProgressClock
from tests.paths import CASES as ALL_CASES

CASES = ALL_CASES / "cli"
NOW = datetime(2026, 3, 4, 12, 0, 0, tzinfo=UTC).timestamp()
Golden = Callable[[Path, str], None]


def record(**given: Any) -> Record:
    """A run that `--json` shows so; what is not given is a run that succeeded on two nodes."""
    row = {
        "id": "segmentation-7f3k",
        "name": "segmentation",
        "parent": None,
        "matrix": None,
        "target": "local",
        "state": "succeeded",
        "reason": "",
        "exit_code": 0,
        "attempts": 1,
        "nodes": 2,
        "hosts": ["dgx001", "dgx002"],
        "world_size": 16,
        "created_at": "2026-03-04T11:00:00Z",
        "started_at": "2026-03-04T11:00:05Z",
        "ended_at": "2026-03-04T11:02:16Z",
        "duration_s": 131.0,
        "time_to_train_s": 114.0,
        "results": {"epoch": 6, "loss": 0.31, "mean_iou": 0.7123},
        "cost": None,
        "folder": "/home/me/.local/share/podwright/runs/segmentation-7f3k",
        "goal_value": 0.6612,
        **given,
    }
    return from_row(row)


ACTIVE = {"ended_at": None, "duration_s": None, "time_to_train_s": None, "exit_code": None}
WAITING = {**ACTIVE, "started_at": None, "created_at": "2026-03-04T11:59:48Z", "results": {}}
RECORDS = [
    record(id="lm-2b9d", state="pending", target="adas:slurm", nodes=140, reason="waiting: Priority", **WAITING),
    record(id="segmentation-9k2m", state="running", results={"epoch": 3, "loss": 0.4121}, **ACTIVE),
    record(),
    record(
        id="segmentation-44aa",
        state="failed",
        reason="rank 3 on dgx002 exited with 1 after 41 s; ranks 0-2, 4-15 were stopped",
        created_at="2026-03-01T07:00:00Z",
        exit_code=1,
        results={},
    ),
    record(id="sweep-3c-12", state="cancelled", results={}, created_at="2025-12-04T11:00:00Z"),
]


def text(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


def test_ps(golden: Golden) -> None:
    golden(CASES / "ps" / "piped.txt", text(listing.listing(RECORDS, None, NOW)))


def test_ps_at_eighty_columns(golden: Golden) -> None:
    lines = listing.listing(RECORDS, 80, NOW)
    assert max(map(len, lines)) <= 80
    golden(CASES / "ps" / "terminal.txt", text(lines))


def test_a_sweep_says_how_far_its_points_are() -> None:
    assert (
        listing.outcome(record(reason="97 succeeded, 3 running", state="running", results={}))
        == "97 succeeded, 3 running"
    )
    silent = record(reason="no word from n3 for 40 s", state="running")
    assert listing.outcome(silent) == "no word from n3 for 40 s"


@pytest.mark.parametrize(
    ("counts", "words"),
    [
        ({"step": 30, "steps": 120}, "25%  loss 0.5"),
        ({"epoch": 1, "epochs": 4, "step": 3, "loss": 0.5}, "25%  loss 0.5"),
        ({"step": 7, "steps": 0}, "loss 0.5"),
        ({"step": 130, "steps": 120}, "100%  loss 0.5"),
    ],
)
def test_a_run_at_work_says_how_far_it_is(counts: dict[str, float], words: str) -> None:
    clock = ProgressClock()
    clock.take(0.0, (0, 0), 0, counts)
    progress = clock.at(0.0, (0, 0), is_over=False)
    assert progress is not None
    at_work = record(state="running", results={"loss": 0.5}, progress=progress.as_json())
    assert listing.outcome(at_work) == words
    assert not listing.outcome(replace(at_work, state="succeeded")).startswith("2")
    of_epoch = {**progress.as_json(), "share": 0.25, "eta_s": 61.0, "of": "epoch", "epoch": 2.0, "epochs": None}
    assert listing.outcome(replace(at_work, progress=of_epoch)) == "25% of epoch 2  ETA 1m 1s of this epoch  loss 0.5"


def test_the_points_of_a_sweep_show_what_was_varied(golden: Golden) -> None:
    failed = {"state": "failed", "reason": "rank 0 on dgx001 exited with 1 after 3 s", "results": {}}
    points = [
        record(id="sweep-3c4d-1", matrix={"rate": 0.1, "kind": "adam"}),
        record(id="sweep-3c4d-2", matrix={"rate": 0.00001, "kind": "sgd"}, **failed),
    ]
    lines = listing.points_listing(points, 80, NOW)
    assert max(map(len, lines)) <= 80
    golden(CASES / "show" / "points.txt", text(lines))


@pytest.mark.parametrize(
    ("name", "given", "goal"),
    [
        ("succeeded", record(), {"metric": "mean_iou", "at_least": 0.65}),
        ("running", RECORDS[1], None),
        ("pending", RECORDS[0], None),
        (
            "point",
            record(
                parent="sweep-3c",
                matrix={"lr": 0.01, "seed": 2},
                attempts=3,
                cost={"amount": 12.3456, "currency": "EUR", "origin": "modelled"},
                hosts=[],
            ),
            None,
        ),
    ],
)
def test_show(name: str, given: Record, goal: dict[str, Any] | None, golden: Golden) -> None:
    facts = show.facts(replace(given, goal=goal), 0, [], NOW)
    lines = [line for word, said in facts for line in output.aligned(word, said, io.StringIO())]
    golden(CASES / "show" / f"{name}.txt", text(lines))


def test_top(golden: Golden) -> None:
    golden(CASES / "top" / "two-runs.txt", text(top.listing([_busy(), Progress(RECORDS[0])], 80)))


def test_a_straggler_is_marked_and_a_mean_does_not_hide_it() -> None:
    progress = _busy()
    slow = {"gpu.3.utilization_percent": 12.0}
    progress.take(progress.record, [], [Sample(float(second), (0, 0), 0, slow) for second in range(10)])
    marked = [line.split() for line in top.listing([progress], 80) if line.endswith("straggler")]
    assert marked == [["gpu", "3", "12%", "-", "400", "W", "straggler"]]
    assert "".join(text for text, _ in machine_pieces(progress)) == "gpu 83% mean, straggler 12% dgx001 gpu 3"


def test_step_and_loss_stand_beside_the_gpu_of_their_rank() -> None:
    progress = _busy()
    told = {"step": 120.0, "steps": 1000.0, "loss": 0.4121}
    at = {"time": 2.0, "epoch": (0, 0), "node": 0}
    progress.take(progress.record, [RankStarted(**at, rank=5, gpu=5), ResultTold(**at, rank=5, values=told)], [])
    rows = [line.split() for line in top.listing([progress], 80)]
    assert ["gpu", "5", "120/1000", "0.412", "95%", "-", "400", "W"] in rows
    assert ["gpu", "4", "94%", "-", "400", "W"] in rows


def test_a_screen_that_is_too_low_still_shows_the_straggler() -> None:
    rows = [top.Row(f"line {number}", "warn" if number == 18 else "") for number in range(20)]
    shown = [row.text for row in top._fitting(rows, 5)]
    assert shown == ["line 0", "line 1", "line 2", "line 18", "... 16 more; `podwright top --once` prints all"]


def test_states_have_colours_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    lines = listing.listing(RECORDS, 80, NOW)
    assert listing.coloured(lines, RECORDS, io.StringIO()) == lines
    shown = listing.coloured(lines, RECORDS, Terminal())
    assert "\x1b[31mfailed\x1b[0m" in shown[4]
    assert [re.sub("\x1b\\[[0-9]*m", "", line) for line in shown] == lines


def test_the_metric_of_the_goal_comes_first() -> None:
    goal = {"metric": "mean_iou", "at_least": 0.65}
    assert listing.outcome(record(goal=goal)) == "mean_iou 0.712  loss 0.31"


def test_top_of_nothing() -> None:
    assert top.listing([], 80) == ["no active runs"]


def _busy() -> Progress:
    progress = Progress(RECORDS[1])
    values = {"cpu_percent": 42.2, "memory_used_bytes": 2.0**36}
    gpus = {f"gpu.{number}.utilization_percent": 90.0 + number for number in range(8)}
    power = {f"gpu.{number}.power_watts": 400.0 for number in range(8)}
    pilots = [PilotStarted(time=0.0, epoch=(0, 0), node=node, host=f"dgx00{node + 1}") for node in range(2)]
    samples = [Sample(1.0, (0, 0), 0, values | gpus | power), Sample(1.0, (0, 0), 1, values)]
    progress.take(RECORDS[1], pilots, samples)
    return progress


def test_points_picture_counts_states() -> None:
    states = ["succeeded"] * 3 + ["running", "failed", "pending"]
    (line,) = follow.points_picture("running", [record(state=state) for state in states], 80)
    assert (
        "".join(text for text, _ in line)
        == "running   " + "━" * 13 + "╌" * 7 + "  1 failed, 1 pending, 1 running, 3 succeeded"
    )
