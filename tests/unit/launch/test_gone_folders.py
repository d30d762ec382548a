"""A run whose folder somebody removed or emptied while it ran: it ends by itself, and can be ended."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from podwright import launch
from podwright.engines.local import LocalEngine
from podwright.engines.local.engine import marked
from podwright.pilot.system.paths import FolderWatch
from podwright.runs import Home
from tests.contract.sites import until
from tests.fixtures.bad_runs import call
from tests.fixtures.launching import Load


def empty(folder: Path) -> None:
    """Remove what is in a folder; a pilot may add to it meanwhile."""
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def remove(folder: Path) -> None:
    """Take the folder away at once, whatever is written into it meanwhile."""
    folder.rename(folder.with_name(".gone"))
    shutil.rmtree(folder.with_name(".gone"), ignore_errors=True)


@pytest.fixture
def started(home: Home, load: Load) -> Iterator[Callable[[float], launch.Run]]:
    """Starts a run that would go on for ever, and whose folder may be gone for so many seconds."""
    runs: list[launch.Run] = []

    def start(gone_s: float) -> launch.Run:
        session = launch.Session(home, engines={"local": lambda: LocalEngine(gone_s=gone_s)})
        run = launch.start(session, load("command: sleep 3600\nnodes: 2\ngrace: 1s"))
        runs.append(run)
        until(lambda: run.record().state == "running", "it runs")
        return run

    yield start
    for run in runs:
        for pid in marked().get(run.id, []):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("take", [remove, empty])
def test_it_ends_by_itself(started: Callable[[float], launch.Run], take: Callable[[Path], None]) -> None:
    run = started(0.5)
    take(run.folder.path)
    until(lambda: run.id not in marked(), "it ends")


def test_pilots_without_a_keeper_end_too(started: Callable[[float], launch.Run]) -> None:
    run = started(0.5)
    os.kill(int((run.folder.path / "keeper.lock").read_text()), signal.SIGKILL)
    remove(run.folder.path)
    until(lambda: run.id not in marked(), "it ends")


def test_it_is_cancelled_by_its_id(
    started: Callable[[float], launch.Run], home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PODWRIGHT_HOME", str(home.path))
    run = started(3600.0)
    remove(run.folder.path)
    code, out, err = call("cancel", "--json", run.id)
    assert (code, json.loads(out)["id"]) == (0, run.id)
    assert err == f"asked     {run.id} to end: its folder is gone, its processes are not\n"
    until(lambda: run.id not in marked(), "it ends")
    code, _, err = call("cancel", run.id)
    assert (code, err.partition("\n")[0]) == (2, f"there is no run {run.id!r}")


# when it is believed


def test_a_folder_is_gone_after_a_while_and_not_when_it_comes_back(tmp_path: Path) -> None:
    folder, clock = tmp_path / "toy-2222", [0.0]
    folder.mkdir()
    watch = FolderWatch(str(folder), 30.0, lambda: clock[0])
    looks = []
    for clock[0], is_there in ((0, False), (29, False), (29.5, True), (31, False), (60, False), (61, False)):
        if is_there:
            (folder / "run.json").touch()
        else:
            (folder / "run.json").unlink(missing_ok=True)
        looks.append(watch.is_gone())
    assert looks == [False, False, False, False, False, True]


def test_a_home_that_is_away_has_lost_no_run(tmp_path: Path) -> None:
    clock = [0.0]
    watch = FolderWatch(str(tmp_path / "away" / "runs" / "toy-2222"), 30.0, lambda: clock[0])
    assert not watch.is_gone()
    clock[0] = 1000.0
    assert not watch.is_gone()


def test_nobody_looks_where_the_engine_does(tmp_path: Path) -> None:
    assert not FolderWatch(str(tmp_path / "toy-2222"), None).is_gone()
