"""The training step of a program on a GPU: its speed, its energy, with and without the pilot sampling beside it.

    python3 benchmarks/make_pilot.py                                    where Podwright is installed
    python3 benchmarks/gpu_step.py [--case resnet] [--pairs 12] [--json OUT]   where the GPU is: PyTorch, nothing else

Blocks of steps on synthetic data, in turn with and without `python3 pilot.pyz sample` as a process of its own. A
block is timed whole: a sample disturbs one step in many, so the median step would hide just what is looked for. It
lasts long enough to hold the readings that come every 10 s. Steps that are not timed lead in to each block: the
pilot is ready when the clock starts, as in a run, and the GPU is equally warm in both arms.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from measure import ROOT, Row, alternate, compare, conclude, machine, parser, say, start

GOAL = 1.002
WITHOUT, WITH = "without", "with pilot"
WARM_UP_STEPS = 30
LEAD_IN_S = 3.0


@dataclass(frozen=True)
class Case:
    """A program's step: how it is asked for, and what is to be reached."""

    program: str
    arguments: tuple[str, ...]
    unit: str
    goal: float


FAST = ("--synthetic", "--compile", "--precision", "bf16")
BF16 = ("--synthetic", "--compile", "--precision", "fp32", "--weights", "bf16")
CASES = {
    "resnet": Case("resnet", (*FAST, "--batch", "1024"), "images/s", 7500),
    "gpt-124M": Case("transformer", (*BF16, "--size", "124M", "--batch", "64"), "MFU %", 50),
    "gpt-1.3B": Case("transformer", (*BF16, "--size", "1.3B", "--batch", "48"), "MFU %", 60),
    "try": Case("transformer", ("--synthetic", "--batch", "1"), "samples/s", 0),
}
"""Weights in bf16 need no autocast, which `--precision fp32` leaves out. `try` only tries the script out."""
PEAK_TFLOPS = {"NVIDIA H200": 989.0}
"""Of dense bf16 products, by the vendor's data sheet."""


class Step:
    """One training step of a program, on data that stays on the device."""

    def __init__(self, case: Case, device: str) -> None:
        sys.path.insert(0, str(ROOT / "programs" / case.program))
        train, loop, world = (importlib.import_module(name) for name in ("train", "kit.loop", "kit.world"))
        tell = importlib.import_module("kit.tell")
        config = train.read_settings(train.Config, "", [*case.arguments, "--device", device])
        rank = world.enter(config.device)
        torch.manual_seed(config.seed)
        self.task = train.Synthetic(config, rank)
        self.device: torch.device = rank.device
        self._loop = loop.Loop(config, rank, tell.Teller(False, 1.0), self.task)
        self._loop.model.train()
        self._batch = next(self.task.batches(0, 0))

    def __call__(self) -> Any:
        self._loop.times.begin()
        self._loop.times.mark("input")
        return self._loop.train_step(self._batch)


class Energy:
    """The GPU's own count of the energy it has used, by NVIDIA's library; nothing where there is none."""

    def __init__(self, device: torch.device) -> None:
        self._library = ctypes.CDLL("libnvidia-ml.so.1") if device.type == "cuda" else None
        self._handle = ctypes.c_void_p()
        if self._library:
            self._library.nvmlInit_v2()
            self._library.nvmlDeviceGetHandleByIndex_v2(device.index, ctypes.byref(self._handle))

    def joules(self) -> float:
        """Since the driver was loaded."""
        if self._library is None:
            return 0.0
        count = ctypes.c_ulonglong()
        self._library.nvmlDeviceGetTotalEnergyConsumption(self._handle, ctypes.byref(count))
        return count.value / 1000


def wait_for(device: torch.device) -> None:
    """Until the device has done all it was given."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def mark(device: torch.device) -> torch.cuda.Event | None:
    """A point in the GPU's own time."""
    return torch.cuda.Event(enable_timing=True) if device.type == "cuda" else None  # type: ignore[no-untyped-call]


