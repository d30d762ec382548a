"""What the tests of the programs share: ways to load and start them, and a few frames for segmentation."""

from __future__ import annotations

import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.paths import ROOT

PROGRAMS = ROOT / "programs"
PROGRAM = PROGRAMS / "segmentation"
sys.path.insert(0, str(PROGRAM))

from scenes import Plan, make  # noqa: E402

TORCHRUN = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
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
def load(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str, str], ModuleType]]:
    """Imports a module of a program as running it would: each has its own `train` and `model`."""
    kept = _loaded()

    def get(program: str, module: str) -> ModuleType:
        for name in _loaded():
            del sys.modules[name]
        monkeypatch.syspath_prepend(PROGRAMS / program)
        return importlib.import_module(module)

    yield get
    for name in _loaded():
        del sys.modules[name]
    sys.modules.update(kept)


def _loaded() -> dict[str, ModuleType]:
    """Modules of any program that are imported now."""
    modules = [(name, module, getattr(module, "__file__", None)) for name, module in sys.modules.items()]
    return {name: module for name, module, file in modules if file and Path(file).is_relative_to(PROGRAMS)}


Process = subprocess.Popen[str]


@pytest.fixture
def spawn() -> Iterator[Callable[..., Process]]:
    """Starts a script of a program as its own process, behind a launcher if one is given; ends what is still there."""
    started: list[Process] = []

    def begin(script: str, *arguments: object, launcher: tuple[str, ...] = (), **variables: str) -> Process:
        process = subprocess.Popen(
            [sys.executable, *launcher, str(PROGRAMS / script), *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1", **variables},
            start_new_session=True,
        )
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.fixture
def start(spawn: Callable[..., Process]) -> Callable[..., Process]:
    """Starts the segmentation program, small."""
    return partial(spawn, "segmentation/train.py", *TINY)


def told(text: str, name: str) -> dict[int, Any]:
    """The values of one name that a program told, by step."""
    lines = [json.loads(line)["podwright"] for line in text.splitlines() if line.startswith('{"podwright"')]
    return {line["step"]: line[name] for line in lines if name in line}
