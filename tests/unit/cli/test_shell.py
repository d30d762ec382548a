"""`podwright shell`: when it opens one, and what it says when it does not."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podwright import launch, spec
from podwright.cli.commands.run.shell import node_beside
from podwright.runs import Home
from podwright.spec.problems import Refusal
from tests.fixtures import strangers

PATIENCE_S = 300.0
PODWRIGHT = str(Path(sys.executable).with_name("podwright"))


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    made = Home.open(tmp_path / "home")
    yield made
    for record in launch.recent(launch.Session(made), None):
        if not record.is_final:
            launch.find(launch.Session(made), record.id).cancel()
            launch.find(launch.Session(made), record.id).wait(60)


def started(home: Home, folder: Path, **fields: Any) -> launch.Run:
    path = folder / "workload.yaml"
    given = {"name": "toy", "command": "sleep 600", **fields}
    path.write_text(json.dumps(given))
    return launch.start(launch.Session(home), spec.load_workload(path))


def until_running(run: launch.Run) -> launch.Run:
    for change in run.watch():
        if change.record.state == "running":
            return run
    raise AssertionError(f"{run.id} never ran")


def typed(command: list[str], line: str, environment: dict[str, str]) -> str:
    """What a terminal shows of a command in which a person types a line and then leaves."""
    master, slave = pty.openpty()
    with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=environment) as process:
        os.close(slave)
        os.write(master, f"{line}\nexit 7\n".encode())
        shown = b""
        while select.select([master], [], [], PATIENCE_S)[0]:
            try:
                shown += os.read(master, 65536)
            except OSError:
                break
        code = process.wait(PATIENCE_S)
    os.close(master)
    assert code == 7, shown.decode(errors="replace")
    return shown.decode(errors="replace")


def test_a_shell_stands_in_the_code_of_the_run(home: Home, tmp_path: Path) -> None:
    run = until_running(started(home, tmp_path, nodes=2))
    environment = {**os.environ, "PODWRIGHT_HOME": str(home.path), "SHELL": "/bin/sh"}
    command = [PODWRIGHT, "shell", run.id, "--node", run.record().hosts[1]]
    shown = typed(command, 'echo "at $PODWRIGHT_RUN ${PODWRIGHT_SCRATCH##*/}"', environment)
    assert f"at {run.id} n1" in shown
    assert f"ranks     rank 1 is process {run.folder.rank_processes(1)[1]}\r\n" in shown


SLOW = """
import time
def load_a_batch():
    while True:
        time.sleep(0.1)
load_a_batch()
"""


def test_py_spy_says_where_a_slow_rank_is_and_the_rank_goes_on(home: Home, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    run = until_running(started(home, tmp_path, code=".", command=[sys.executable, "slow.py"]))
    py_spy = strangers.environment("strangers").with_name("py-spy")
    command = [str(py_spy), "dump", "--pid", str(run.folder.rank_processes(0)[0])]

    def dumped() -> str:
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    deadline = time.monotonic() + PATIENCE_S
    while "load_a_batch (slow.py" not in (stack := dumped()):
        assert time.monotonic() < deadline, stack  # Python may not have come as far as the function yet
        time.sleep(0.1)
    assert run.record().state == "running"


def test_refusals(home: Home, tmp_path: Path) -> None:
    run = until_running(started(home, tmp_path))
    with pytest.raises(Refusal, match=f"{run.id} has no node 1\n\nhint: they are .*, or by number from 0 to 0"):
        node_beside(run, "1", "a shell")
    run.cancel()
    run.wait(60)
    with pytest.raises(Refusal, match=f"{run.id} is cancelled; a shell needs a run that is running"):
        node_beside(run, "0", "a shell")


def test_a_matrix_has_no_shell_but_its_points_have(home: Home, tmp_path: Path) -> None:
    run = started(home, tmp_path, matrix={"seed": [1, 2]})
    with pytest.raises(Refusal, match=rf"{run.id} has 2 points\n\nhint: name one, such as {run.id}-1"):
        node_beside(run, "0", "a shell")
