"""Jobs that Slurm leaves where they are, helped on by whoever looks.

Held ones, since a node could not start them, are released a few times; those whose batch script died with its node are
put back into the queue when nothing was heard of them for a while.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from podwright.clients.ssh import Here
from podwright.engines.slurm.stranded import Unheard, release
from podwright.runs import Home, RunFolder
from tests.fixtures.clock import Clock
from tests.unit.runs.made import asked, go, write_lines


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a stand-in for scontrol was called with."""
    program, calls = tmp_path / "bin" / "scontrol", tmp_path / "calls"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >>{calls}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    return calls


def test_each_job_is_released_three_times(tmp_path: Path, calls: Path) -> None:
    runs = {str(tmp_path / "toy-2222"): "7", str(tmp_path / "toy-3333"): "8_2"}
    for path in runs:
        Path(path).mkdir()
    for _ in range(5):
        release(Here(), runs)
    assert sorted(calls.read_text().splitlines()) == ["release 7"] * 3 + ["release 8_2"] * 3


def test_nothing_is_asked_where_none_is_held(calls: Path) -> None:
    release(Here(), {})
    assert not calls.exists()


PROGRAMS = {
    "scontrol": 'echo "$@" >>"$CALLS"; [ ! -e "$CALLS.away" ]',
    "squeue": 'cat "$CALLS.state"',
    "sleep": '[ ! -e "$CALLS.beat" ] || . "$CALLS.beat"',
}


@dataclass
class Site:
    """A cluster's folder with one run, and stand-ins for Slurm's commands, which real shells call."""

    home: Home
    calls: Path
    clock: Clock

    def run(self, run_id: str = "toy-2222") -> RunFolder:
        site = json.dumps({"folder": str(self.home.path), "step": [], "wrap": []})
        folder = self.home.create(asked(run_id), {"job/site.json": site.encode()}, {})
        write_lines(folder.path / "client.jsonl", {"t": 0, "k": "submitted", "handle": "7"})
        return folder

    def began(self, folder: RunFolder, start: int, age_s: float) -> None:
        """A start whose leader was heard of so long ago, and a lease as old."""
        (folder.path / f"start.{start}").mkdir()
        leader = folder.record_path / f"n0.r{start}"
        write_lines(leader / "events.jsonl", go(e=(start, 0), hosts=("n3",)))
        write_lines(leader / "metrics.jsonl", {"t": 1})
        lease = folder.path / "lease" / f"00000{start}.000000"
        write_lines(lease, {"copy": str(start)})
        for path in (*leader.iterdir(), lease):
            os.utime(path, (time.time() - age_s,) * 2)

    def look(self, *folders: RunFolder) -> dict[str, str]:
        return Unheard(Here(), self.clock).look(dict.fromkeys(folders, "7"))

    def asked(self) -> list[str]:
        return self.calls.read_text().splitlines() if self.calls.exists() else []


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    calls = tmp_path / "calls"
    (tmp_path / "bin").mkdir()
    for name, text in PROGRAMS.items():
        program = tmp_path / "bin" / name
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    Path(f"{calls}.state").write_text("RUNNING\n")
    monkeypatch.setenv("CALLS", str(calls))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return Site(Home.open(tmp_path / "home"), calls, Clock())


def test_a_run_of_one_node_whose_pilot_is_gone_is_put_back_once(site: Site) -> None:
    """Its node was switched off and on: no other pilot is there to say so, and Slurm believes that the job runs."""
    folder = site.run()
    site.began(folder, 0, 500.0)
    site.began(folder, 1, 70.0)
    assert site.look(folder)["toy-2222"].startswith("no word from n3 for 1m ")
    site.look(folder)
    assert site.asked() == ["requeue 7"]
    assert (folder.path / "put_back.1").is_dir()


def test_a_controller_that_is_away_is_asked_again(site: Site) -> None:
    folder = site.run()
    site.began(folder, 0, 70.0)
    away = Path(f"{site.calls}.away")
    away.touch()
    site.look(folder)
    away.unlink()
    site.look(folder)
    assert site.asked() == ["requeue 7", "requeue 7"]


def test_a_short_silence_is_said_and_no_more(site: Site) -> None:
    folder = site.run()
    site.began(folder, 0, 25.0)
    assert site.look(folder)["toy-2222"].startswith("no word from n3 for ")
    assert site.asked() == []


LIVES = {
    "it was heard of just now": lambda folder: os.utime(folder.path / "lease" / "000000.000000"),
    "it has ended": lambda folder: write_lines(folder.path / "lease" / "ended", {"state": "succeeded"}),
    "its next start has begun, and no pilot of it": lambda folder: (folder.path / "start.1").mkdir(),
}


@pytest.mark.parametrize("change", LIVES)
def test_a_run_is_left_alone_where(change: str, site: Site) -> None:
    folder = site.run()
    site.began(folder, 0, 500.0)
    LIVES[change](folder)
    assert site.look(folder) == {}
    assert site.asked() == []


def test_a_folder_that_was_away_for_a_while_is_no_loss(site: Site) -> None:
    """Pilots whose folder hung write again, when it is back."""
    folder = site.run()
    site.began(folder, 0, 500.0)
    Path(f"{site.calls}.beat").write_text(f"touch {folder.path}/lease/000000.000000\n")
    site.look(folder)
    assert site.asked() == []


def test_slurm_that_found_it_out_meanwhile_is_not_asked(site: Site) -> None:
    folder = site.run()
    site.began(folder, 0, 500.0)
    Path(f"{site.calls}.state").write_text("PENDING\n")
    site.look(folder)
    assert site.asked() == []


def test_each_of_many_is_looked_at_by_itself(site: Site) -> None:
    lost, live, silent = site.run("toy-2222"), site.run("toy-3333"), site.run("toy-4444")
    site.began(lost, 0, 500.0)
    site.began(live, 0, 0.0)
    site.began(silent, 0, 25.0)
    assert set(site.look(lost, live, silent)) == {"toy-2222", "toy-4444"}
    assert [folder.id for folder in (lost, live, silent) if (folder.path / "put_back.0").exists()] == ["toy-2222"]
