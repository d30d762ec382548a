"""Which jobs the controller lost: the script that looks, run by a real shell, with a stand-in for scontrol."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from podwright.clients.ssh import Here
from podwright.engines.slurm.lost_jobs import give, lost

MIN_JOB_AGE_S = 300
SCONTROL = f"""\
#!/bin/sh
echo 'MessageTimeout          = 10 sec'
echo 'MinJobAge               = {MIN_JOB_AGE_S} sec'
"""


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    program = tmp_path / "bin" / "scontrol"
    program.parent.mkdir()
    program.write_text(SCONTROL)
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    folder = tmp_path / "runs" / "toy-2222"
    (folder / "lease").mkdir(parents=True)
    return folder


def put(run: Path, name: str, age_s: float = 0.0) -> None:
    path = run / name
    path.touch()
    os.utime(path, (time.time() - age_s,) * 2)


AGES = {
    "never began": ({}, True),
    "began just now": ({"slurm.log": 1}, True),
    "was at work just now": ({"slurm.log": 900, "lease/0.0": 10}, True),
    "could have been forgotten for its age": ({"slurm.log": 900, "lease/0.0": 400}, False),
    "has ended": ({"slurm.log": 1, "lease/ended": 1}, False),
    "was cancelled": ({"slurm.log": 1, "cancelled": 1}, False),
}


@pytest.mark.parametrize("name", AGES)
def test_a_job_that_slurm_does_not_list(name: str, run: Path) -> None:
    files, is_lost = AGES[name]
    for file, age_s in files.items():
        put(run, file, age_s)
    assert lost(Here(), [str(run)]) == [str(run)] * is_lost


def test_its_run_is_free_for_the_next_job(run: Path) -> None:
    (run / "owner").symlink_to("7")
    give(Here(), [str(run)])
    assert not (run / "owner").is_symlink()
