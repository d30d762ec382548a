"""Following a run: what is said while it goes on and when it ends, told by a run that plays a script."""

from __future__ import annotations

import io
import json
import signal
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from podwright.cli.commands.run.wait import wait_for
from podwright.cli.terminal import follow, live
from podwright.cli.terminal.program import ProgramOutput
from podwright.cli.terminal.progress import Progress
from podwright.launch import RunRecords, Session
from podwright.runs import Home, LogLine
from podwright.runs.events import ResultTold
from podwright.runs.record import Asked, Record
from podwright.runs.training_progress import ProgressClock, TrainingProgress
from podwright.spec.problems import refuse
from tests.paths import CASES as ALL_CASES
from tests.unit.runs.made import parsed

CASES = ALL_CASES / "cli" / "follow"
GOAL = {"metric": "mean_iou", "at_least": 0.65, "at_most": None}
Golden = Callable[[Path, str], None]


class Scripted:
    """A run that plays changes: each is (state, events); `ends` holds further fields of its last record."""

    def __init__(self, script: Sequence[tuple[str, list[dict[str, Any]]]], **ends: Any) -> None:
        self.id = ends.get("id", "segmentation-7f3k")
        self.script, self.ends = script, ends
        self.children: list[Scripted] = []
        self.lines: list[str] = []
        self.output: list[list[LogLine]] = []
        """What its ranks have written since the look before, for each look."""
        self.state = script[-1][0] if script else "pending"
        asked = Asked(self.id, "segmentation", "local", "local", 0.0, 2, 1, {"launcher": "torchrun", "goal": GOAL})
        self.folder: Any = SimpleNamespace(path=Path("/runs") / self.id, asked=asked)

    def record(self) -> Record:
        return self._record(self.state)

    def _record(self, state: str) -> Record:
        fixed = {"id": self.id, "name": "segmentation", "target": "local", "folder": "/runs", "nodes": 2}
        return Record(**{**fixed, "state": state, "world_size": 2, "created_at": 0.0, "goal": GOAL, **self.ends})

    def points(self) -> list[Scripted]:
        return self.children

    def records(self) -> RunRecords:
        return RunRecords(self.record(), [child.record() for child in self.children])

    def watch(self, patient: bool) -> Iterator[Any]:
        clock = ProgressClock()
        for state, events in self.script:
            if any(event.get("k") == "ctrl-c" for event in events):
                raise KeyboardInterrupt
            rows = ({"t": 0.0, "e": [0, 0], **event} for event in events)
            read = parsed(*rows)
            for event in read:
                if isinstance(event, ResultTold):
                    clock.take(event.time, event.epoch, event.rank, event.values)
            progress = clock.at(0.0, (0, 0), is_over=False)
            record = replace(self._record(state), progress=progress and progress.as_json())
            yield SimpleNamespace(record=record, events=read, samples=[])

    def log_tail(self, last_bytes: int | None = None) -> Any:
        return SimpleNamespace(read=lambda: self.output.pop(0) if self.output else [])

    def explain(self) -> list[str]:
        return self.lines


def write_nothing(runs: Sequence[Any]) -> Path:
    """Stands for the report, which would need a run's folder."""
    folder: Path = runs[0].folder.path
    return folder / ("comparison.html" if runs[0].points() else "report.html")


def followed(run: Scripted) -> tuple[Record, list[Record]]:
    return follow.follow(run, write_nothing)


def result(**values: float) -> dict[str, Any]:
    return {"k": "result", "n": 0, "rank": 0, "values": values}


GO = {"k": "go", "n": 0, "attempt": 1, "world_size": 2, "took_s": 1.9, "hosts": ["a", "b"]}


def test_a_run_that_reaches_its_goal(golden: Golden, capsys: pytest.CaptureFixture[str]) -> None:
    script = [
        ("pending", []),
        ("running", [GO, result(epoch=1, epochs=6, loss=1.2)]),
        ("running", [{"k": "goal", "n": 0, "metric": "mean_iou", "value": 0.66, "took_s": 114.0}]),
        ("succeeded", []),
    ]
    reached = {"time_to_train_s": 114.0, "goal_value": 0.66}
    run = Scripted(script, duration_s=131.0, results={"mean_iou": 0.71}, attempts=1, **reached)
    follow.introduce(run, 0)
    record, _ = followed(run)
    assert record.state == "succeeded"
    captured = capsys.readouterr()
    assert captured.out == ""
    golden(CASES / "succeeded.txt", captured.err)


