"""One bad run stays that run's trouble: whatever lies in its folder, all others answer as before and it can go."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from podwright import launch
from podwright.launch import Session
from podwright.runs import Home
from tests.fixtures.bad_runs import BAD, add_run, bad_home, call, good_rows
from tests.fixtures.fake_engine import FakeEngine

__all__ = ["bad_home"]


def append(name: str, text: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        with (folder / name).open("a") as file:
            file.write(text + "\n")

    return damage


def as_folder(name: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        (folder / name).mkdir()

    return damage


def as_pipe(name: str) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        os.mkfifo(folder / name)

    return damage


def with_field(**changes: Any) -> Callable[[Path], None]:
    def damage(folder: Path) -> None:
        path = folder / "run.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    return damage


def emptied(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def record_as_file(folder: Path) -> None:
    shutil.rmtree(folder / "record")
    (folder / "record").touch()


EVENTS = "record/n0.r0/events.jsonl"


def no_pod(folder: Path) -> None:
    with_field(target="far:slurm")(folder)
    (folder / "spec").mkdir()
    (folder / "spec" / "pod.yaml").write_text("]")


DAMAGES: dict[str, Callable[[Path], None]] = {
    "a folder of no node": lambda folder: (folder / "record" / "n².r0").mkdir(),
    "an endless number": lambda folder: (folder / "record" / f"n{'9' * 200}.r0").mkdir(),
    "a start without an epoch": append(EVENTS, '{"k":"go"}'),
    "a result of no rank": append(EVENTS, '{"k":"result","rank":null,"values":[],"t":1,"e":[0,0],"n":0}'),
    "an end that nobody knows": append(EVENTS, '{"k":"end","state":"weird","t":9,"e":[0,0],"n":0}'),
    "an engine's end without a state": append("engine.jsonl", '{"k":"end"}'),
    "a sample without values": append("record/n0.r0/metrics.jsonl", '{"t":1}'),
    "run.json with other types": with_field(created_at="soon", nodes="two"),
    "run.json with secrets that are none": with_field(workload={"secrets": 5, "goal": "x", "resources": 1}),
    "run.json of another run": with_field(id="good-2222"),
    "run.json with another target": with_field(target="loca"),
    "run.json with a target whose pod is none": no_pod,
    "run.json with endless points": with_field(points=10**12),
    "run.json that is no JSON": append("run.json", "{"),
    "run.json that is a pipe": as_pipe("run.json"),
    "run.json that is gone": lambda folder: (folder / "run.json").unlink(),
    "events that are a folder": as_folder(EVENTS),
    "events that are a pipe": as_pipe(EVENTS),
    "a log that is a folder": as_folder("record/n0.r0/merged.log"),
    "a log that is a pipe": as_pipe("record/n0.r0/merged.log"),
    "samples that are a pipe": as_pipe("record/n0.r0/metrics.jsonl"),
    "a record that is a file": record_as_file,
    "metrics that are none": append("metrics.parquet", "x"),
    "a lock that is a folder": as_folder("seal.lock"),
    "client.jsonl that is a folder": as_folder("client.jsonl"),
    "an emptied folder": emptied,
}


@pytest.fixture
def before(bad_home: Home) -> dict[str, Any]:
    """Give what is said of the good runs while all is well."""
    add_run(bad_home, BAD)
    return good_rows()


@pytest.mark.parametrize("name", DAMAGES)
def test_other_runs_answer_as_before_and_the_bad_one_is_removed(
    bad_home: Home, before: dict[str, Any], name: str
) -> None:
    shutil.rmtree(bad_home.runs / BAD)
    folder = add_run(bad_home, BAD)
    DAMAGES[name](folder)
    assert good_rows() == before
    assert call("rebuild")[:2] == (0, "6 runs in the index\n")
    assert good_rows() == before
    assert call("show", BAD)[0] == 0
    assert call("logs", BAD)[0] in (0, 2)
    code, out, err = call("rm", "--yes", BAD)
    assert (code, out, err.splitlines()[0]) == (0, "", f"removed   {BAD}")
    assert not folder.exists()
    assert good_rows() == before


def test_an_event_of_the_year_2280_keeps_no_run_alive(bad_home: Home) -> None:
    folder = add_run(bad_home, BAD)
    lines = [json.loads(line) for line in (folder / EVENTS).read_text().splitlines()[:-1]]
    lines[2]["t"] += 8e9
    (folder / EVENTS).write_text("".join(json.dumps(line) + "\n" for line in lines))
    for _ in range(3):
        row = json.loads(call("show", BAD, "--json")[1])
        assert (row["state"], row["reason"]) == ("lost", "no process of it is left on this machine")
    assert (folder / "client.jsonl").read_text().count('"lost"') == 1
    assert call("rm", "--yes", BAD)[0] == 0


@pytest.mark.parametrize("field", ["name", "target", "version"])
def test_half_a_character_in_a_record_is_written_into_no_page(bad_home: Home, field: str) -> None:
    folder = add_run(bad_home, BAD)
    with_field(**{field: "half \ud800"})(folder)
    for command in (("report", BAD), ("report", BAD, "good-2222"), ("show", BAD), ("show", BAD, "--json"), ("ps",)):
        code, _, err = call(*command)
        assert code in (0, 2), (command, err)


@pytest.mark.parametrize("name", ["run.json that is gone", "run.json that is no JSON", "an emptied folder"])
def test_a_run_that_cannot_be_read_and_has_not_ended_is_lost_with_the_reason(bad_home: Home, name: str) -> None:
    folder = add_run(bad_home, BAD)
    lines = (folder / EVENTS).read_text().splitlines()
    (folder / EVENTS).write_text("\n".join(lines[:-1]) + "\n")
    DAMAGES[name](folder)
    code, out, _ = call("show", BAD, "--json")
    row = json.loads(out)
    assert (code, row["state"]) == (0, "lost")
    assert row["reason"].startswith("its record cannot be read: run.json ")


def test_a_run_that_ended_before_its_file_was_damaged_has_ended(bad_home: Home) -> None:
    folder = add_run(bad_home, BAD)
    append("run.json", "{")(folder)
    row = json.loads(call("show", BAD, "--json")[1])
    assert (row["state"], row["exit_code"]) == ("succeeded", 0)


@pytest.mark.parametrize("remove", [emptied, shutil.rmtree])
def test_a_client_that_follows_a_run_whose_folder_goes_ends_with_it(
    bad_home: Home, remove: Callable[[Path], None]
) -> None:
    folder = add_run(bad_home, BAD)
    lines = (folder / EVENTS).read_text().splitlines()
    (folder / EVENTS).write_text("\n".join(lines[:-1]) + "\n")
    session = Session(bad_home)
    run = launch.find(session, BAD)
    assert bad_home.read(BAD).state == "running"
    remove(folder)
    record = run.wait(60)
    assert record.state == "lost"
    assert record.reason in ("its record cannot be read: run.json is gone", "its folder is gone")
    assert record.attempts == 1


@pytest.fixture
def process(bad_home: Home) -> Iterator[subprocess.Popen[bytes]]:
    """Give a process that is marked as one of the bad run."""
    command = [sys.executable, "-c", "import time; print(flush=True); time.sleep(600)"]
    child = subprocess.Popen(command, env={**os.environ, "PODWRIGHT_RUN": BAD}, stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    yield child
    child.kill()
    child.wait()
    child.stdout.close()


def test_a_run_with_a_living_process_is_neither_lost_nor_removed(
    bad_home: Home, process: subprocess.Popen[bytes]
) -> None:
    folder = add_run(bad_home, BAD)
    emptied(folder)
    assert json.loads(call("show", BAD, "--json")[1])["state"] == "running"
    code, _, err = call("rm", "--yes", BAD)
    assert (code, folder.exists()) == (2, True)
    assert "is running; only runs that have ended are removed" in err
    process.kill()
    process.wait()
    assert json.loads(call("show", BAD, "--json")[1])["state"] == "lost"
    assert call("rm", "--yes", BAD)[0] == 0


def test_a_look_that_fails_by_our_fault_is_said_and_the_record_shown(bad_home: Home) -> None:
    """The engine is one that has a fault; no file of a run shall lead to one, so that none serves here."""
    folder = add_run(bad_home, BAD)
    lines = (folder / EVENTS).read_text().splitlines()
    (folder / EVENTS).write_text("\n".join(lines[:-1]) + "\n")
    faulty = FakeEngine()
    faulty.on_status = lambda: {}["nothing"]
    run = launch.find(Session(bad_home, engines={"local": lambda: faulty}), BAD)
    with pytest.raises(KeyError):
        run.records()
    record, points = launch.records_anyway(run)
    assert (record.state, points) == ("running", [])
    assert record.reason == "it cannot be looked at: KeyError: 'nothing'"
    sweep = launch.find(Session(bad_home, engines={"local": lambda: faulty}), "sweep-4444")
    assert [point.state for point in launch.records_anyway(sweep)[1]] == ["succeeded", "succeeded"]
