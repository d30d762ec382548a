"""Whole trainings on a GPU: checkpoints while they run, a second start, JPEGs through the loader, products in fp8.

    python3 benchmarks/gpu_train.py [--parts checkpoint,jpeg,fp8] [--json OUT]      where the GPU is: PyTorch and Pillow

Each arm is a program as users start it. Its speed is taken here, by this machine's clock, from the steps that it told,
those of compiling left out. `--quick` only tries the script out.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from gpu_step import gpu_facts
from measure import RESULTS, ROOT, machine, say, start

SETTLED_S = 8.0
"""After the first step that was told: clocks and queues settle."""
PICTURES, CLASSES, NAMES = 6400, 10, 16
"""Each picture has so many names: an epoch is long enough to be timed."""
SIZE = (500, 375)
"""Of a picture: ImageNet's mean."""


@dataclass(frozen=True)
class Told:
    """What a training told, each line with the moment it was heard."""

    lines: Sequence[tuple[float, Mapping[str, Any]]]
    began: float

    def per_s(self, batch: int) -> float:
        """Samples a second, once it had settled."""
        steps = [(at, line["step"]) for at, line in self.lines if "loss" in line]
        settled = [(at, step) for at, step in steps if at >= steps[0][0] + SETTLED_S] or steps[-2:]
        (first, before), (last, after) = settled[0], settled[-1]
        return float((after - before) * batch / (last - first)) if last > first else 0.0

    def first_step_s(self) -> float:
        """From its start to the first step that it told."""
        return next(at for at, line in self.lines if "loss" in line) - self.began

    def seconds_of(self, part: str) -> float:
        """What one part took in all."""
        total, before = 0.0, 0
        for _, line in self.lines:
            if f"{part}_s" in line:
                total += line[f"{part}_s"] * (line["step"] - before)
                before = line["step"]
        return total

    def last(self, name: str) -> Any:
        """The last value of a name."""
        return next((line[name] for _, line in reversed(self.lines) if name in line), None)


def train(program: str, *arguments: object, **variables: str) -> Told:
    """Run a program to its end."""
    command = [sys.executable, str(ROOT / "programs" / program / "train.py"), *map(str, arguments)]
    environment = {**os.environ, **variables, "PYTHONUNBUFFERED": "1"}
    began, lines, said = time.perf_counter(), [], []
    say(" ".join(command[1:]))
    pipe = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, env=environment, **pipe) as child:  # type: ignore[call-overload]
        assert child.stdout is not None
        for text in child.stdout:
            if text.startswith('{"podwright"'):
                lines.append((time.perf_counter(), json.loads(text)["podwright"]))
            elif not text.startswith(":::MLLOG"):
                said.append(text)
    if child.returncode not in (0, None) or not lines:
        raise RuntimeError(f"exit code {child.returncode}\n{''.join(said[-30:])}")
    return Told(lines, began)


class Parts:
    """Each part: what is measured, as numbers by name."""

    def __init__(self, folder: Path, device: str, quick: bool) -> None:
        self.folder, self.quick = folder, quick
        self.common = ("--device", device, "--out", folder / "out", "--epochs", 1, *(() if quick else ("--compile",)))
        self.compiled = {"PODWRIGHT_COMPILED": str(folder / "compiled")}

    def checkpoint(self) -> dict[str, Any]:
        """GPT 124M with a checkpoint each 50 steps, on disk and in memory, beside none; and a second start."""
        size, batch, steps = ("tiny", 4, 20) if self.quick else ("124M", 64, 520)
        given = ("--synthetic", "--size", size, "--batch", batch, "--steps", steps, *self.common)
        bf16 = ("--precision", "fp32", "--weights", "bf16")
        found: dict[str, Any] = {}
        none = train("transformer", *given, *bf16, **self.compiled)
        again = train("transformer", *given, *bf16, **self.compiled)
        found["start"] = {
            "first_step_s": [none.first_step_s(), again.first_step_s()],
            "compile_s": [none.seconds_of("compile"), again.seconds_of("compile")],
        }
        per_s = again.per_s(batch)
        found["none"] = {"samples_per_s": per_s, "told": again.last("samples_per_s"), "tflops": again.last("tflops")}
        places = {"disk": self.folder / "kept", "memory": Path("/dev/shm/podwright-bench")}
        for name, place in places.items():
            kept = ("--checkpoint", place, "--checkpoint-steps", 5 if self.quick else 50)
            told = train("transformer", *given, *bf16, *kept, **self.compiled)
            row = {"samples_per_s": told.per_s(batch), "of_none": told.per_s(batch) / per_s if per_s else None}
            names = ("checkpoint_write_s", "checkpoint_bytes", "checkpoint_memory_bytes", "checkpoints")
            found[name] = {**row, **{name: told.last(name) for name in names}}
            subprocess.run(["rm", "-rf", str(place)], check=True)
        return found

    def jpeg(self) -> dict[str, Any]:
        """ResNet-50 on JPEGs of a folder, beside noise, and beside what the machine decodes with nothing else to do."""
        batch, steps = (8, 4) if self.quick else (256, 500)
        given = ("--batch", batch, "--precision", "fp32" if self.quick else "bf16", *self.common)
        small = ("--side", 32) if self.quick else ()
        noise = 0.0
        if not self.quick:
            told = train("resnet", "--synthetic", "--steps", steps, *given, **self.compiled)
            noise = told.per_s(batch)
        folder = make_pictures(self.folder / "pictures", *((200, 1) if self.quick else (PICTURES, NAMES)))
        bare = decode_rate(folder, 200 if self.quick else 3 * PICTURES)
        told = train("resnet", "--data", folder, *given, "--target", 2, *small, **self.compiled)
        reached = told.per_s(batch)
        rates = {"pictures_per_s": reached, "noise_per_s": noise, "bare_decode_per_s": bare}
        return {**rates, "of_lesser": reached / (min(noise, bare) or 1.0), "told": told.last("samples_per_s")}

    def fp8(self) -> dict[str, Any]:
        """The largest GPT that fits, its products in fp8 beside bf16."""
        size, batch, steps = ("tiny", 2, 4) if self.quick else ("6.7B", 4, 80)
        given = ("--synthetic", "--size", size, "--batch", batch, "--steps", steps, *self.common)
        bf16 = ("--precision", "fp32", "--weights", "bf16")
        found: dict[str, Any] = {"size": size, "batch": batch}
        for name, more in {"bf16": (), "fp8": ("--fp8",)}.items():
            told = train("transformer", *given, *bf16, *more, **self.compiled)
            found[name] = {"samples_per_s": told.per_s(batch), "loss": told.last("loss"), "tflops": told.last("tflops")}
        if found["bf16"]["samples_per_s"]:
            found["factor"] = found["fp8"]["samples_per_s"] / found["bf16"]["samples_per_s"]
        return found