def written(*lines: tuple[int, str, str]) -> list[LogLine]:
    """What ranks wrote: (rank, stream, text)."""
    return [LogLine(1.0, 0, rank, stream, text) for rank, stream, text in lines]


def test_what_rank_0_says_is_shown_but_not_what_it_tells_us(capsys: pytest.CaptureFixture[str]) -> None:
    run = Scripted([("running", []), ("running", []), ("succeeded", [])], duration_s=1.0)
    run.output = [
        written((0, "o", "loading"), (1, "o", "rank 1 is here"), (0, "o", '{"podwright": {"loss": 0.5}}')),
        written((0, "p", "10%"), (0, "o", ":::MLLOG {}")),
        written((0, "e", "done")),
    ]
    followed(run)
    assert capsys.readouterr().out == "loading\ndone\n"
    run.output = [written((0, "o", "loading"))]
    follow.follow(run, write_nothing, follow.Watching(quiet=True))
    assert capsys.readouterr().out == ""
    follow.follow(run, write_nothing, follow.Watching(as_json=True))
    shown = capsys.readouterr()
    assert (shown.out, shown.err.splitlines()[0]) == ("", "loading")


def test_a_line_of_several_ranks_is_shown_once_with_who_wrote_it() -> None:
    now = [0.0]
    output = ProgramOutput(None, 4, lambda: now[0])
    assert output.take(written(*((rank, "o", "epoch 1") for rank in (0, 2, 1)))) == []
    assert output.take(written((3, "o", "epoch 1"), (2, "o", "odd"))) == ["[0-3] epoch 1"]
    assert output.take(written((1, "o", "later"))) == []
    now[0] = 1.0
    assert output.take(written((1, "p", "  5%"), (0, "p", " 10%"))) == ["[2] odd", "[1] later"]
    assert output.open_line == " 10%"
    assert output.take(written((0, "e", "100%"))) == []
    assert output.open_line == "  5%"
    assert output.rest() == ["[0] 100%", "[1]   5%"]


def test_a_line_that_ranks_write_again_is_shown_again() -> None:
    now = [0.0]
    output = ProgramOutput(None, 2, lambda: now[0])
    assert output.take(written((0, "o", "tick"), (0, "o", "tick"), (1, "o", "tick"))) == ["[0-1] tick"]
    assert output.take(written((1, "o", "tick"), (0, "o", "tick"))) == ["[0-1] tick"]
    now[0] = 1.0
    assert output.take([]) == ["[0] tick"]


def test_a_failed_run_is_explained(golden: Golden, capsys: pytest.CaptureFixture[str]) -> None:
    retry = {"k": "retry", "n": 0, "attempt": 2, "why": "rank 3 on dgx002 exited with 1"}
    run = Scripted([("running", [GO, retry]), ("failed", [])], reason="rank 3 on dgx002 exited with 1")
    run.lines = [
        "rank 3 on dgx002 exited with 1 after 41 s; ranks 0-2, 4-15 were stopped",
        "\x1b[31mRuntimeError\x1b[0m: CUDA error: uncorrectable ECC error encountered",
        "seen dgx002 GPU 3: 1 uncorrectable ECC error at 10:41:07, XID 48",
    ]
    followed(run)
    golden(CASES / "failed.txt", capsys.readouterr().err)


