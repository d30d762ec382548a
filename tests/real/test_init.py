"""`podwright init` on three unlike scripts: what it writes runs as it is, on this machine."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.paths import CASES as ALL_CASES

pytestmark = pytest.mark.slow

CASES = ALL_CASES / "init"
PODWRIGHT = Path(sys.executable).parent / "podwright"


def call(folder: Path, *words: str) -> Any:
    environ = {**os.environ, "PODWRIGHT_HOME": str(folder / "home")}
    command = [str(PODWRIGHT), *words, "--json"]
    done = subprocess.run(command, cwd=folder / "code", env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("case", "script", "world_size", "told"),
    [
        ("plain", "fit_line.py", 1, ("step", 50)),
        ("ddp", "train.py", 2, ("epoch", 3)),
        ("biggan", "train.py", 1, ("epoch", 3)),
    ],
)
def test_what_init_writes_runs(case: str, script: str, world_size: int, told: tuple[str, int], tmp_path: Path) -> None:
    shutil.copytree(CASES / case / "folder", tmp_path / "code")
    call(tmp_path, "init", script)
    run = call(tmp_path, "run", "workload.yaml", "--set", "resources.gpus=0")
    assert (run["state"], run["world_size"]) == ("succeeded", world_size)
    assert run["results"][told[0]] == told[1]
    kept = {path.name for path in Path(run["folder"], "checkpoints").iterdir()}
    assert kept == {"plain": {"slope.txt"}, "ddp": set(), "biggan": {"model.yaml"}}[case]
