"""Jobs that Slurm holds because a node could not start them: released by whoever looks, a few times."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from podwright.clients.ssh import Here
from podwright.engines.slurm.stranded import release


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
