"""How all-reduce and a training scale over 1, 2 and 4 nodes of a Slurm cluster on this machine, beside the prediction.

    python benchmarks/lab_scaling.py [--repeats 4] [--out benchmarks/results] [--frames 96] [--only allreduce]

All nodes share the cores of this machine, so that more of them cannot be faster: what is shown is that curve, interval
and prediction come out of real runs of real nodes, and what sharing costs. A lab of four nodes is started, which needs
root. All-reduce is weak scaling, the same messages for each of two ranks a node, and its time is that of the messages.
The training is strong, the same frames for all, and its time is that of an epoch.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from gpu_pictures import COLOURS, svg
from measure import ROOT, machine
from podwright.lab.slurm import lab as slurm
from podwright.launch import pods
from podwright.runs import Home

PODWRIGHT = (sys.executable, "-c", "import sys; from podwright.cli.main import main; sys.exit(main())")
PROGRAMS = ROOT / "programs"
ALLREDUCE = """\
name: allreduce
code: {programs}
command: {python} allreduce/allreduce.py --device cpu --largest-mib 4 --rounds 40
ranks_per_node: 2
launcher: ranks
resources: {{cpus: 1}}
env: {{OMP_NUM_THREADS: 1}}
"""
TRAINING = """\
name: segmentation
code: {programs}
command: {python} segmentation/train.py --device cpu --data {{data.frames}} --epochs 1 --size 96x64 --width 8
launcher: ranks
resources: {{cpus: 1}}
data: {{frames: {frames}}}
env: {{OMP_NUM_THREADS: 1}}
"""
KINDS = {
    "allreduce": (ALLREDUCE, ["--weak", "--metric", "allreduce_s"]),
    "segmentation": (TRAINING, ["--metric", "epoch_s"]),
}


@contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """A Slurm cluster of four nodes that is known in a home of its own."""
    lab = slurm.up(folder / "lab", nodes=4)
    try:
        os.environ["PODWRIGHT_HOME"] = str(folder / "home")
        pods.add(Home.open(), lab.pod_file)
        yield lab.name
    finally:
        lab.down()


def make_frames(folder: Path, count: int) -> None:
    """Draw what the training sees."""
    command = [sys.executable, str(PROGRAMS / "segmentation" / "scenes.py"), str(folder), "--frames", str(count)]
    subprocess.run([*command, "--scenes", "3", "--size", "192x128"], check=True, stdout=subprocess.DEVNULL)


def curve_of(name: str, folder: Path, target: str, repeats: int) -> dict[str, Any]:
    """The document of `bench scale`."""
    text, more = KINDS[name]
    path = folder / f"{name}.yaml"
    path.write_text(text.format(programs=PROGRAMS, python=sys.executable, frames=folder / "frames"))
    command = ["bench", "scale", str(path), "--sizes", "1,2,4", "--on", target, "--repeats", str(repeats), *more]
    done = subprocess.run([*PODWRIGHT, *command, "--json"], stdout=subprocess.PIPE, text=True, check=True)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def lines_of(curves: list[dict[str, Any]]) -> Iterator[str]:
    """The page that is kept."""
    yield "# Scaling on a lab"
    yield ""
    yield "Made by `benchmarks/lab_scaling.py`; all nodes share the cores of one machine. Seconds of all messages of"
    yield "`allreduce`, two ranks a node, and of an epoch of `segmentation`, one rank a node."
    for curve in curves:
        facts = curve["machine"]
        yield ""
        yield f"## {curve['workload']}, {curve['kind']}"
        yield ""
        load = facts["load_at_start"][0]
        yield f"{facts['date']}, {facts['cores']} cores of {facts['cpu']}, load {load:.1f} at the start."
        yield ""
        yield "| nodes | runs | median s | 95 % interval | efficiency | its interval | fitted s | predicted s |"
        yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
        yield from map(row_of, curve["sizes"])


def row_of(size: dict[str, Any]) -> str:
    """One size of a curve."""
    predicted = size["predicted_s"]
    cells = [
        str(size["size"]),
        str(size["n"]),
        f"{size['median_s']:.2f}",
        between(size["interval"]),
        f"{size['efficiency']:.2f}",
        between(size["efficiency_interval"]),
        "-" if size["fitted_s"] is None else f"{size['fitted_s']:.2f}",
        f"{predicted['expected']:.2f} ({predicted['low']:.2f} to {predicted['high']:.2f})",
    ]
    return f"| {' | '.join(cells)} |"


def between(interval: list[float] | None) -> str:
    """An interval, or a dash."""
    if interval is None:
        return "-"
    return f"{interval[0]:.2f} to {interval[1]:.2f}"


def picture_of(curves: list[dict[str, Any]]) -> str:
    """Efficiency over nodes, with its interval; what was predicted from one node is a ring."""
    parts = []
    for curve, colour, left in zip(curves, COLOURS, (70, 430), strict=False):
        parts.append(f'<text x="{left}" y="60" style="fill:{colour}">{curve["workload"]}, {curve["kind"]}</text>')
        for level in (0.0, 0.5, 1.0):
            parts.append(f'<path d="M{left} {height_of(level)}h280" stroke="#d5dce4"/>')
            parts.append(f'<text class="small" x="{left - 40}" y="{height_of(level) + 4}">{level:.0%}</text>')
        places = [(left + 20 + 240 * math.log2(size["size"]) / 2, size) for size in curve["sizes"]]
        corners = " ".join(f"{x:.1f},{height_of(size['efficiency'])}" for x, size in places)
        parts.append(f'<polyline points="{corners}" fill="none" stroke="{colour}" stroke-opacity="0.5"/>')
        for x, size in places:
            parts += marks_of(size, curve, x, colour)
    return svg(330, "Efficiency over nodes of a lab on one machine; rings: predicted from one node", parts)


def marks_of(size: dict[str, Any], curve: dict[str, Any], x: float, colour: str) -> Iterator[str]:
    """One size of a curve: its point, its interval, the prediction."""
    gain = 1.0 if curve["kind"] == "weak" else 1.0 / size["size"]
    predicted = gain * curve["sizes"][0]["median_s"] / size["predicted_s"]["expected"]
    low, high = size["efficiency_interval"] or (size["efficiency"], size["efficiency"])
    yield f'<path d="M{x:.1f} {height_of(low)}V{height_of(high)}" stroke="{colour}" stroke-width="2"/>'
    yield f'<circle cx="{x:.1f}" cy="{height_of(size["efficiency"])}" r="4" fill="{colour}"/>'
    yield f'<circle cx="{x:.1f}" cy="{height_of(predicted)}" r="7" fill="none" stroke="{colour}"/>'
    yield f'<text class="small" x="{x - 4:.1f}" y="310">{size["size"]}</text>'


def height_of(efficiency: float) -> float:
    """Where an efficiency lies on the picture."""
    return round(290 - 200 * min(efficiency, 1.1), 1)


def measure(names: list[str], repeats: int, frames: int) -> dict[str, Any]:
    """The curves of these workloads, each with the machine as it was."""
    facts = machine()
    with tempfile.TemporaryDirectory(prefix="pwscale-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        make_frames(folder / "frames", frames)
        with cluster(folder) as target:
            return {kind: {"machine": facts, **curve_of(kind, folder, target, repeats)} for kind in names}


def main() -> int:
    """Measure, and keep raw figures, page and picture; a workload that is not measured keeps what it has."""
    parser = argparse.ArgumentParser(description="How all-reduce and a training scale over nodes of a lab.")
    parser.add_argument("--repeats", type=int, default=4, help="runs of each size (default: %(default)s)")
    parser.add_argument("--frames", type=int, default=96, help="frames to draw (default: %(default)s)")
    parser.add_argument("--only", choices=KINDS, help="the one workload to measure (default: all)")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    raw = options.out / "lab_scaling.json"
    known = {curve["workload"]: curve for curve in json.loads(raw.read_text())["curves"]} if raw.exists() else {}
    known |= measure([options.only] if options.only else list(KINDS), options.repeats, options.frames)
    curves = [known[name] for name in KINDS if name in known]
    raw.write_text(json.dumps({"benchmark": "lab_scaling", "curves": curves}, indent=1) + "\n", encoding="utf-8")
    (options.out / "lab_scaling.md").write_text("\n".join(lines_of(curves)) + "\n", encoding="utf-8")
    (options.out / "lab_scaling.svg").write_text(picture_of(curves), encoding="utf-8")
    print((options.out / "lab_scaling.md").read_text(encoding="utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
