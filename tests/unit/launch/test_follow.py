"""Following: what becomes of runs whose client or processes are gone."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from podwright import launch
from podwright.engines.base import Seen
from podwright.engines.local import LocalEngine
from podwright.launch import follow
from podwright.runs import Home
from podwright.runs.store import CREATE_S, NEVER_SUBMITTED
from tests.unit.runs.made import asked, end, go, write_lines


class Engine:
    """Stands for the local engine: says what the test wants, and notes what it was asked."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen = Seen("gone", "no process of it is left on this machine")
        self.submitted: list[list[str]] = []
        self.cleaned: list[str] = []
        self.questions = 0
        monkeypatch.setattr(LocalEngine, "status", lambda _, folders: self._status(folders))
        monkeypatch.setattr(LocalEngine, "submit", lambda _, job, folders: self._submit(folders))
        monkeypatch.setattr(LocalEngine, "clean", lambda _, folder: self.cleaned.append(folder.id))

    def _status(self, folders: list[Any]) -> dict[str, Seen]:
        self.questions += 1
        return {folder.id: self.seen for folder in folders}

    def _submit(self, folders: list[Any]) -> str:
        self.submitted.append([folder.id for folder in folders])
        return "7"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.open(tmp_path / "home")


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Engine:
    return Engine(monkeypatch)


def add(home: Home, run_id: str = "toy-2222", age_s: float = 1.0, **changes: Any) -> Path:
    home.create(asked(run_id, created_at=time.time() - age_s, **changes), {}, {})
    return home.runs / run_id


def notes(folder: Path) -> list[str]:
    path = folder / "client.jsonl"
    return [json.loads(line)["k"] for line in path.read_text().splitlines()] if path.exists() else []


def state(home: Home, run_id: str = "toy-2222") -> str:
    return launch.find(home, run_id).record().state


def test_a_run_the_engine_still_has_is_left_alone(home: Home, engine: Engine) -> None:
    engine.seen = Seen("there")
    folder = add(home)
    assert state(home) == "pending"
    assert notes(folder) == []


def test_a_run_that_is_gone_without_an_end_is_lost_and_cleaned_up_after(home: Home, engine: Engine) -> None:
    folder = add(home)
    write_lines(folder / "client.jsonl", {"t": 0, "k": "submitted", "handle": "7"})
    write_lines(folder / "record" / "n0.r0" / "events.jsonl", go())
    record = launch.find(home, "toy-2222").record()
    assert (record.state, record.reason) == ("lost", "no process of it is left on this machine")
    assert engine.cleaned == ["toy-2222"]
    assert state(home) == "lost"
    assert notes(folder) == ["submitted", "lost"]
    assert not (folder / "record.json").exists(), "it may still turn up"


def test_a_run_that_ended_between_two_looks_is_not_lost(home: Home, engine: Engine) -> None:
    """The engine is asked first, the record is read after."""
    folder = add(home)
    write_lines(folder / "client.jsonl", {"t": 0, "k": "submitted", "handle": "7"})
    write_lines(folder / "record" / "n0.r0" / "events.jsonl", go(), end())
    assert state(home) == "succeeded"
    assert (folder / "record.json").exists()
    assert engine.cleaned == []


def test_a_run_that_is_over_is_sealed_only_when_its_processes_are_gone(home: Home, engine: Engine) -> None:
    engine.seen = Seen("there")
    folder = add(home)
    write_lines(folder / "record" / "n0.r0" / "events.jsonl", go(), end())
    assert state(home) == "succeeded"
    assert not (folder / "record.json").exists()


def test_a_run_that_was_never_submitted_is_submitted(home: Home, engine: Engine) -> None:
    folder = add(home)
    assert state(home) == "pending"
    assert engine.submitted == [["toy-2222"]]
    assert notes(folder) == ["submitted"]


def gaps(folder: Path) -> list[str]:
    rows = [json.loads(line) for line in (folder / "client.jsonl").read_text().splitlines()]
    return [row["text"] for row in rows if row["k"] == "gap"]