def test_a_report_that_cannot_be_written_is_no_failure(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def broken(runs: Sequence[Any]) -> Path:
        raise ValueError("no metrics")

    record, _ = follow.follow(Scripted([("cancelled", [])], duration_s=12.0), broken)
    assert record.state == "cancelled"
    assert capsys.readouterr().err == ("cancelled after 12 s\nreport    could not be written: ValueError: no metrics\n")


def test_ctrl_c_leaves_the_run_going(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt):
        followed(Scripted([("running", [GO]), ("running", [{"k": "ctrl-c"}])]))
    assert capsys.readouterr().err.splitlines()[-2:] == [
        "left      the run goes on; to come back:",
        "podwright attach segmentation-7f3k",
    ]


def test_points_are_counted_and_each_end_is_told(golden: Golden, capsys: pytest.CaptureFixture[str]) -> None:
    parent = Scripted([("failed", [])], reason="2 succeeded, 1 failed")
    ends = [("succeeded", {}), ("failed", {"reason": "rank 0 exited with 1"}), ("succeeded", {"duration_s": 3.5})]
    parent.children = [
        Scripted([(state, [])], id=f"sweep-{number}", matrix={"lr": 0.1 / (number + 1)}, **given)
        for number, (state, given) in enumerate(ends)
    ]
    follow.introduce(parent, 3)
    records = followed(parent)
    document = records.as_json()
    assert [point["id"] for point in document["points"]] == ["sweep-0", "sweep-1", "sweep-2"]
    assert follow.codes_of(records) == [0, 1, 0]
    golden(CASES / "points.txt", capsys.readouterr().err)


def test_an_unreachable_target_does_not_hold_the_other_runs_back(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    class Unreachable(Scripted):
        def wait_at_most(self, timeout_s: float | None, patient: bool = True) -> Record:
            raise refuse("cannot be reached", field="adas", exit_code=3)

    class Ended(Scripted):
        def wait_at_most(self, timeout_s: float | None, patient: bool = True) -> Record:
            return self.record()

    runs = [Unreachable([], id="a-1"), Ended([("failed", [])], id="b-2", reason="rank 0 exited with 1")]
    assert wait_for(Session(Home(tmp_path)), runs, None, as_json=True) == 3
    captured = capsys.readouterr()
    assert captured.err == "adas: cannot be reached\nfailed    b-2 rank 0 exited with 1\n"
    assert [document["state"] for document in json.loads(captured.out)] == [None, "failed"]


def test_a_terminal_without_unicode_gets_ascii() -> None:
    lines = [[("━━╌", "bar"), (" ▁█", "cpu")]]
    assert live.styled(lines, "iso8859-1").plain == "==- _#"
    assert live.styled(lines, "utf-8").plain == "━━╌ ▁█"


def test_codes_of_a_run_that_has_not_ended() -> None:
    records = RunRecords(Scripted([("running", [])]).record(), [])
    assert follow.codes_of(records) == [0]
    assert follow.codes_of(records, unfinished=1) == [1]


def test_plain_lines_are_seldom_and_never_twice(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    record = Scripted([("running", [])]).record()
    view, progress = live.PlainView(lambda: now[0]), Progress(record)
    for second, step in enumerate([1, 2, 3, 3, 3, 3, 4]):
        now[0] = second * 4.0
        counts = TrainingProgress(step=step).as_json()
        progress.take(replace(record, progress=counts), [], [])
        view.show(lambda width: [], progress.news())
    assert capsys.readouterr().err.split() == ["step", "1", "step", "3", "step", "4"]


def test_plain_lines_say_why_a_run_waits(capsys: pytest.CaptureFixture[str]) -> None:
    waiting = replace(Scripted([("pending", [])]).record(), reason="waits behind jobs of higher priority")
    live.PlainView(lambda: 0.0).show(lambda width: [], Progress(waiting).news())
    assert capsys.readouterr().err.strip() == "waits behind jobs of higher priority"


def test_the_live_view_is_for_terminals_that_can_move_their_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    assert isinstance(live.view_for(Terminal()), live.LiveView)
    assert isinstance(live.view_for(io.StringIO()), live.PlainView)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(live.view_for(Terminal()), live.PlainView)


def pressed(times: int) -> list[str]:
    """Starts something during which Ctrl-C is pressed, and gives what was done before it took effect."""
    done = []
    try:
        with follow.held_interrupt():
            for _ in range(times):
                signal.raise_signal(signal.SIGINT)
            done.append("started")
    except KeyboardInterrupt:
        done.append("interrupted")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    return done


@pytest.mark.usefixtures("interruptible")
def test_first_ctrl_c_waits_until_the_run_was_handed_over() -> None:
    assert pressed(0) == ["started"]
    assert pressed(1) == ["started", "interrupted"]
    assert pressed(2) == ["interrupted"]
