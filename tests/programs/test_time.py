"""Rates of recent steps, shares of time that sum to the whole, and what is kept of compiling."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kit import compiled, timing
from kit.speed import Recent
from tests.programs.conftest import told

PARTS = ("input", "compute", "communication", "checkpoint", "compile", "evaluation")


def test_a_rate_forgets_how_the_epoch_began() -> None:
    """A minute of compiling before 200 steps of a quarter of a second: 40 % was told of a speed of 4 a second."""
    recent = Recent()
    assert recent.steps_per_s() == 0
    recent.add(60.0)
    for _ in range(200):
        recent.add(0.25)
    assert recent.steps_per_s() == pytest.approx(4.0)


@given(st.lists(st.floats(0.001, 40), min_size=1, max_size=120))
def test_a_rate_is_of_twenty_steps_or_thirty_seconds(steps: list[float]) -> None:
    recent = Recent()
    for seconds in steps:
        recent.add(seconds)
    count = next((n for n in range(20, len(steps)) if sum(steps[-n:]) >= 30), len(steps))
    assert recent.steps_per_s() == pytest.approx(count / sum(steps[-count:]))


def test_the_parts_sum_to_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every moment is in one part; a profiler's pause is in none, and stands in no step."""
    moments = iter(range(100))
    monkeypatch.setattr(timing.time, "perf_counter", lambda: float(next(moments)) ** 2)
    times = timing.StepTimes(torch.device("cpu"))
    times.begin()  # 0
    times.mark("input")  # 1
    times.mark("compile")  # 4
    times.mark("compute")  # 9
    times.mark("checkpoint")  # 16
    times.begin()
    times.leave_out()  # 25
    times.mark("input")  # 36
    times.mark("communication")  # 49
    times.mark("compute")  # 64
    times.begin()
    times.mark("evaluation")  # 81
    times.begin()
    seconds = times.totals()
    assert seconds == {
        **{"input": 1 + 11, "compute": 5 + 15, "communication": 13.0, "checkpoint": 7.0},
        **{"compile": 3.0, "evaluation": 17.0},
    }
    assert sum(seconds.values()) == 81 - 9
    assert sum(times.told().values()) == pytest.approx((81 - 9) / 3)


def test_compiling_is_no_computing() -> None:
    times = timing.StepTimes(torch.device("cpu"))
    timing.mark_compiling(times)
    doubled = torch.compile(lambda x: x * 2, backend="eager")
    times.begin()
    times.mark("input")
    assert doubled(torch.ones(3)).tolist() == [2, 2, 2]
    times.mark("compute")
    times.begin()
    seconds = times.totals()
    assert seconds["compile"] > seconds["input"] >= 0


def test_a_profile_is_no_input(spawn: Callable[..., object], tmp_path: Path) -> None:
    """The profiler takes its seconds in the pause after a step; they were told as waiting for input."""
    short = ("resnet/train.py", "--samples", 640, "--batch", 64, "--epochs", 1, "--device", "cpu")
    process = spawn(*short, "--target", 2, "--tell-every-s", 0, "--out", tmp_path, PODWRIGHT_PROFILE="3")
    text, _ = process.communicate(timeout=300)  # type: ignore[attr-defined]
    assert process.returncode == 0, text  # type: ignore[attr-defined]
    parts = {part: told(text, f"{part}_s") for part in PARTS}
    assert all(len(values) >= 9 for values in parts.values())
    compute = max(parts["compute"].values())
    assert max(parts["input"].values()) < compute, parts["input"]


def test_compiled_code_is_kept_by_what_it_fits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    run = {"PODWRIGHT_FOLDER": str(tmp_path / "runs" / "a"), "PODWRIGHT_SHARED": "1"}
    folder = compiled.folder_of(run)
    assert folder == tmp_path / "compiled"
    assert compiled.folder_of(run | {"PODWRIGHT_SHARED": "0"}) is None
    assert compiled.folder_of(run | {"PODWRIGHT_COMPILED": "/mine"}) == Path("/mine")
    own = compiled.keep_compiled(folder, torch.device("cpu"))
    assert own is not None
    assert own.name == f"torch-{torch.__version__}-cpu"
    assert [path.stat().st_mode & 0o777 for path in (folder, own)] == [0o700, 0o700]
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(own / "inductor")
    folder.chmod(0o770)
    assert compiled.keep_compiled(folder, torch.device("cpu")) is None, "others could write code into it"


def test_what_was_kept_longest_goes_first(tmp_path: Path) -> None:
    for age, name in enumerate(("old", "own", "new")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "code").write_bytes(bytes(100))
        os.utime(tmp_path / name, (age, age))
    compiled.bound(tmp_path, tmp_path / "own", 250)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "own"]
    compiled.bound(tmp_path, tmp_path / "own", 50)
    assert list(tmp_path.iterdir()) == []
    compiled.bound(tmp_path, tmp_path / "own", 50)


def test_fp8_rounds_to_three_bits_and_keeps_the_gradient(load: Callable[[str, str], ModuleType]) -> None:
    """Here in full precision: a CPU has no such product."""
    fp8 = load("transformer", "kit.fp8")
    torch.manual_seed(0)
    plain = torch.nn.Linear(64, 32, bias=False)
    short = torch.nn.Sequential(torch.nn.Linear(64, 32, bias=False))
    short[0].load_state_dict(plain.state_dict())
    fp8.use_fp8(short)
    assert list(short.state_dict()) == ["0.weight"]
    values = torch.randn(16, 64)
    rough, exact = short(values), plain(values)
    error = float((rough - exact).detach().norm() / exact.detach().norm())
    assert 0.005 < error < 0.06
    rough.sum().backward()
    exact.sum().backward()
    slopes = short[0].weight.grad - plain.weight.grad
    assert float(slopes.norm() / plain.weight.grad.norm()) < 0.06