def test_events_that_cannot_be_understood_are_told_once(home: Home, engine: Engine) -> None:
    engine.seen = Seen("there")
    folder = add(home)
    events = folder / "record" / "n0.r0" / "events.jsonl"
    write_lines(events, go(), {"k": "go"}, {"k": "from-tomorrow", "t": 1.0})
    assert state(home) == "starting"
    assert gaps(folder) == ["2 events could not be understood and were left out"]
    write_lines(events, {**end(), "state": "on fire"})
    assert state(home) == "starting"
    assert state(Home.open(home.path)) == "starting"
    assert len(gaps(folder)) == 1


def test_an_event_that_cannot_be_understood_is_told_before_the_folder_is_closed(home: Home, engine: Engine) -> None:
    folder = add(home)
    write_lines(folder / "client.jsonl", {"t": 0, "k": "submitted", "handle": "7"})
    write_lines(folder / "record" / "n0.r0" / "events.jsonl", go(), {"k": "go"}, end())
    assert state(home) == "succeeded"
    assert (folder / "record.json").exists()
    assert gaps(folder) == ["1 event could not be understood and was left out"]


def submitted(folder: Path, ago_s: float) -> None:
    line = {"t": time.time() - ago_s, "k": "submitted", "handle": "6"}
    (folder / "client.jsonl").write_text(json.dumps(line) + "\n")


def test_a_run_that_its_engine_lost_before_it_began_is_given_again(home: Home, engine: Engine) -> None:
    folder = add(home, age_s=60)
    submitted(folder, 30)
    engine.seen = Seen("gone", "Slurm does not know it any more", never_began=True)
    assert state(home) == "pending"
    assert state(home) == "pending"
    assert engine.submitted == [["toy-2222"]]
    assert notes(folder) == ["submitted", "submitted"]


def test_points_that_were_lost_together_are_given_again_once(home: Home, engine: Engine) -> None:
    add(home, "toy-2222", age_s=60, points=2)
    for i in (1, 2):
        submitted(add(home, f"toy-2222-{i}", age_s=60, parent="toy-2222", index=i - 1), 30)
    engine.seen = Seen("gone", "Slurm does not know it any more", never_began=True)
    assert launch.find(home, "toy-2222").record().state == "pending"
    assert engine.submitted == [["toy-2222-1", "toy-2222-2"]]


def test_a_run_that_was_cancelled_is_not_given_again(home: Home, engine: Engine) -> None:
    folder = add(home, age_s=60)
    submitted(folder, 30)
    with (folder / "client.jsonl").open("a") as file:
        file.write(json.dumps({"t": time.time() - 20, "k": "cancel"}) + "\n")
    engine.seen = Seen("gone", "Slurm does not know it any more", never_began=True)
    state(home)
    assert engine.submitted == []


def test_points_are_submitted_together(home: Home, engine: Engine) -> None:
    add(home, "toy-2222", points=2)
    for i in (1, 2):
        add(home, f"toy-2222-{i}", parent="toy-2222", index=i - 1)
    launch.find(home, "toy-2222").record()
    assert engine.submitted[0] == ["toy-2222-1", "toy-2222-2"]


def test_points_whose_client_is_still_writing_are_left_to_it(home: Home, engine: Engine) -> None:
    add(home, "toy-2222", points=3)
    folder = add(home, "toy-2222-1", parent="toy-2222", index=0)
    assert state(home, "toy-2222-1") == "pending"
    assert (engine.submitted, notes(folder)) == ([], [])


def test_points_whose_client_died_while_writing_are_lost_once(home: Home, engine: Engine) -> None:
    add(home, "toy-2222", CREATE_S + 1, points=3)
    folder = add(home, "toy-2222-1", CREATE_S + 1, parent="toy-2222", index=0)
    for _ in range(3):
        record = launch.find(home, "toy-2222").record()
        assert (record.state, record.reason) == ("lost", "1 lost")
    assert notes(folder) == ["lost"]
    assert launch.find(home, "toy-2222-1").record().reason == NEVER_SUBMITTED


