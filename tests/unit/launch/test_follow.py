"""Following: what becomes of runs whose client or processes are gone."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

import pytest

from podwright import launch
from podwright.cli.terminal.listing import outcome
from podwright.engines.base import Status
from podwright.launch import Session, follow
from podwright.runs import Home
from podwright.runs.store import CREATE_S, NEVER_SUBMITTED
from tests.fixtures.fake_engine import FakeEngine
from tests.unit.runs.made import asked, end, event, go, result, write_lines


@pytest.fixture
def engine() -> FakeEngine:
    return FakeEngine()


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home.open(tmp_path / "home")


@pytest.fixture
def session(home: Home, engine: FakeEngine) -> Session:
    return Session(home, engines={"local": lambda: engine})


def add(home: Home, run_id: str = "toy-2222", age_s: float = 1.0, **changes: Any) -> Path:
    home.create(asked(run_id, created_at=time.time() - age_s, **changes), {}, {})
    return home.runs / run_id


def notes(folder: Path) -> list[str]:
    path = folder / "client.jsonl"
    return [json.loads(line)["k"] for line in path.read_text().splitlines()] if path.exists() else []


def another(session: Session) -> Session:
    """A second client on the same home."""
    return Session(Home.open(session.home.path), engines=session._engines)


def state(session: Session, run_id: str = "toy-2222") -> str:
    return launch.find(session, run_id).record().state


def test_a_run_the_engine_still_has_is_left_alone(home: Home, session: Session, engine: FakeEngine) -> None:
    engine.says = Status("there")
    folder = add(home)
    assert state(session) == "pending"
    assert notes(folder) == []


def test_a_run_that_is_not_heard_of_says_so_until_it_is(home: Home, session: Session, engine: FakeEngine) -> None:
    """Its last loss is not shown as if it lived."""
    folder = add(home)
    write_lines(folder / "client.jsonl", {"t": 0, "k": "submitted", "handle": "7"})
    write_lines(folder / "record" / "n0.r0" / "events.jsonl", go(), event("ready", 2.0), result(3.0, loss=0.1))
    engine.says = Status("there", unheard="no word from n3 for 40 s")
    record = launch.find(session, "toy-2222").record()
    assert (record.state, record.reason) == ("running", "no word from n3 for 40 s")
    assert outcome(record) == "no word from n3 for 40 s"
    engine.says = Status("there")
    assert outcome(launch.find(session, "toy-2222").record()) == "loss 0.1"
    assert notes(folder) == ["submitted"]


def test_a_run_that_is_gone_without_an_end_is_lost_and_cleaned_up_after(
    home: Home, session: Session, engine: FakeEngine
) -> None:
    folder = add(home)
    write_lines(folder / "client.jsonl", {"t": 0, "k": "submitted", "handle": "7"})
    write_lines(folder / "record" / "n0.r0" / "events.jsonl", go())
    record = launch.find(session, "toy-2222").record()
    assert (record.state, record.reason) == ("lost", "no process of it is left on this machine")
    assert engine.cleaned == ["toy-2222"]
    assert state(session) == "lost"
    assert notes(folder) == ["submitted", "lost"]
    assert not (folder / "record.json").exists(), "it may still turn up"


@pytest.mark.parametrize(
    ("told", "state", "reason", "code"),
    [
        (True, "succeeded", "the end of its record is missing: x", 0),
        (False, "failed", "x", None),
    ],
)
def test_a_success_that_only_the_exit_code_of_its_job_tells_is_one(
    home: Home, session: Session, engine: FakeEngine, told: bool, state: str, reason: str, code: int | None
) -> None:
    """Its folder was full: no pilot could write its last word, and others go on by what Slurm says."""
    folder = add(home)
    write_lines(folder / "client.jsonl", {"t": 0, "k": "submitted", "handle": "7"})
    write_lines(folder / "record" / "n0.r0" / "events.jsonl", go())
    engine.says = Status("gone", "x", "succeeded", told=told)
    record = launch.find(session, "toy-2222").record()
    assert (record.state, record.reason, record.exit_code) == (state, reason, code)


def test_a_run_that_ended_between_two_looks_is_not_lost(home: Home, session: Session, engine: FakeEngine) -> None:
    """The engine is asked first, the record is read after."""
    folder = add(home)
    write_lines(folder / "client.jsonl", {"t": 0, "k": "submitted", "handle": "7"})
    write_lines(folder / "record" / "n0.r0" / "events.jsonl", go(), end())
    assert state(session) == "succeeded"
    assert (folder / "record.json").exists()
    assert engine.cleaned == []


def test_a_run_that_is_over_has_its_cost_in_every_answer(home: Home, session: Session, engine: FakeEngine) -> None:
    pod = "name: adas\nnodes: [{hosts: n1, model: dgx-a100}]\ncosts: {currency: EUR, gpu_hour_price: 3600}\n"
    workload = {"name": "toy", "resources": {"gpus": 1}}
    folder = add(home, workload=workload)
    (folder / "spec").mkdir()
    (folder / "spec" / "pod.yaml").write_text(pod)
    write_lines(folder / "client.jsonl", {"t": 0, "k": "submitted", "handle": "7"})
    write_lines(folder / "record" / "n0.r0" / "events.jsonl", go(), end())
    record = launch.find(session, "toy-2222").record()
    assert record.duration_s is not None
    assert record.cost is not None
    assert (record.cost["amount"], record.cost["currency"]) == (pytest.approx(2 * record.duration_s), "EUR")
    assert json.loads((folder / "record.json").read_text())["cost"] == record.cost
    assert launch.find(another(session), "toy-2222").record().cost == record.cost
    assert notes(folder).count("cost") == 1


def test_a_run_that_is_over_is_sealed_only_when_its_processes_are_gone(
    home: Home, session: Session, engine: FakeEngine
) -> None:
    engine.says = Status("there")
    folder = add(home)
    write_lines(folder / "record" / "n0.r0" / "events.jsonl", go(), end())
    assert state(session) == "succeeded"
    assert not (folder / "record.json").exists()


def test_a_run_that_was_never_submitted_is_submitted(home: Home, session: Session, engine: FakeEngine) -> None:
    folder = add(home)
    assert state(session) == "pending"
    assert engine.submitted == [["toy-2222"]]
    assert notes(folder) == ["submitted"]


def gaps(folder: Path) -> list[str]:
    rows = [json.loads(line) for line in (folder / "client.jsonl").read_text().splitlines()]
    return [row["text"] for row in rows if row["k"] == "gap"]


def test_events_that_cannot_be_understood_are_told_once(home: Home, session: Session, engine: FakeEngine) -> None:
    engine.says = Status("there")
    folder = add(home)
    events = folder / "record" / "n0.r0" / "events.jsonl"
    write_lines(events, go(), {"k": "go"}, {"k": "from-tomorrow", "t": 1.0})
    assert state(session) == "starting"
    assert gaps(folder) == ["2 events could not be understood and were left out"]
    write_lines(events, {**end(), "state": "on fire"})
    assert state(session) == "starting"
    assert state(another(session)) == "starting"
    assert len(gaps(folder)) == 1


def test_an_event_that_cannot_be_understood_is_told_before_the_folder_is_closed(home: Home, session: Session) -> None:
    folder = add(home)
    write_lines(folder / "client.jsonl", {"t": 0, "k": "submitted", "handle": "7"})
    write_lines(folder / "record" / "n0.r0" / "events.jsonl", go(), {"k": "go"}, end())
    assert state(session) == "succeeded"
    assert (folder / "record.json").exists()
    assert gaps(folder) == ["1 event could not be understood and was left out"]


def submitted(folder: Path, ago_s: float) -> None:
    line = {"t": time.time() - ago_s, "k": "submitted", "handle": "6"}
    (folder / "client.jsonl").write_text(json.dumps(line) + "\n")


def test_a_run_that_its_engine_lost_before_it_began_is_given_again(
    home: Home, session: Session, engine: FakeEngine
) -> None:
    folder = add(home, age_s=60)
    submitted(folder, 30)
    engine.says = Status("gone", "Slurm does not know it any more", unknown_to_engine=True)
    assert state(session) == "pending"
    assert state(session) == "pending"
    assert engine.submitted == [["toy-2222"]]
    assert notes(folder) == ["submitted", "submitted"]


def test_a_run_that_its_engine_lost_after_it_began_is_given_again(
    home: Home, session: Session, engine: FakeEngine
) -> None:
    folder = add(home, age_s=60)
    submitted(folder, 30)
    write_lines(folder / "record" / "n0.r0" / "events.jsonl", go())
    engine.says = Status("gone", "Slurm does not know it any more", unknown_to_engine=True)
    assert state(session) == "starting"
    assert engine.submitted == [["toy-2222"]]


def test_points_that_were_lost_together_are_given_again_once(home: Home, session: Session, engine: FakeEngine) -> None:
    add(home, "toy-2222", age_s=60, points=2)
    for i in (1, 2):
        submitted(add(home, f"toy-2222-{i}", age_s=60, parent="toy-2222", index=i - 1), 30)
    engine.says = Status("gone", "Slurm does not know it any more", unknown_to_engine=True)
    assert launch.find(session, "toy-2222").record().state == "pending"
    assert engine.submitted == [["toy-2222-1", "toy-2222-2"]]


def test_a_run_that_was_cancelled_is_not_given_again(home: Home, session: Session, engine: FakeEngine) -> None:
    folder = add(home, age_s=60)
    submitted(folder, 30)
    with (folder / "client.jsonl").open("a") as file:
        file.write(json.dumps({"t": time.time() - 20, "k": "cancel"}) + "\n")
    engine.says = Status("gone", "Slurm does not know it any more", unknown_to_engine=True)
    state(session)
    assert engine.submitted == []


def test_points_are_submitted_together(home: Home, session: Session, engine: FakeEngine) -> None:
    add(home, "toy-2222", points=2)
    for i in (1, 2):
        add(home, f"toy-2222-{i}", parent="toy-2222", index=i - 1)
    launch.find(session, "toy-2222").record()
    assert engine.submitted[0] == ["toy-2222-1", "toy-2222-2"]


def test_points_whose_client_is_still_writing_are_left_to_it(home: Home, session: Session, engine: FakeEngine) -> None:
    add(home, "toy-2222", points=3)
    folder = add(home, "toy-2222-1", parent="toy-2222", index=0)
    assert state(session, "toy-2222-1") == "pending"
    assert (engine.submitted, notes(folder)) == ([], [])


def test_points_whose_client_died_while_writing_are_lost_once(home: Home, session: Session, engine: FakeEngine) -> None:
    add(home, "toy-2222", CREATE_S + 1, points=3)
    folder = add(home, "toy-2222-1", CREATE_S + 1, parent="toy-2222", index=0)
    for _ in range(3):
        record = launch.find(session, "toy-2222").record()
        assert (record.state, record.reason) == ("lost", "1 lost")
    assert notes(folder) == ["lost"]
    assert launch.find(session, "toy-2222-1").record().reason == NEVER_SUBMITTED


def test_a_run_whose_secrets_are_elsewhere_waits_for_its_client(
    home: Home, session: Session, engine: FakeEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ONE_KEY", raising=False)
    folder = add(home, workload={"secrets": ["ONE_KEY"]})
    assert (state(session), engine.submitted, notes(folder)) == ("pending", [], [])


def test_a_run_that_was_forgotten_long_ago_is_not_started_now(home: Home, session: Session, engine: FakeEngine) -> None:
    folder = add(home, age_s=follow.FINISH_S + 1)
    assert state(session) == state(session) == "lost"
    assert (engine.submitted, notes(folder)) == ([], ["lost"])


def test_one_question_for_all_runs(home: Home, session: Session, engine: FakeEngine) -> None:
    engine.says = Status("there")
    for i in range(5):
        add(home, f"toy-222{i + 2}")
    assert len(launch.recent(session)) == 5
    assert engine.questions == 1


def test_a_damaged_run_does_not_hide_the_others(home: Home, session: Session, engine: FakeEngine) -> None:
    engine.says = Status("there")
    add(home, "toy-2222")
    folder = add(home, "toy-3333")
    assert len(launch.recent(session)) == 2
    (folder / "run.json").write_text("{")
    write_lines(home.runs / "toy-2222" / "record" / "n0.r0" / "events.jsonl", go())
    found = {record.id: record.state for record in launch.recent(another(session))}
    assert found["toy-2222"] == "starting"


def test_a_run_that_another_client_removes_just_now_does_not_hide_the_others(
    home: Home, session: Session, engine: FakeEngine
) -> None:
    engine.says = Status("there")
    for run_id in ("toy-2222", "toy-3333"):
        add(home, run_id)
    launch.recent(session)
    engine.on_status = lambda: shutil.rmtree(home.runs / "toy-3333", ignore_errors=True)
    found = {record.id: record.state for record in launch.recent(another(session))}
    assert found["toy-2222"] == "pending"


class TestOnACluster:
    """Where the engine puts runs back into its queue, and where its news and the record come by different ways."""

    @pytest.fixture(autouse=True)
    def lag(self, engine: FakeEngine) -> None:
        engine.lag_s = 10.0

    def submitted(self, home: Home) -> Path:
        folder = add(home)
        write_lines(folder / "client.jsonl", {"t": 0, "k": "submitted", "handle": "7"})
        return folder

    def begun(self, home: Home) -> Path:
        folder = self.submitted(home)
        write_lines(folder / "record" / "n0.r0" / "events.jsonl", go())
        return folder

    def test_a_run_that_waits_says_why_once(self, home: Home, session: Session, engine: FakeEngine) -> None:
        engine.says = Status("waiting", "waits behind jobs of higher priority")
        folder = self.submitted(home)
        for _ in range(3):
            record = launch.find(session, "toy-2222").record()
            assert (record.state, record.reason) == ("pending", "waits behind jobs of higher priority")
        assert notes(folder) == ["submitted", "waiting"]

    def test_a_run_whose_pilots_were_stopped_and_that_waits_again_is_pending(
        self, home: Home, session: Session, engine: FakeEngine
    ) -> None:
        folder = self.submitted(home)
        events = folder / "record" / "n0.r0" / "events.jsonl"
        write_lines(events, go(), end(state="terminated", reason="stopped by SIGTERM"))
        engine.says = Status("there", "is ending")
        record = launch.find(session, "toy-2222").record()
        assert (record.state, record.ended_at) == ("running", None), "nobody knows yet whether it comes back"
        engine.says = Status("waiting", "is back in the queue")
        assert launch.find(session, "toy-2222").record().state == "pending"
        engine.says = Status("there")
        write_lines(folder / "record" / "n0.r1" / "events.jsonl", go(20, (1, 0)))
        assert launch.find(another(session), "toy-2222").record().state == "starting"
        write_lines(folder / "record" / "n0.r1" / "events.jsonl", end(30, (1, 0)))
        engine.says = Status("gone")
        assert launch.find(another(session), "toy-2222").record().state == "succeeded"

    def test_pilots_may_be_stopped_before_they_were_all_there(
        self, home: Home, session: Session, engine: FakeEngine
    ) -> None:
        folder = self.submitted(home)
        stopped = end(state="terminated", reason="stopped by SIGTERM")
        write_lines(folder / "record" / "n0.r0" / "events.jsonl", stopped)
        engine.says = Status("waiting", "is back in the queue")
        record = launch.find(session, "toy-2222").record()
        assert (record.state, record.reason) == ("pending", "is back in the queue")

    def test_a_run_that_lost_all_its_nodes_and_waits_again_is_pending(
        self, home: Home, session: Session, engine: FakeEngine
    ) -> None:
        """Its pilots left no last word. Of one that began a moment ago, the engine's news may be the older ones."""
        folder = self.begun(home)
        engine.says = Status("waiting", "is suspended")
        assert [state(session), state(session)] == ["starting", "starting"]
        assert notes(folder) == ["submitted", "idle"]
        engine.lag_s = 0.0
        record = launch.find(session, "toy-2222").record()
        assert (record.state, record.reason) == ("pending", "is suspended")
        late = end(state="terminated", reason="stopped by SIGTERM")
        write_lines(folder / "record" / "n0.r0" / "events.jsonl", late)
        assert state(session) == "pending", "what its pilots said last came late"
        engine.lag_s = 10.0
        write_lines(folder / "record" / "n0.r1" / "events.jsonl", go(20, (1, 0)))
        assert launch.find(another(session), "toy-2222").record().state == "starting"

    def test_a_run_that_ended_before_it_was_suspended_has_ended(
        self, home: Home, session: Session, engine: FakeEngine
    ) -> None:
        folder = self.begun(home)
        engine.says = Status("waiting", "is suspended")
        engine.lag_s = 0.0
        assert state(session) == "pending"
        write_lines(folder / "record" / "n0.r0" / "events.jsonl", end())
        assert launch.find(another(session), "toy-2222").record().state == "succeeded"

    @pytest.mark.parametrize(
        ("outcome", "state", "reason"),
        [
            ("cancelled", "cancelled", "reached its time limit"),
            ("", "cancelled", "stopped by SIGTERM"),
            ("failed", "failed", "reached its time limit"),
        ],
    )
    def test_only_the_engine_knows_why_pilots_were_stopped(
        self, home: Home, session: Session, engine: FakeEngine, outcome: str, state: str, reason: str
    ) -> None:
        folder = self.submitted(home)
        lines = (go(), end(state="terminated", reason="stopped by SIGTERM"))
        write_lines(folder / "record" / "n0.r0" / "events.jsonl", *lines)
        engine.says = Status("gone", "reached its time limit", outcome)
        launch.find(session, "toy-2222").record()
        engine.lag_s = 0.0
        record = launch.find(session, "toy-2222").record()
        assert (record.state, record.reason) == (state, reason)

    def test_the_last_events_may_come_after_the_engines_news(
        self, home: Home, session: Session, engine: FakeEngine
    ) -> None:
        folder = self.begun(home)
        engine.says = Status("gone", "", "succeeded")
        assert state(session) == "starting"
        assert notes(folder) == ["submitted", "gone"]
        write_lines(folder / "record" / "n0.r0" / "events.jsonl", end())
        assert state(session) == "succeeded"

    def test_success_without_a_last_word_is_not_believed(
        self, home: Home, session: Session, engine: FakeEngine
    ) -> None:
        self.begun(home)
        engine.says = Status("gone", "it ended, and its record has no end", "succeeded")
        engine.lag_s = 0.0
        record = launch.find(session, "toy-2222").record()
        assert (record.state, record.reason) == ("failed", "it ended, and its record has no end")

    def test_a_run_that_began_and_ended_between_two_looks_has_its_own_last_word(
        self, home: Home, session: Session, engine: FakeEngine
    ) -> None:
        folder = self.submitted(home)
        engine.says = Status("gone", "ended with an error", "failed")
        assert state(session) == "pending", "its record may not be here yet"
        failure = end(state="failed", reason="rank 0 on n1 exited with 127", exit_code=127)
        write_lines(folder / "record" / "n0.r0" / "events.jsonl", go(), failure)
        record = launch.find(session, "toy-2222").record()
        assert (record.state, record.exit_code) == ("failed", 127)

    def test_a_run_whose_record_cannot_be_read_has_no_end_yet(
        self, home: Home, session: Session, engine: FakeEngine
    ) -> None:
        """Its claim holds a success, and no node is up to read it: later it is read."""
        folder = self.begun(home)
        engine.says = Status("gone", "it ended without a last word", "succeeded")
        engine.lag_s = 0.0
        engine.cannot_read = "the claim c cannot be read: its reader does not start"
        record = launch.find(session, "toy-2222").record()
        assert (record.state, record.reason) == (
            "running",
            f"ended, its last word is not read yet: {engine.cannot_read}",
        )
        assert notes(folder) == ["submitted"]
        engine.cannot_read = ""
        write_lines(folder / "record" / "n0.r0" / "events.jsonl", end())
        assert state(session) == "succeeded"

    def test_a_run_that_has_its_nodes_and_cannot_be_read_is_not_said_to_start(
        self, home: Home, session: Session, engine: FakeEngine
    ) -> None:
        self.submitted(home)
        engine.says = Status("waiting", "waits for nodes to become free")
        assert state(session) == "pending"
        engine.says, engine.cannot_read = Status("there"), "the claim c cannot be read"
        record = launch.find(session, "toy-2222").record()
        assert (record.state, record.reason) == ("starting", "has its nodes; the claim c cannot be read")

    @pytest.mark.parametrize("stopped", [False, True])
    def test_a_run_that_somebody_else_took_away_is_lost(
        self, home: Home, session: Session, engine: FakeEngine, stopped: bool
    ) -> None:
        """Its pilots were stopped, and know no more than that: nobody has cancelled it."""
        folder = self.begun(home)
        if stopped:
            write_lines(folder / "record" / "n0.r0" / "events.jsonl", end(state="terminated"))
        engine.says = Status("gone", "deleted by somebody else", "lost")
        engine.lag_s = 0.0
        records = [launch.find(session, "toy-2222").record() for _ in range(2)]
        assert {(record.state, record.reason) for record in records} == {("lost", "deleted by somebody else")}
        assert notes(folder).count("lost") == 1

    def test_a_run_that_somebody_else_cancelled_says_so(self, home: Home, session: Session, engine: FakeEngine) -> None:
        folder = self.begun(home)
        stopped = end(state="terminated", reason="stopped by SIGTERM")
        write_lines(folder / "record" / "n0.r0" / "events.jsonl", stopped)
        engine.says = Status("gone", "was cancelled by somebody else, with scancel", "cancelled")
        record = launch.find(session, "toy-2222").record()
        assert (record.state, record.reason, record.exit_code) == ("cancelled", engine.says.reason, 143)

    def test_a_run_whose_pilots_were_stopped_is_not_over_while_nobody_can_be_asked(
        self, home: Home, session: Session, engine: FakeEngine
    ) -> None:
        """A final state is not taken back, and the time that it took does not shrink."""
        folder = self.begun(home)
        write_lines(folder / "record" / "n0.r0" / "events.jsonl", end(state="terminated"))
        engine.says = Status("there", silent="Kubernetes cannot be reached")
        record = launch.find(session, "toy-2222").record()
        assert (record.state, record.ended_at) == ("running", None)

    def test_a_run_that_was_cancelled_before_it_began_need_not_be_waited_for(
        self, home: Home, session: Session, engine: FakeEngine
    ) -> None:
        self.submitted(home)
        engine.says = Status("gone", "was cancelled", "cancelled")
        assert state(session) == "cancelled"

    def test_what_the_engine_calls_a_run_is_noted_when_its_client_could_not(
        self, home: Home, session: Session, engine: FakeEngine
    ) -> None:
        folder = add(home)
        engine.says = Status("waiting", "", "", "7")
        assert state(session) == "pending"
        assert (engine.submitted, notes(folder)) == ([], ["submitted"])