class Blocks:
    """Times blocks of steps: by the wall, and by the GPU's own events."""

    def __init__(self, step: Step, steps: int, pilot: Path, record: Path) -> None:
        self.step, self.steps, self.pilot, self.record = step, steps, pilot, record
        self.device, self.energy = step.device, Energy(step.device)
        self.gpu_s: dict[str, list[float]] = {WITHOUT: [], WITH: []}
        self.joules: dict[str, list[float]] = {WITHOUT: [], WITH: []}

    def without(self) -> float:
        """A block with nothing beside it."""
        self._lead_in(lambda: True)
        return self._block(WITHOUT)

    def with_pilot(self) -> float:
        """A block with the pilot beside it, from its second sample on."""
        before = len(samples(self.record))
        with sampling(self.pilot, self.record) as alive:
            self._lead_in(lambda: alive() and len(samples(self.record)) >= before + 2)
            return self._block(WITH)

    def _lead_in(self, is_ready: Callable[[], bool]) -> None:
        """Steps for a while, and on until all is ready."""
        began = time.perf_counter()
        while time.perf_counter() - began < LEAD_IN_S or not is_ready():
            self.step()
            wait_for(self.device)

    def _block(self, arm: str) -> float:
        first, last = mark(self.device), mark(self.device)
        wait_for(self.device)
        spent, began = self.energy.joules(), time.perf_counter()
        if first:
            first.record()
        for _ in range(self.steps):
            self.step()
        if last:
            last.record()
        wait_for(self.device)
        took = time.perf_counter() - began
        self.joules[arm].append(self.energy.joules() - spent)
        if first and last:
            self.gpu_s[arm].append(first.elapsed_time(last) / 1000)
        return took


@contextmanager
def sampling(pilot: Path, record: Path) -> Iterator[Callable[[], bool]]:
    """The pilot as a process of its own; gives what ends the benchmark when the pilot has ended too early."""
    command = [sys.executable, "-I", "-S", str(pilot), "sample", "--seconds", "3600", "--out", str(record)]
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL)

    def alive() -> bool:
        if child.poll() is not None:
            raise SystemExit(f"{' '.join(command)}: exit code {child.returncode}")
        return True

    try:
        yield alive
    finally:
        child.terminate()
        child.wait()


def lines(record: Path) -> list[dict[str, Any]]:
    """What the pilot wrote so far; a line that was cut off by its end is left out."""
    found = []
    for text in record.read_text().splitlines():
        try:
            found.append(json.loads(text))
        except ValueError:
            continue
    return found


def samples(record: Path) -> list[dict[str, float]]:
    """The readings among it."""
    return [line["v"] for line in lines(record) if "v" in line]


def gpu_fields(record: Path) -> dict[str, float]:
    """The last value of every GPU field that was read."""
    last: dict[str, float] = {}
    for values in samples(record):
        last.update({name: value for name, value in values.items() if name.startswith("gpu.")})
    return last


def count_steps(step: Step, seconds: float) -> int:
    """How many steps fill a block, once the clocks and the kernels' choice have settled."""
    device = step.device
    for _ in range(WARM_UP_STEPS if device.type == "cuda" else 1):
        step()
    wait_for(device)
    began, done = time.perf_counter(), 0
    while time.perf_counter() - began < min(seconds, 3.0):
        step()
        wait_for(device)
        done += 1
    return max(1, round(done * seconds / (time.perf_counter() - began)))


def gpu_facts(device: torch.device) -> dict[str, Any]:
    """The device the figures belong to."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "none: the CPU"
    return {"gpu": name, "torch": torch.__version__, "cuda": torch.version.cuda}


def find(taken: dict[str, list[float]], gpu_s: dict[str, list[float]], steps: int) -> list[Row]:
    """Both clocks; the wall's is the one that counts, since it also sees what the CPU loses."""
    per_step = {arm: [one / steps for one in times] for arm, times in taken.items()}
    rows = [compare("step with pilot / without, wall", per_step[WITH], per_step[WITHOUT], GOAL)]
    if gpu_s[WITH]:
        count = len(taken[WITH])
        ours, bare = ([one / steps for one in gpu_s[arm][-count:]] for arm in (WITH, WITHOUT))
        rows.append(compare("step with pilot / without, GPU events", ours, bare))
    return rows