def make_pictures(folder: Path, count: int, names: int) -> Path:
    """Write JPEGs with edges, slopes and grain, as photographs have them, each under so many names."""
    for name in range(CLASSES):
        (folder / f"class{name}").mkdir(parents=True)
    with multiprocessing.Pool() as pool:
        pool.starmap(_make_picture, [(folder, number, names) for number in range(count)], 16)
    return folder


def _make_picture(folder: Path, number: int, names: int) -> None:
    import numpy as np
    from PIL import Image

    chance = np.random.default_rng(number)
    small = chance.integers(0, 256, (12, 16, 3), dtype=np.uint8)
    smooth = np.asarray(Image.fromarray(small).resize(SIZE, Image.Resampling.BICUBIC), np.float32)
    grain = smooth + chance.normal(0, 12, smooth.shape)
    place, name = folder / f"class{number % CLASSES}", f"{number:06}"
    Image.fromarray(np.clip(grain, 0, 255).astype(np.uint8)).save(place / f"{name}-0.jpg", quality=90)
    for copy in range(1, names):
        (place / f"{name}-{copy}.jpg").hardlink_to(place / f"{name}-0.jpg")


def decode_rate(folder: Path, count: int) -> float:
    """Pictures a second that all cores decode and cut out, with nothing beside them and nobody to hand them to."""
    paths = sorted(folder.glob("*/*-0.jpg"))
    tasks = [(str(paths[number % len(paths)]), number) for number in range(count)]
    with multiprocessing.Pool() as pool:
        pool.starmap(_decode, tasks[: len(paths)], 64)  # once over, so that files and code are in memory
        began = time.perf_counter()
        pool.starmap(_decode, tasks, 64)
        return count / (time.perf_counter() - began)


def _decode(path: str, draw: int) -> None:
    torch.set_num_threads(1)
    sys.path.insert(0, str(ROOT / "programs" / "resnet"))
    from photos import decode  # type: ignore[import-not-found]

    decode(Path(path).read_bytes(), 224, [draw])


def main() -> int:
    """Measure each part; one that fails is said and leaves the others."""
    given = argparse.ArgumentParser(description="Whole trainings on a GPU.")
    given.add_argument("--parts", default="checkpoint,jpeg,fp8", help="(default: %(default)s)")
    given.add_argument("--device", default="cuda")
    given.add_argument("--quick", action="store_true", help="only tries the script out")
    given.add_argument("--json", type=Path, default=RESULTS / "gpu_train.json")
    options = given.parse_args()
    found: dict[str, Any] = {"machine": {**machine(), **gpu_facts(torch.device(options.device))}}
    code = 0
    with tempfile.TemporaryDirectory(prefix="podwright-bench-") as folder:
        parts = Parts(Path(folder), options.device, options.quick)
        table: dict[str, Callable[[], dict[str, Any]]] = {
            "checkpoint": parts.checkpoint,
            "jpeg": parts.jpeg,
            "fp8": parts.fp8,
        }
        for name in options.parts.split(","):
            try:
                found[name] = table[name]()
            except (RuntimeError, OSError) as error:
                found[name], code = {"failed": str(error)}, 1
            print(name, json.dumps(found[name], indent=1), flush=True)
            options.json.write_text(json.dumps(found, indent=1) + "\n")
    return code


if __name__ == "__main__":
    start(main)
