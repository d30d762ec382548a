"""A ResNet-50 training step on a GPU, with and without the pilot sampling beside it.

    python3 benchmarks/make_pilot.py                                    where Podwright is installed
    python3 benchmarks/gpu_step.py [--pairs 12] [--json OUT]            where the GPU is: PyTorch and nothing else

Blocks of bf16 steps on synthetic data, in turn with and without `python3 pilot.pyz sample` as a process of its own. A
block is timed whole: a sample disturbs one step in many, so the median step would hide just what is looked for. It
lasts long enough to hold the readings that come every 10 s. Steps that are not timed lead in to each block: the
pilot is ready when the clock starts, as in a run, and the GPU is equally warm in both arms.
"""

from __future__ import annotations

import json
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
from torch import nn

from measure import ROOT, Row, alternate, compare, conclude, machine, parser, say, start
from resnet50 import resnet50

GOAL = 1.002
WITHOUT, WITH = "without", "with pilot"
WARM_UP_STEPS = 30
LEAD_IN_S = 3.0


@dataclass
class Step:
    """One training step on data that stays on the device."""

    model: nn.Module
    optimizer: torch.optim.Optimizer
    pictures: torch.Tensor
    labels: torch.Tensor

    def __call__(self) -> None:
        with torch.autocast(self.pictures.device.type, torch.bfloat16):
            loss = nn.functional.cross_entropy(self.model(self.pictures), self.labels)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        self.optimizer.step()


def make_step(batch: int, size: int, device: torch.device) -> Step:
    """The network and a batch of noise."""
    torch.manual_seed(0)
    model = resnet50().to(device, memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    pictures = torch.randn(batch, 3, size, size, device=device).to(memory_format=torch.channels_last)
    return Step(model, optimizer, pictures, torch.randint(1000, (batch,), device=device))


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
        self.device = step.pictures.device
        self.gpu_s: dict[str, list[float]] = {WITHOUT: [], WITH: []}

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
        began = time.perf_counter()
        if first:
            first.record()
        for _ in range(self.steps):
            self.step()
        if last:
            last.record()
        wait_for(self.device)
        took = time.perf_counter() - began
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
    device = step.pictures.device
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


def options_given() -> Any:
    """The command line."""
    made = parser("A ResNet-50 step with and without the pilot beside it.", pairs=12)
    made.add_argument("--pilot", type=Path, default=ROOT / "dist" / "pilot.pyz", help="(default: dist/pilot.pyz)")
    made.add_argument("--device", default="cuda", help="cpu only tries the script out (default: %(default)s)")
    made.add_argument("--batch", type=int, default=256, help="pictures in a step (default: %(default)s)")
    made.add_argument("--size", type=int, default=224, help="their height and width (default: %(default)s)")
    made.add_argument("--block", type=float, default=12.0, help="seconds of a block (default: %(default)s)")
    options = made.parse_args()
    if not options.pilot.is_file():
        raise SystemExit(f"there is no {options.pilot}\n\nhint: python benchmarks/make_pilot.py writes it")
    return options


def main() -> int:
    """Measure both arms in turn and show what the pilot read."""
    options = options_given()
    device = torch.device(options.device)
    facts = {**machine(), **gpu_facts(device)}
    torch.backends.cudnn.benchmark = True
    with tempfile.TemporaryDirectory(prefix="podwright-bench-") as folder:
        record = Path(folder, "pilot.jsonl")
        record.touch()
        step = make_step(options.batch, options.size, device)
        steps = count_steps(step, options.block)
        say(f"{steps} steps to a block of about {options.block:g} s, batch {options.batch}")
        blocks = Blocks(step, steps, options.pilot, record)
        taken = alternate({WITHOUT: blocks.without, WITH: blocks.with_pilot}, options.pairs)
        fields, events = gpu_fields(record), [line for line in lines(record) if "v" not in line]
    asked = {"batch": options.batch, "size": options.size, "steps_per_block": steps}
    raw = {"asked": asked, "seconds": taken, "gpu_seconds": blocks.gpu_s, "gpu_fields": fields, "pilot_events": events}
    conclude("gpu_step", find(taken, blocks.gpu_s, steps), raw, facts, options.json)
    print(f"\n{len(fields)} GPU fields sampled")
    print("\n".join(f"  {name:<44} {value:g}" for name, value in sorted(fields.items())))
    return 0


if __name__ == "__main__":
    start(main)