def speed(case: Case, step: Step, steps: int, blocks: Blocks, taken: dict[str, list[float]]) -> dict[str, Any]:
    """Samples a second, model FLOPs utilisation and energy of a sample, in each arm."""
    samples, count = steps * step.task.batch, len(taken[WITH])
    flops, peak = step.task.flops_per_sample, PEAK_TFLOPS.get(gpu_facts(step.device)["gpu"])
    figures: dict[str, Any] = {"unit": case.unit, "goal": case.goal, "peak_tflops": peak, "flops_per_sample": flops}
    for arm in (WITHOUT, WITH):
        per_s = samples / statistics.median(taken[arm])
        joules = statistics.median(blocks.joules[arm][-count:]) / samples
        mfu = per_s * flops / peak / 1e10 if peak else None
        figures[arm] = {"samples_per_s": per_s, "mfu_percent": mfu, "joules_per_sample": joules}
    return figures


def kernels(step: Step, steps: int = 3) -> list[dict[str, Any]]:
    """Where the GPU's time of a step goes, kernel by kernel, the longest first."""
    if step.device.type != "cuda":
        return []
    activity = torch.profiler.ProfilerActivity.CUDA
    with torch.profiler.profile(activities=[activity]) as profile:
        for _ in range(steps):
            step()
        wait_for(step.device)
    rows = sorted(profile.key_averages(), key=lambda row: -row.self_device_time_total)
    listed = [{"kernel": row.key, "ms": row.self_device_time_total / 1000 / steps, "calls": row.count} for row in rows]
    return [row for row in listed if row["ms"] > 0][:60]


def options_given() -> Any:
    """The command line."""
    made = parser("A program's training step with and without the pilot beside it.", pairs=12)
    made.add_argument("--case", choices=tuple(CASES), default="resnet", help="(default: %(default)s)")
    made.add_argument("--pilot", type=Path, default=ROOT / "dist" / "pilot.pyz", help="(default: dist/pilot.pyz)")
    made.add_argument("--device", default="cuda", help="cpu only tries the script out (default: %(default)s)")
    made.add_argument("--block", type=float, default=12.0, help="seconds of a block (default: %(default)s)")
    options = made.parse_args()
    if not options.pilot.is_file():
        raise SystemExit(f"there is no {options.pilot}\n\nhint: python benchmarks/make_pilot.py writes it")
    return options


def main() -> int:
    """Measure both arms in turn and show what the pilot read."""
    options = options_given()
    case = CASES[options.case]
    step = Step(case, options.device)
    facts = {**machine(), **gpu_facts(step.device)}
    with tempfile.TemporaryDirectory(prefix="podwright-bench-") as folder:
        record = Path(folder, "pilot.jsonl")
        record.touch()
        steps = count_steps(step, options.block)
        say(f"{steps} steps to a block of about {options.block:g} s, batch {step.task.batch}")
        blocks = Blocks(step, steps, options.pilot, record)
        taken = alternate({WITHOUT: blocks.without, WITH: blocks.with_pilot}, options.pairs)
        fields, events = gpu_fields(record), [line for line in lines(record) if "v" not in line]
    figures = speed(case, step, steps, blocks, taken)
    asked = {"program": case.program, "arguments": case.arguments, "steps_per_block": steps}
    raw: dict[str, Any] = {
        "asked": asked,
        "speed": figures,
        "seconds": taken,
        "gpu_seconds": blocks.gpu_s,
        "joules": blocks.joules,
    }
    raw |= {"kernels": kernels(step), "gpu_fields": fields, "pilot_events": events}
    conclude(f"gpu_step_{options.case}", find(taken, blocks.gpu_s, steps), raw, facts, options.json)
    say(json.dumps(figures, indent=1))
    print(f"\n{len(fields)} GPU fields sampled")
    print("\n".join(f"  {name:<44} {value:g}" for name, value in sorted(fields.items())))
    return 0


if __name__ == "__main__":
    start(main)
