"""What the tests of the segmentation program share: its folder on the path, a few frames, ways to start it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.paths import ROOT

PROGRAM = ROOT / "programs" / "segmentation"
sys.path.insert(0, str(PROGRAM))

from scenes import Plan, make  # noqa: E402

TINY = ["--size", "48x32", "--width", "4", "--batch", "2", "--epochs", "2", "--tell-every-s", "0", "--device", "cpu"]


@pytest.fixture(scope="session")
def frames(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eighteen small frames of three scenes."""
    root = tmp_path_factory.mktemp("frames") / "small"
    make(Plan(frames=18, scenes=3, cameras=("front_center", "rear_center"), size=(64, 40)), root)
    return root


@pytest.fixture
def train(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., int]]:
    """The program's own `main`, as if alone on this machine; its signal handler is taken back."""
    import torch

    from train import main

    for name in ("RANK", "WORLD_SIZE", "LOCAL_RANK", "PODWRIGHT_FOLDER", "PODWRIGHT_CHECKPOINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    before, threads = signal.getsignal(signal.SIGTERM), torch.get_num_threads()
    yield lambda *arguments: main([*TINY, *map(str, arguments)])
    signal.signal(signal.SIGTERM, before)
    torch.set_num_threads(threads)


@pytest.fixture
def start() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts the program as its own process, behind a launcher if one is given; ends what is still there."""
    started: list[subprocess.Popen[str]] = []

    def begin(*arguments: object, launcher: tuple[str, ...] = (), **variables: str) -> subprocess.Popen[str]:
        command = [sys.executable, *launcher, str(PROGRAM / "train.py"), *TINY, *map(str, arguments)]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=environment,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def told(text: str, name: str) -> dict[int, Any]:
    """The values of one name that a program told, by step."""
    lines = [json.loads(line)["podwright"] for line in text.splitlines() if line.startswith('{"podwright"')]
    return {line["step"]: line[name] for line in lines if name in line}
