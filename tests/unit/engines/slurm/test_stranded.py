"""Jobs that Slurm leaves where they are, helped on by whoever looks.

Held ones, since a node could not start them, are released a few times; those whose batch script died with its node are
put back into the queue once their pilots have left.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from podwright.clients.ssh import Here
from podwright.engines.slurm.stranded import put_back, release


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


def test_a_job_is_put_back_unless_its_next_start_is_there(tmp_path: Path, calls: Path) -> None:
    begun = tmp_path / "toy-2222" / "start.1"
    begun.mkdir(parents=True)
    put_back(Here(), {str(begun): "7", str(tmp_path / "toy-3333" / "start.4"): "8_2"})
    assert calls.read_text().splitlines() == ["requeue 8_2"]
