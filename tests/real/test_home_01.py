"""A home that version 0.1 wrote opens with today's code; a run whose 0.1 pilot is at work is followed to its end."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from podwright.cli.main import main
from tests.fixtures.home_01 import LIVING, MADE_AT, start_keeper, unpack
from tests.real.clients import BIN, PATIENCE_S, until

SEALED = ("broken", "frames", "sweep")
POINTS = 4


@dataclass(frozen=True)
class OldHome:
    """A copy of the home of 0.1, and a user of today at it."""

    path: Path
    ids: dict[str, str]
    hold_file: Path
    capsys: pytest.CaptureFixture[str]

    def ask(self, *words: str, code: int = 0) -> str:
        """Run one command in this process and return what it printed."""
        ended = main(list(words))
        printed = self.capsys.readouterr()
        assert ended == code, f"podwright {' '.join(words)}\n{printed.out}\n{printed.err}"
        return printed.out

    def show(self, name: str) -> dict[str, Any]:
        shown: dict[str, Any] = json.loads(self.ask("show", self.ids[name], "--json"))
        return shown

    def folder(self, name: str) -> Path:
        return self.path / "runs" / self.ids[name]

    def states(self) -> dict[str, str]:
        """Return the state of each run by its name, as `ps` lists them."""
        rows = json.loads(self.ask("ps", "--all", "--json"))
        return {row["name"]: row["state"] for row in rows}

    def log(self, name: str) -> list[tuple[int, str]]:
        """Return what the ranks of a run wrote: rank and line, in order of time."""
        rows = json.loads(self.ask("logs", self.ids[name], "--json"))
        return [(row["rank"], row["text"]) for row in rows]

    def follow(self, command: str, name: str) -> subprocess.Popen[str]:
        """Start a client of its own that follows a run; its talk and its data come through one pipe."""
        words = [str(BIN / "podwright"), command, self.ids[name]]
        return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


Keep = Callable[..., None]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> OldHome:
    path = tmp_path / "home"
    monkeypatch.setenv("PODWRIGHT_HOME", str(path))
    return OldHome(path, unpack(path), tmp_path / "go-on", capsys)


def running(home: OldHome) -> set[str]:
    return {name for name, state in home.states().items() if state == "running"}


@pytest.fixture
def keep(home: OldHome) -> Iterator[Keep]:
    """Start keepers of 0.1; one that a failed test leaves behind is asked to stop its run."""
    keepers: list[subprocess.Popen[bytes]] = []

    def start(*names: str) -> None:
        for name in names:
            keepers.append(start_keeper(home.folder(name), home.hold_file))
        until(lambda: running(home) >= set(names), f"{names} run")

    yield start
    for keeper in keepers:
        keeper.terminate()
        keeper.wait(PATIENCE_S)


def assert_done(home: OldHome, name: str) -> None:
    """Check that a living run has come to its good end with all it made, and is sealed."""
    shown = home.show(name)
    assert shown["state"] == "succeeded"
    assert shown["hosts"] == ["node1", "node2"]
    assert shown["results"] == {"loss": 0.1351, "step": 4}
    log = home.log(name)
    assert {(0, "rank 0 is done"), (1, "rank 1 is done")} < set(log)
    folder = home.folder(name)
    assert json.loads((folder / "results" / "last.json").read_text()) == {"loss": 0.1351, "step": 4}
    assert json.loads((folder / "record.json").read_text())["state"] == "succeeded"
    assert (folder / "metrics.parquet").is_file()


def test_a_copy_of_the_home_names_nothing_of_the_place_where_it_was_made(home: OldHome) -> None:
    files = [path for path in home.path.rglob("*") if path.is_file()]
    assert [path for path in files if MADE_AT.encode() in path.read_bytes()] == []


def test_ps_lists_every_run_in_its_state(home: OldHome, keep: Keep) -> None:
    keep(*LIVING)
    assert home.states() == {
        "sweep": "succeeded",
        "broken": "failed",
        "frames": "succeeded",
        "unseen": "succeeded",
        "living": "running",
        "living-frames": "running",
    }


def test_a_run_whose_keeper_is_gone_is_found_lost(home: OldHome) -> None:
    states = home.states()
    assert [states[name] for name in LIVING] == ["lost", "lost"]


def test_show_tells_of_sealed_runs_what_0_1_told(home: OldHome) -> None:
    """The record that 0.1 wrote at the seal has every field; what a run cost may be known better by now."""
    shown = [home.show(name) for name in SEALED]
    shown += shown[-1]["points"]
    single = [run for run in shown if "points" not in run]
    assert len(single) == len(SEALED) - 1 + POINTS
    for run in single:
        written = json.loads(Path(run["folder"], "record.json").read_text())
        del written["cost"]
        assert {key: run[key] for key in written} == written


def test_show_of_the_matrix_has_its_points(home: OldHome) -> None:
    sweep = home.show("sweep")
    assert sweep["state"] == "succeeded"
    results = [(point["matrix"], point["results"]["loss"]) for point in sweep["points"]]
    assert results == [
        ({"rate": 0.1, "batch": 16}, 0.1351),
        ({"rate": 0.1, "batch": 32}, 0.0725),
        ({"rate": 0.01, "batch": 16}, 0.6098),
        ({"rate": 0.01, "batch": 32}, 0.4386),
    ]


def test_show_of_the_failed_run_has_the_last_lines_of_its_rank(home: OldHome) -> None:
    shown = home.ask("show", home.ids["broken"])
    assert "rank 1 on workstation exited with 7" in shown
    assert "the loss is not a number" in shown


def test_logs_are_read_whichever_way_they_were_carried(home: OldHome) -> None:
    assert (1, "the loss is not a number") in home.log("broken")
    for name in ("frames", "unseen"):
        log = home.log(name)
        assert {(0, "rank 0 of 2 starts"), (1, "rank 1 of 2 starts")} == set(log[:2])
        assert len(log) == 2 * 10, "a start, eight steps and an end of each rank"


def test_the_first_look_seals_the_run_that_nobody_had_looked_at(home: OldHome) -> None:
    folder = home.folder("unseen")
    assert not (folder / "record.json").exists()
    shown = home.show("unseen")
    assert (shown["state"], shown["results"]) == ("succeeded", {"loss": 0.0725, "step": 8})
    assert json.loads((folder / "record.json").read_text())["state"] == "succeeded"
    assert (folder / "metrics.parquet").is_file()
    assert list(folder.rglob("metrics.jsonl")) == []


@pytest.mark.parametrize(
    ("name", "words"), [("sweep", "rate"), ("broken", "the loss is not a number"), ("frames", "node2")]
)
def test_a_report_is_written(home: OldHome, name: str, words: str) -> None:
    report = Path(json.loads(home.ask("report", home.ids[name], "--json"))["report"])
    assert report.parent == home.folder(name).resolve()
    assert words in report.read_text()


def test_rebuild_finds_as_many_runs_as_there_are_and_tells_the_same_of_them(home: OldHome) -> None:
    before: list[dict[str, Any]] = json.loads(home.ask("ps", "--all", "--json"))
    count = json.loads(home.ask("rebuild", "--json"))["runs"]
    assert count == len(home.ids) + POINTS
    assert json.loads(home.ask("ps", "--all", "--json")) == before


def test_rm_removes_a_matrix_with_its_points_and_nothing_else(home: OldHome) -> None:
    home.ask("rm", home.ids["sweep"], "--yes")
    others = set(home.ids) - {"sweep"}
    assert {path.name for path in (home.path / "runs").iterdir()} == {home.ids[name] for name in others}
    assert set(home.states()) == others


@pytest.mark.parametrize("name", LIVING)
def test_wait_follows_a_living_run_to_its_end(home: OldHome, keep: Keep, name: str) -> None:
    keep(name)
    client = home.follow("wait", name)
    home.hold_file.touch()
    said = client.communicate()[0]
    assert client.returncode == 0, said
    assert_done(home, name)


@pytest.mark.parametrize("name", LIVING)
def test_a_living_run_outlives_its_client_and_a_second_one_takes_it_up(home: OldHome, keep: Keep, name: str) -> None:
    keep(name)
    with home.follow("attach", name) as client:
        assert client.stdout is not None
        said = next((line for line in client.stdout if line.startswith("joined")), "")
        client.kill()
    assert "world size 2" in said
    assert home.states()[name] == "running"
    home.hold_file.touch()
    home.ask("wait", home.ids[name])
    assert_done(home, name)


@pytest.mark.parametrize("name", LIVING)
def test_a_living_run_is_cancelled(home: OldHome, keep: Keep, name: str) -> None:
    keep(name)
    home.ask("cancel", home.ids[name], "--yes")
    home.ask("wait", home.ids[name], code=4)
    assert home.states()[name] == "cancelled"
