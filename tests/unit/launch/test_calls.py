"""Functions as runs, on this machine: their values, their errors, and a client that was gone meanwhile."""

from __future__ import annotations

import functools
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import podwright
from podwright.launch import call_values, value_watch
from podwright.launch.call_values import CallFailed

LATER = """
import podwright
def slow(path):
    import time, pathlib
    while not pathlib.Path(path).exists():
        time.sleep(0.05)
    return "late"
from podwright.launch import calls
print(calls.start_call(podwright._session(), slow, ({go!r},), "local", {{}}).id)
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    yield tmp_path / "home"
    for run in podwright.list_runs():
        run.cancel()
        assert run.wait(60).is_final


def rank_of(text: str, mark: str = "") -> tuple[str, str, str]:
    return text + mark, os.environ["RANK"], os.environ["WORLD_SIZE"]


def square(number: int) -> int:
    return number * number


def fail(text: str) -> None:
    raise KeyError(text)


def second_fails(text: str) -> str:
    if os.environ["RANK"] == "1":
        raise KeyError(text)
    return text


def test_every_rank_calls_and_all_values_come_back() -> None:
    function = functools.partial(rank_of, mark="!")
    values = podwright.call(function, "a", nodes=2, ranks_per_node=2, all_ranks=True)
    assert values == [("a!", str(rank), "4") for rank in range(4)]


def test_one_array_for_many_items() -> None:
    assert sorted(podwright.map(square, range(4))) == [0, 1, 4, 9]
    [run] = podwright.list_runs(name="square")
    assert len(run.points()) == 4


@pytest.mark.parametrize("items", [[3], [3, 4]])
def test_a_single_item_is_as_good_as_many(items: list[int]) -> None:
    assert sorted(podwright.map(square, items)) == [item * item for item in items]


def test_an_error_comes_back_with_its_traceback_there() -> None:
    with pytest.raises(CallFailed) as failed:
        podwright.call(fail, "gone")
    assert failed.value.rank == 0
    assert failed.value.remote.endswith("KeyError: 'gone'\n")
    assert isinstance(failed.value.__cause__, KeyError)
    assert podwright.find("last").record().state == "failed"


def test_a_function_that_never_returns_a_value_is_said() -> None:
    with pytest.raises(CallFailed, match="exited with 7"):
        podwright.call(os._exit, 7)


def test_a_value_outlives_the_client_that_asked_for_it(tmp_path: Path) -> None:
    go = tmp_path / "go"
    started = subprocess.run(
        [sys.executable, "-c", LATER.format(go=str(go))], check=True, capture_output=True, text=True
    ).stdout.split()[-1]
    go.touch()
    assert podwright.find(started).value() == "late"


def test_runs_are_listed_and_shown() -> None:
    before = datetime.now(UTC)
    podwright.call(square, 3)
    [run] = podwright.list_runs(state="succeeded", since=before - timedelta(seconds=1))
    assert run.started_at is not None
    assert run.ended_at is not None
    assert before - timedelta(seconds=1) < run.created_at <= run.started_at <= run.ended_at
    assert repr(run) == f"<Run {run.id} succeeded>"
    assert f"<b>{run.id}</b>" in run._repr_html_()
    assert podwright.list_runs(name="other*") == []


def test_told_values_and_samples_are_tables(capfd: pytest.CaptureFixture[str]) -> None:
    def tells() -> None:
        print('{"podwright": {"step": 1, "loss": 0.5}}')

    podwright.call(tells)
    run = podwright.find()
    assert [(row.name, row.value, row.step) for row in run.series() if row.name == "loss"] == [("loss", 0.5, 1.0)]
    assert run.series().to_arrow().column("name").to_pylist().count("loss") == 1
    assert run.metrics().to_arrow().column_names == ["t", "node", "restart", "retry", "name", "value"]
    podwright.log(loss=0.25)
    assert capfd.readouterr().out == '{"podwright": {"loss": 0.25}}\n'


def test_workloads_from_a_dict() -> None:
    run = podwright.run({"name": "said", "command": ["echo", "hello"]})
    assert run.wait(60).state == "succeeded"
    with pytest.raises(podwright.Refusal, match="nodes: must be a whole positive number"):
        podwright.load({"name": "said", "command": "echo", "nodes": 0})


def test_another_python_is_refused(tmp_path: Path) -> None:
    from podwright.launch import call_rank

    (tmp_path / "call.pkl").write_bytes(pickle.dumps({"python": (3, 8)}))
    with pytest.raises(SystemExit, match=r"pickled by Python 3\.8, and this is 3"):
        call_rank.read(str(tmp_path / "call.pkl"))


def test_a_map_waits_for_the_ranks_that_are_not_the_first() -> None:
    with pytest.raises(CallFailed, match="KeyError"):
        list(podwright.map(second_fails, ["late"], ranks_per_node=2))


def test_a_look_at_all_points_comes_when_values_do_not() -> None:
    turn = value_watch.LookTurn(least_s=0.2)
    assert turn.is_due(100.0)
    turn.looked(100.0, 100.1)
    assert (turn.is_due(105.0), turn.is_due(105.2)) == (False, True)
    turn.came(105.0)
    assert (turn.is_due(109.9), turn.is_due(110.1)) == (False, True)
    turn.came(130.0)
    assert turn.is_due(130.5), "one that failed is said although the values of others come"
    turn.looked(131.0, 151.0)
    assert (turn.is_due(160.0), turn.is_due(161.0)) == (False, True)
    turn.erred({"a"})
    assert turn.is_due(152.0)
    turn.looked(152.0, 152.1)
    turn.erred({"a"})
    assert not turn.is_due(153.0), "it is tried again"


def test_what_a_rank_left_last_counts(tmp_path: Path) -> None:
    kept = tmp_path / call_values.RESULTS
    kept.mkdir(parents=True)
    (kept / "0.error").write_bytes(pickle.dumps({"text": "first", "error": b""}))
    source = call_values.ValueSource("toy", tmp_path, "local", is_trusted=True)
    with pytest.raises(CallFailed, match="first"):
        call_values.read_value(source, 0, str)
    (kept / "0.value").write_bytes(pickle.dumps(7))
    os.utime(kept / "0.error", (1, 1))
    assert call_values.read_value(source, 0, str) == 7


def pair(number: int) -> tuple[int, set[int]]:
    return number, {number}


def test_values_may_travel_as_json() -> None:
    assert podwright.call(rank_of, "a", nodes=2, values="json") == ["a", "0", "2"]
    assert sorted(podwright.map(square, [2, 3], values="json")) == [4, 9]
    with pytest.raises(CallFailed, match="TypeError: Object of type set is not JSON serializable"):
        podwright.submit(pair, 7, values="json").value()
    assert podwright.submit(pair, 7).value() == (7, {7})
    with pytest.raises(podwright.Refusal, match='values: "jason" is no form of values') as refused:
        podwright.submit(pair, 7, values="jason")
    assert "did you mean `json`?" in str(refused.value)


def test_a_map_of_which_an_item_fails_says_so() -> None:
    with pytest.raises(CallFailed, match="KeyError: 'gone'"):
        list(podwright.map(fail, ["gone", "gone"]))
