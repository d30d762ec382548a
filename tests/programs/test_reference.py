"""The programs on the kit, each short: what they tell, stopping and going on, two ranks."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from kit.checkpoint import saved
from kit.timing import PARTS
from tests.programs.conftest import TORCHRUN, told

Spawn = Callable[..., "subprocess.Popen[str]"]
NEVER = ("--target", 2, "--epochs", 2, "--tell-every-s", 0, "--device", "cpu")
SHORT = {
    "resnet": ("resnet/train.py", "--samples", 80, "--batch", 16),
    "gpt": ("transformer/train.py", "--limit", 11, "--batch", 2),
    "bert": ("transformer/train.py", "--model", "bert", "--limit", 11, "--batch", 2),
    "translation": ("translation/train.py", "--samples", 80, "--batch", 16),
    "detection": ("detection/train.py", "--samples", 80, "--batch", 16, "--width", 4),
    "gan": ("gan/train.py", "--samples", 80, "--batch", 16, "--width", 4),
}
"""Five steps an epoch."""
WAIT_S = 300


def logged(text: str) -> list[dict[str, object]]:
    """The lines of MLPerf's log."""
    return [json.loads(line.removeprefix(":::MLLOG ")) for line in text.splitlines() if line.startswith(":::MLLOG ")]


@pytest.mark.parametrize("name", SHORT)
def test_resumed_is_as_never_stopped(name: str, spawn: Spawn, tmp_path: Path) -> None:
    """The last checkpoint is lost: from the one before, the curve goes on as it went."""
    command = (*SHORT[name], *NEVER, "--out", tmp_path / "out", "--checkpoint", tmp_path / "kept")
    whole, _ = spawn(*command, "--checkpoint-steps", 3).communicate(timeout=WAIT_S)
    assert list(told(whole, "loss")) == list(range(1, 11)), whole
    newest = saved(tmp_path / "kept")
    assert [path.name for path in newest] == ["step-00000008.pt", "step-00000010.pt"]
    newest[-1].unlink()
    after, _ = spawn(*command).communicate(timeout=WAIT_S)
    assert "resumed from step-00000008.pt: epoch 2, step 3 of 5" in after
    assert told(after, "loss") == pytest.approx({step: told(whole, "loss")[step] for step in (9, 10)}, rel=1e-4)


def test_asked_to_stop(spawn: Spawn, tmp_path: Path) -> None:
    """SIGTERM ends it after the step at hand, with a checkpoint and 143."""
    process = spawn(*SHORT["resnet"], *NEVER, "--epochs", 400, "--out", tmp_path, "--checkpoint", tmp_path / "kept")
    assert process.stdout is not None
    next(line for line in process.stdout if told(line, "loss").keys() >= {2})
    process.terminate()
    text, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 143, text
    step = re.search(r"stopped at step (\d+) of 2000", text)
    assert step is not None
    assert saved(tmp_path / "kept")[-1].name == f"step-{int(step[1]):08d}.pt"
    assert logged(text)[-1]["key"] == "run_stop"
    assert '"status": "aborted"' in text
    assert not (tmp_path / "model.pt").exists()


@pytest.mark.parametrize("name", ["resnet", "detection", "gan"])
def test_two_ranks(name: str, spawn: Spawn, tmp_path: Path) -> None:
    """One rank speaks; each step tells where its time went, waiting for the other rank too."""
    launched = spawn(*SHORT[name], *NEVER, "--batch", 8, "--out", tmp_path, launcher=TORCHRUN)
    text, _ = launched.communicate(timeout=WAIT_S)
    assert launched.returncode == 0, text
    assert list(told(text, "loss")) == list(range(1, 11))
    parts = {part: told(text, f"{part}_s") for part in PARTS}
    assert sum(parts["communication"].values()) > 0
    assert sum(parts["compute"].values()) > 0
    assert (tmp_path / "model.pt").exists()


def test_what_is_told(spawn: Spawn, tmp_path: Path) -> None:
    text, _ = spawn(*SHORT["translation"], *NEVER, "--out", tmp_path).communicate(timeout=WAIT_S)
    assert list(told(text, "bleu")) == [5, 10], text
    assert told(text, "epoch") == {step: 1 if step <= 5 else 2 for step in range(1, 11)}
    epoch = ["epoch_start", "epoch_stop", "eval_start", "eval_accuracy", "eval_stop"]
    keys = [str(entry["key"]) for entry in logged(text)]
    assert keys[keys.index("init_stop") :] == ["init_stop", "run_start", *epoch, *epoch, "run_stop"]


