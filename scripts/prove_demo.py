"""The demonstration of proof: one training bare, in a container and on a Slurm cluster, in turn, and one report.

It calls the same commands that a user would type. Python and PyTorch are those of this environment in all three arms,
mounted at the same paths, so that nothing differs but what is around the training. Needs root, podman and mmdebstrap.

    python -m scripts.prove_demo [--repeats 5] [--samples 4000] [--out FOLDER] [--lab NAME]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from podwright.runs.store import default_home
from scripts import small_image
from scripts.demo import ROOT

IMAGE = "localhost/podwright-prove:1"
LAB = "lab-prove"
SUITE = "prove"
PODWRIGHT = (sys.executable, "-c", "import sys; from podwright.cli.main import main; sys.exit(main())")
WARMUP = 1


def workload(folder: Path, samples: int) -> str:
    """The training: one epoch of a small ResNet on so many made digits. The environment travels as data."""
    length = ["--epochs", "1", "--samples", str(samples), "--target", "2"]
    python = [sys.executable, "train.py", *length, "--device", "cpu"]
    fields = {
        "name": "digits",
        "code": str(folder / "code"),
        "command": python,
        "env": {"OMP_NUM_THREADS": "1"},
        "image": IMAGE,
        "data": {"environment": sysconfig.get_path("data"), "python": sys.base_prefix},
    }
    return json.dumps(fields, indent=2)


def suite(lab: str, repeats: int) -> str:
    """Three cells: here bare, here in a container, and bare on the cluster."""
    fields = {
        "name": SUITE,
        "workloads": ["digits.yaml"],
        "targets": ["local", lab],
        "runtimes": ["bare", "container"],
        "exclude": [{"target": lab, "runtime": "container"}],
        "repeats": repeats,
        "warmup": WARMUP,
    }
    return json.dumps(fields, indent=2)


def podwright(*words: str, **variables: str) -> int:
    """Shows a command, runs it and gives its exit code."""
    print(f"\n$ podwright {' '.join(words)}", flush=True)
    return subprocess.run([*PODWRIGHT, *words], env=os.environ | variables, check=False).returncode


@contextmanager
def cluster(name: str) -> Iterator[None]:
    """A Slurm cluster of one node that ends with the demonstration."""
    if podwright("lab", "up", "slurm", "--name", name, "--nodes", "1"):
        raise SystemExit("the cluster did not start")
    try:
        yield
    finally:
        podwright("lab", "down", "--name", name, "--yes")


def write(folder: Path, options: argparse.Namespace) -> None:
    """Puts the program, its workload and the suite into a folder."""
    (folder / "code").mkdir()
    for path in (ROOT / "programs" / "resnet").glob("*.py"):
        shutil.copy(path, folder / "code")
    shutil.copytree(ROOT / "programs" / "kit", folder / "code" / "kit", ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "digits.yaml").write_text(workload(folder, options.samples))
    (folder / "suite.yaml").write_text(suite(options.lab, options.repeats))


def measure(folder: Path, out: Path, options: argparse.Namespace) -> int:
    """Runs the suite and keeps its report and its figures."""
    command = [str(folder / "suite.yaml"), "--again", "--prices", str(ROOT / "examples" / "prove" / "prices.yaml")]
    with small_image.store(IMAGE) as variables:
        code = podwright("bench", "run", *command, **variables)
    if code:
        return code
    for by in ("runtime", "target"):
        podwright("compare", SUITE, "--by", by)
    if options.table:
        options.table.write_text("\n".join(table()) + "\n", encoding="utf-8")
    out.mkdir(parents=True, exist_ok=True)
    for name in ("report.html", "journal.jsonl"):
        shutil.copy(default_home() / "suites" / SUITE / name, out / name)
    print(f"\nreport    {(out / 'report.html').resolve().as_uri()}")
    return 0


def table() -> Iterator[str]:
    """The figures as a table: what was compared with the bare training here."""
    pairs = []
    for by in ("runtime", "target"):
        done = subprocess.run([*PODWRIGHT, "compare", SUITE, "--by", by, "--json"], stdout=subprocess.PIPE, check=False)
        pairs += json.loads(done.stdout)["pairs"]
    yield "| training | runs | median s | 95 % interval | ratio to bare here | verdict |"
    yield "| --- | --- | --- | --- | --- | --- |"
    yield f"| {_cells(pairs[0]['sides'][0])} | | |"
    for pair in pairs:
        ratio = "{:.3f} ({:.3f} to {:.3f})".format(pair["ratio"], *pair["interval"])
        yield f"| {_cells(pair['sides'][1])} | {ratio} | {pair['verdict']} |"


def _cells(side: dict[str, Any]) -> str:
    low, high = side["interval"]
    name = side["name"].partition("/")[2]
    return f"{name} | {len(side['samples'])} | {side['median']:.2f} | {low:.2f} to {high:.2f}"


def main() -> int:
    """Runs the demonstration."""
    parser = argparse.ArgumentParser(description="One training bare, in a container and on Slurm, proven.")
    parser.add_argument("--repeats", type=int, default=5, help="runs of each (default: %(default)s)")
    parser.add_argument("--samples", type=int, default=4000, help="length of the training (default: %(default)s)")
    parser.add_argument("--out", type=Path, default=ROOT / ".cache" / "prove", help="where the report goes")
    parser.add_argument("--table", type=Path, help="a file that gets the figures as a table")
    parser.add_argument("--lab", default=LAB, help="name of the cluster (default: %(default)s)")
    options, began = parser.parse_args(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="podwright-prove-") as name, cluster(options.lab):
        folder = Path(name)
        folder.chmod(0o755)  # the cluster's user reads it, too
        write(folder, options)
        code = measure(folder, options.out, options)
    print(f"took      {(time.monotonic() - began) / 60:.1f} minutes, at a load of {os.getloadavg()[0]:.1f}")
    return code


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