def test_a_run_whose_secrets_are_elsewhere_waits_for_its_client(
    home: Home, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ONE_KEY", raising=False)
    folder = add(home, workload={"secrets": ["ONE_KEY"]})
    assert (state(home), engine.submitted, notes(folder)) == ("pending", [], [])


def test_a_run_that_was_forgotten_long_ago_is_not_started_now(home: Home, engine: Engine) -> None:
    folder = add(home, age_s=follow.FINISH_S + 1)
    assert state(home) == state(home) == "lost"
    assert (engine.submitted, notes(folder)) == ([], ["lost"])


def test_one_question_for_all_runs(home: Home, engine: Engine) -> None:
    engine.seen = Seen("there")
    for i in range(5):
        add(home, f"toy-222{i + 2}")
    assert len(launch.recent(home)) == 5
    assert engine.questions == 1


def test_a_damaged_run_does_not_hide_the_others(home: Home, engine: Engine) -> None:
    engine.seen = Seen("there")
    add(home, "toy-2222")
    folder = add(home, "toy-3333")
    assert len(launch.recent(home)) == 2
    (folder / "run.json").write_text("{")
    write_lines(home.runs / "toy-2222" / "record" / "n0.r0" / "events.jsonl", go())
    found = {record.id: record.state for record in launch.recent(Home.open(home.path))}
    assert found["toy-2222"] == "starting"


def test_a_run_that_another_client_removes_just_now_does_not_hide_the_others(home: Home, engine: Engine) -> None:
    engine.seen = Seen("there")
    for run_id in ("toy-2222", "toy-3333"):
        add(home, run_id)
    launch.recent(home)
    real = engine._status

    def remove_meanwhile(folders: list[Any]) -> dict[str, Seen]:
        shutil.rmtree(home.runs / "toy-3333", ignore_errors=True)
        return real(folders)

    engine._status = remove_meanwhile  # type: ignore[method-assign]
    found = {record.id: record.state for record in launch.recent(Home.open(home.path))}
    assert found["toy-2222"] == "pending"


class TestOnACluster:
    """Where the engine puts runs back into its queue, and where its news and the record come by different ways."""

    @pytest.fixture(autouse=True)
    def lag(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(LocalEngine, "lag_s", 10.0)

    def submitted(self, home: Home) -> Path:
        folder = add(home)
        write_lines(folder / "client.jsonl", {"t": 0, "k": "submitted", "handle": "7"})
        return folder

    def begun(self, home: Home) -> Path:
        folder = self.submitted(home)
        write_lines(folder / "record" / "n0.r0" / "events.jsonl", go())
        return folder

    def test_a_run_that_waits_says_why_once(self, home: Home, engine: Engine) -> None:
        engine.seen = Seen("waiting", "waits behind jobs of higher priority")
        folder = self.submitted(home)
        for _ in range(3):
            record = launch.find(home, "toy-2222").record()
            assert (record.state, record.reason) == ("pending", "waits behind jobs of higher priority")
        assert notes(folder) == ["submitted", "waiting"]

    def test_a_run_whose_pilots_were_stopped_and_that_waits_again_is_pending(self, home: Home, engine: Engine) -> None:
        folder = self.submitted(home)
        events = folder / "record" / "n0.r0" / "events.jsonl"
        write_lines(events, go(), end(state="terminated", reason="stopped by SIGTERM"))
        engine.seen = Seen("there", "is ending")
        record = launch.find(home, "toy-2222").record()
        assert (record.state, record.ended_at) == ("running", None), "nobody knows yet whether it comes back"
        engine.seen = Seen("waiting", "is back in the queue")
        assert launch.find(home, "toy-2222").record().state == "pending"
        engine.seen = Seen("there")
        write_lines(folder / "record" / "n0.r1" / "events.jsonl", go(20, (1, 0)))
        assert launch.find(Home.open(home.path), "toy-2222").record().state == "starting"
        write_lines(folder / "record" / "n0.r1" / "events.jsonl", end(30, (1, 0)))
        engine.seen = Seen("gone")
        assert launch.find(Home.open(home.path), "toy-2222").record().state == "succeeded"

    def test_pilots_may_be_stopped_before_they_were_all_there(self, home: Home, engine: Engine) -> None:
        folder = self.submitted(home)
        stopped = end(state="terminated", reason="stopped by SIGTERM")
        write_lines(folder / "record" / "n0.r0" / "events.jsonl", stopped)
        engine.seen = Seen("waiting", "is back in the queue")
        record = launch.find(home, "toy-2222").record()
        assert (record.state, record.reason) == ("pending", "is back in the queue")

    def test_a_run_that_lost_all_its_nodes_and_waits_again_is_pending(
        self, home: Home, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Its pilots left no last word. Of one that began a moment ago, the engine's news may be the older ones."""
        folder = self.begun(home)
        engine.seen = Seen("waiting", "is suspended")
        assert [state(home), state(home)] == ["starting", "starting"]
        assert notes(folder) == ["submitted", "idle"]
        monkeypatch.setattr(LocalEngine, "lag_s", 0.0)
        record = launch.find(home, "toy-2222").record()
        assert (record.state, record.reason) == ("pending", "is suspended")
        late = end(state="terminated", reason="stopped by SIGTERM")
        write_lines(folder / "record" / "n0.r0" / "events.jsonl", late)
        assert state(home) == "pending", "what its pilots said last came late"
        monkeypatch.setattr(LocalEngine, "lag_s", 10.0)
        write_lines(folder / "record" / "n0.r1" / "events.jsonl", go(20, (1, 0)))
        assert launch.find(Home.open(home.path), "toy-2222").record().state == "starting"

    def test_a_run_that_ended_before_it_was_suspended_has_ended(
        self, home: Home, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = self.begun(home)
        engine.seen = Seen("waiting", "is suspended")
        monkeypatch.setattr(LocalEngine, "lag_s", 0.0)
        assert state(home) == "pending"
        write_lines(folder / "record" / "n0.r0" / "events.jsonl", end())
        assert launch.find(Home.open(home.path), "toy-2222").record().state == "succeeded"

    @pytest.mark.parametrize(
        ("outcome", "state", "reason"),
        [
            ("cancelled", "cancelled", "stopped by SIGTERM"),
            ("", "cancelled", "stopped by SIGTERM"),
            ("failed", "failed", "reached its time limit"),
        ],
    )
    def test_only_the_engine_knows_why_pilots_were_stopped(
        self, home: Home, engine: Engine, monkeypatch: pytest.MonkeyPatch, outcome: str, state: str, reason: str
    ) -> None:
        folder = self.submitted(home)
        lines = (go(), end(state="terminated", reason="stopped by SIGTERM"))
        write_lines(folder / "record" / "n0.r0" / "events.jsonl", *lines)
        engine.seen = Seen("gone", "reached its time limit", outcome)
        launch.find(home, "toy-2222").record()
        monkeypatch.setattr(LocalEngine, "lag_s", 0.0)
        record = launch.find(home, "toy-2222").record()
        assert (record.state, record.reason) == (state, reason)

    def test_the_last_events_may_come_after_the_engines_news(self, home: Home, engine: Engine) -> None:
        folder = self.begun(home)
        engine.seen = Seen("gone", "", "succeeded")
        assert state(home) == "starting"
        assert notes(folder) == ["submitted", "gone"]
        write_lines(folder / "record" / "n0.r0" / "events.jsonl", end())
        assert state(home) == "succeeded"

    def test_success_without_a_last_word_is_not_believed(
        self, home: Home, engine: Engine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.begun(home)
        engine.seen = Seen("gone", "it ended, and its record has no end", "succeeded")
        monkeypatch.setattr(LocalEngine, "lag_s", 0.0)
        record = launch.find(home, "toy-2222").record()
        assert (record.state, record.reason) == ("failed", "it ended, and its record has no end")

    def test_a_run_that_began_and_ended_between_two_looks_has_its_own_last_word(
        self, home: Home, engine: Engine
    ) -> None:
        folder = self.submitted(home)
        engine.seen = Seen("gone", "ended with an error", "failed")
        assert state(home) == "pending", "its record may not be here yet"
        failure = end(state="failed", reason="rank 0 on n1 exited with 127", exit_code=127)
        write_lines(folder / "record" / "n0.r0" / "events.jsonl", go(), failure)
        record = launch.find(home, "toy-2222").record()
        assert (record.state, record.exit_code) == ("failed", 127)

    def test_a_run_that_was_cancelled_before_it_began_need_not_be_waited_for(self, home: Home, engine: Engine) -> None:
        self.submitted(home)
        engine.seen = Seen("gone", "was cancelled", "cancelled")
        assert state(home) == "cancelled"

    def test_what_the_engine_calls_a_run_is_noted_when_its_client_could_not(self, home: Home, engine: Engine) -> None:
        folder = add(home)
        engine.seen = Seen("waiting", "", "", "7")
        assert state(home) == "pending"
        assert (engine.submitted, notes(folder)) == ([], ["submitted"])