def test_a_profile(spawn: Spawn, tmp_path: Path) -> None:
    """Three of ten steps, after those that are skipped; asked for as `podwright run --profile` does."""
    process = spawn(*SHORT["resnet"], *NEVER, "--out", tmp_path, PODWRIGHT_PROFILE="3")
    text, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0, text
    profile = json.loads((tmp_path / "profile.json").read_text())
    assert (profile["steps"], profile["device"], profile["gaps"]) == (3, "cpu", [])
    seconds = [row["seconds"] for row in profile["operations"]]
    assert seconds == sorted(seconds, reverse=True)
    assert any("conv" in row["name"] for row in profile["operations"])
    assert 0 < profile["parts"]["compute_s"] <= profile["wall_s"]


def test_idle_stretches_of_a_gpu(load: Callable[[str, str], ModuleType]) -> None:
    """No GPU is here: kernels as the profiler lists them, with a range over them that a program named.

    Two overlap, then there are 3 ms of nothing, then one more.
    """
    module = load("resnet", "kit.profile")
    events = [
        SimpleNamespace(
            time_range=SimpleNamespace(start=start, end=end),
            name=name,
            device_type=f"DeviceType.{device}",
            is_user_annotation=named,
        )
        for start, end, name, device, named in (
            (0, 9000, "launch", "CPU", False),
            (0, 9000, "Optimizer.step#SGD.step", "CUDA", True),
            (0, 2000, "first", "CUDA", False),
            (1000, 4000, "second", "CUDA", False),
            (7000, 8000, "third", "CUDA", False),
        )
    ]
    seen = module.summary_of(module.kernels(SimpleNamespace(events=lambda: events)))
    assert seen["busy_s"] == pytest.approx(0.005)
    assert seen["gaps"] == [{"seconds": pytest.approx(0.003), "after": "second", "before": "third"}]
    assert seen["operations"][0] == {"name": "second", "seconds": pytest.approx(0.003), "calls": 1}


@pytest.mark.parametrize("name", ["detection", "gan"])
def test_synthetic(name: str, spawn: Spawn, tmp_path: Path) -> None:
    """Noise shows the speed of a step, and no target ends it."""
    size = ("--side", 32, "--width", 4, "--batch", 2, "--steps", 3, "--epochs", 1)
    process = spawn(f"{name}/train.py", "--synthetic", *size, *NEVER[-4:], "--out", tmp_path)
    text, _ = process.communicate(timeout=WAIT_S)
    assert list(told(text, "loss")) == [1, 2, 3], text
    assert logged(text)[-1]["metadata"]["status"] == "aborted"  # type: ignore[index]


@pytest.mark.parametrize("name", ["resnet", "transformer", "translation", "detection", "gan"])
def test_wrong_settings(name: str, spawn: Spawn) -> None:
    process = spawn(f"{name}/train.py", "--lr", "-1")
    text, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 2
    assert '"-1" is not a number above 0' in text


def test_all_reduce(spawn: Spawn) -> None:
    """Rows as NCCL's tests print them; 2 (n - 1) / n is 1 for two ranks, so both bandwidths are the same."""
    launched = spawn("allreduce/allreduce.py", "--device", "cpu", "--largest-mib", 1, "--rounds", 2, launcher=TORCHRUN)
    text, _ = launched.communicate(timeout=WAIT_S)
    assert launched.returncode == 0, text
    rows = [line.split() for line in text.splitlines() if re.match(r" +\d+ +\d+ +float +sum +-1 ", line)]
    assert [(row[0], row[1], row[-1]) for row in rows] == [
        (str(1024 * 4**power), str(256 * 4**power), "0") for power in range(6)
    ]
    assert all(row[6] == row[7] for row in rows)
    assert set(told(text, "world").values()) == {2}
    assert told(text, "allreduce_s")[6] > 0
    assert "# Out of bounds values : 0 OK" in text


def test_bus_bandwidth(load: Callable[[str, str], ModuleType]) -> None:
    """A gigabyte in a second over four ranks: each link carries 1.5 times as much."""
    row = load("allreduce", "allreduce").Row(10**9, 1.0, 0, 4)
    assert (row.algorithm_gbps, row.bus_gbps) == (1.0, 1.5)


def test_vectors_are_added(spawn: Spawn) -> None:
    process = spawn("vectoradd/vectoradd.py", "--device", "cpu", "--mib", 1)
    text, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0, text
    assert told(text, "wrong") == {1: 0}
    assert text.endswith("PASSED\n")


def test_a_wrong_sum_is_seen(
    load: Callable[[str, str], ModuleType], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A device that adds wrongly cannot be had here: its addition is replaced."""
    program = load("vectoradd", "vectoradd")
    monkeypatch.setattr(program.torch, "add", lambda first, second, out: out.copy_(first))
    assert program.main(["--device", "cpu", "--mib", "1"]) == 3
    assert capsys.readouterr().out.endswith("FAILED\n")
