"""A run in hand: pull, remove, cancel, explain."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright import launch
from podwright.engines.base import Status
from podwright.launch.failures import explain
from podwright.launch.run import REST_S, is_over
from podwright.runs import Home, Record
from podwright.runs.copies import LeftOut
from podwright.runs.events import Event
from podwright.spec.problems import Refusal
from podwright.theme.words import fold
from tests.fixtures.clock import Clock
from tests.fixtures.fake_engine import FakeEngine
from tests.fixtures.hostile import NO_PLAIN_FILES
from tests.fixtures.launching import Load
from tests.unit.runs.made import asked, parsed
from tests.unit.runs.made import event as row


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def run(tmp_path: Path, engine: FakeEngine) -> launch.Run:
    """The folder of one that has results and a checkpoint."""
    home = Home.open(tmp_path / "home")
    home.create(asked("toy-2222"), {"results/deep/a": b"1\n", "checkpoints/b": b"2\n"}, {})
    return launch.Run(launch.Session(home, engines={"local": lambda: engine}), "toy-2222")


def test_pull_takes_results_and_checkpoints(run: launch.Run, tmp_path: Path) -> None:
    to = tmp_path / "to"
    assert sorted(run.pull([], to)) == [to / run.id / "checkpoints", to / run.id / "results"]
    assert (to / run.id / "results" / "deep" / "a").read_text() == "1\n"
    assert (to / run.id / "checkpoints" / "b").read_text() == "2\n"
    run.pull([], to)
    one = run.pull(["results/deep/a", "results/../checkpoints/b"], tmp_path / "one")
    assert [path.read_text() for path in one] == ["1\n", "2\n"]


def test_a_closing_is_waited_for_as_long_as_the_engine_may_lag(run: launch.Run, engine: FakeEngine) -> None:
    engine.lag_s = 15.0
    ended = Record(run.id, "toy", "adas", "succeeded", "", 1, 1, 0.0, ended_at=time.time() - 20)
    assert not is_over(run, ended)
    assert is_over(run, replace(ended, ended_at=time.time() - 26))
    engine.lag_s = 0.0
    assert is_over(run, ended)


def test_a_look_that_takes_long_is_soon_followed_by_the_next(run: launch.Run, engine: FakeEngine) -> None:
    """A cluster that is away holds one look up; it must not hold up the next as well."""
    clock = Clock()

    def answer_late() -> None:
        clock.now += 100

    engine.says, engine.on_status = Status("there"), answer_late
    session = launch.Session(run._session.home, engines={"local": lambda: engine}, clock=clock)
    assert launch.Run(session, run.id).wait_at_most(250).state == "pending"
    assert clock.rests == [REST_S] * 2


def test_a_wait_that_is_over_before_the_run_says_so(run: launch.Run, engine: FakeEngine) -> None:
    engine.says = Status("there")
    session = launch.Session(run._session.home, engines={"local": lambda: engine}, clock=Clock())
    with pytest.raises(TimeoutError, match=r"^toy-2222 is pending after 0\.01 s; it goes on$"):
        launch.Run(session, run.id).wait(timeout_s=0.01)


def test_pull_refuses_what_lies_outside_the_run(run: launch.Run, tmp_path: Path) -> None:
    (run.folder.path / "results" / "link").symlink_to("/etc")
    for name in ("../x", "..", "/etc/passwd", "results/../../..", "results/link/passwd", "results/link", "none"):
        with pytest.raises(Refusal) as caught:
            run.pull([name], tmp_path / "to")
        assert caught.value.problems[0].message == f"{run.id} has no {name}"
        assert caught.value.problems[0].hint.startswith("it has ")  # type: ignore[union-attr]
    assert not (tmp_path / "to").exists()


def test_pull_of_an_absolute_path_in_the_run_stays_in_its_target(run: launch.Run, tmp_path: Path) -> None:
    (copied,) = run.pull([str(run.folder.path / "results" / "deep" / "a")], tmp_path / "to")
    assert copied == tmp_path / "to" / run.id / "results" / "deep" / "a"
    assert copied.read_text() == "1\n"


def test_a_running_run_is_not_removed_and_a_cancelled_one_is(home: Home, load: Load) -> None:
    run = launch.start(launch.Session(home), load("command: sleep 1000\ngrace: 1s"))
    with pytest.raises(Refusal) as caught:
        run.remove()
    state = caught.value.problems[0].message.removeprefix(f"{run.id} is ")
    assert state in ("pending", "starting", "running")
    assert caught.value.problems[0].hint == f"`podwright cancel {run.id}` first"
    run.cancel()
    assert run.wait(60).state == "cancelled"
    run.remove()
    assert list(home.runs.iterdir()) == []
    assert launch.recent(launch.Session(home)) == []


def test_a_parent_is_removed_with_its_points(home: Home, load: Load) -> None:
    run = launch.start(launch.Session(home), load("command: 'true'\nmatrix: {a: [1, 2]}"))
    record = run.wait(60)
    assert (record.state, record.reason, record.attempts) == ("succeeded", "2 succeeded", 2)
    assert [record.id for record in launch.recent(launch.Session(home))] == [run.id]
    run.remove()
    assert list(home.runs.iterdir()) == []


def test_results_and_metrics_of_a_run(home: Home, load: Load) -> None:
    line = '{"podwright": {"step": 3, "loss": 0.5}}'
    run = launch.start(launch.Session(home), load(f"command: [echo, '{line}']\ngoal: {{metric: loss, at_most: 0.5}}"))
    assert run.result() == {"loss": 0.5, "step": 3}
    record = run.record()
    assert record.time_to_train_s is not None
    assert (record.exit_code, record.attempts, record.world_size) == (0, 1, 1)
    assert {sample.node for sample in run.metrics()} == {0}
    changes = list(run.watch())
    assert changes[-1].record == record
    assert "goal" in [event.kind for event in changes[-1].events]


# explaining


def record(reason: str) -> Record:
    return Record("toy-2222", "toy", "local", "failed", "/x", 1, 1, 0.0, reason=reason)


def failed(**fields: Any) -> Event:
    facts = {"rank": 3, "host": "dgx002", "why": "exited with 1", "after_s": 41.2, "stopped": [0, 1, 2, *range(4, 16)]}
    [event] = parsed(row("failed", **{"tail": ["Traceback", "", "RuntimeError: CUDA error"], **facts, **fields}))
    return event


def test_a_rank_that_hung_is_explained_by_where_it_was() -> None:
    dump = [
        "Fatal Python error: Aborted",
        "",
        "Thread 0x1 (most recent call first):",
        '  File "pin.py", line 3 in work',
    ]
    dump += [
        "",
        "Thread 0x2 (most recent call first):",
        '  File "train.py", line 41 in step',
        "",
        "Extension modules: x",
    ]
    [stack] = parsed(row("stack", rank=3, lines=dump))
    assert explain(record("rank 3 on dgx002 hangs: it waits in the kernel"), [stack]) == [
        "rank 3 on dgx002 hangs: it waits in the kernel",
        "stack rank 3 was at",
        'stack File "train.py", line 41 in step',
    ]
    [empty] = parsed(row("stack", rank=3, lines=["what a program printed last"]))
    assert explain(record("rank 3 hangs"), [empty]) == ["rank 3 hangs"]


def test_a_failed_rank_is_explained_with_its_last_lines_and_what_was_seen() -> None:
    [seen] = parsed(row("seen", what="ecc", device="gpu 3", text="1 uncorrectable ECC error"))
    assert explain(record("rank 3 on dgx002 exited with 1"), [seen, failed()]) == [
        "rank 3 on dgx002 exited with 1 after 41 s; ranks 0-2, 4-15 were stopped",
        "Traceback",
        "RuntimeError: CUDA error",
        "seen node0 gpu 3: 1 uncorrectable ECC error",
    ]


def test_one_rank_that_was_stopped_is_one() -> None:
    assert explain(record("x"), [failed(stopped=[0], tail=[])]) == [
        "rank 3 on dgx002 exited with 1 after 41 s; rank 0 was stopped"
    ]
    assert explain(record("x"), [failed(stopped=[], tail=[])]) == ["rank 3 on dgx002 exited with 1 after 41 s"]


def test_the_last_failure_counts_and_at_most_five_lines_of_it() -> None:
    lines = explain(record("x"), [failed(rank=1), failed(tail=[str(i) for i in range(9)], stopped=[])])
    assert lines == ["rank 3 on dgx002 exited with 1 after 41 s", "4", "5", "6", "7", "8"]


def test_a_node_that_failed_without_a_rank_keeps_its_reason() -> None:
    words = "node 1 on b: setup exited with 1"
    assert explain(record(words), [failed(rank=None, tail=["no such module"])]) == [words, "no such module"]
    assert explain(record("the time limit of 10 s is over"), []) == ["the time limit of 10 s is over"]
    assert explain(record(""), []) == []


@pytest.mark.parametrize(
    ("ranks", "words"),
    [([], ""), ([3], "3"), ([0, 1], "0-1"), ([0, 1, 2, 4, 5, 9], "0-2, 4-5, 9"), ([1, 3, 5], "1, 3, 5")],
)
def test_ranges(ranks: list[int], words: str) -> None:
    assert fold(ranks) == words


@given(st.sets(st.integers(0, 40)).map(sorted))
def test_ranges_name_every_rank_once(ranks: list[int]) -> None:
    named: list[int] = []
    for span in filter(None, fold(ranks).split(", ")):
        first, _, last = span.partition("-")
        named += range(int(first), int(last or first) + 1)
    assert named == ranks


def test_pull_keeps_links_inside_the_run_and_names_what_it_leaves_out(run: launch.Run, tmp_path: Path) -> None:
    results = run.folder.path / "results"
    (tmp_path / "private").mkdir()
    (tmp_path / "private" / "key").write_text("private")
    (results / "stolen").symlink_to(tmp_path / "private" / "key")
    (results / "dir").symlink_to(tmp_path / "private")
    (results / "loop").symlink_to(".")
    (results / "best").symlink_to(run.folder.path / "checkpoints" / "b")
    (results / "out-and-in").symlink_to(f"../../{run.id}/checkpoints/b")
    NO_PLAIN_FILES["a pipe"](results / "deep" / "pipe")
    NO_PLAIN_FILES["a socket"](results / "socket")
    NO_PLAIN_FILES["a device"](results / "device")
    left_out: list[LeftOut] = []
    for _ in range(2):
        left_out.clear()
        run.pull([], tmp_path / "to", left_out.append)
    assert left_out == [
        LeftOut("results/deep/pipe", "a pipe, no plain file"),
        LeftOut("results/device", "a device, no plain file"),
        LeftOut("results/dir", "a link that leads out of the run"),
        LeftOut("results/socket", "a socket, no plain file"),
        LeftOut("results/stolen", "a link that leads out of the run"),
    ]
    copy = tmp_path / "to" / run.id / "results"
    assert sorted(path.name for path in copy.iterdir()) == ["best", "deep", "loop", "out-and-in"]
    assert str((copy / "loop").readlink()) == "."
    for name in ("best", "out-and-in"):
        assert str((copy / name).readlink()) == "../checkpoints/b"
        assert (copy / name).read_text() == "2\n"


def test_pull_does_not_write_through_a_link_of_an_earlier_copy(run: launch.Run, tmp_path: Path) -> None:
    target = tmp_path / "to" / run.id / "results" / "deep" / "a"
    target.parent.mkdir(parents=True)
    (tmp_path / "mine").write_text("mine")
    target.symlink_to(tmp_path / "mine")
    run.pull([], tmp_path / "to")
    assert target.read_text() == "1\n"
    assert (tmp_path / "mine").read_text() == "mine"


def test_results_that_lead_out_of_the_run_are_left_out_and_checkpoints_come(run: launch.Run, tmp_path: Path) -> None:
    results = run.folder.path / "results"
    results.rename(tmp_path / "elsewhere")
    results.symlink_to(tmp_path / "elsewhere")
    left_out: list[LeftOut] = []
    assert run.pull([], tmp_path / "to", left_out.append) == [tmp_path / "to" / run.id / "checkpoints"]
    assert left_out == [LeftOut("results", "a link that leads out of the run")]
