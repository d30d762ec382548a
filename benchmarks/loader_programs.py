"""Whether the loader changed what our programs learn: as they were before it, and as they are, with the same seeds.

    python benchmarks/loader_programs.py resnet|segmentation [--seeds 5] [--out benchmarks/results/loader_PROGRAM.md]

Two arms are the programs of the last commit before the loader was theirs, and those of this tree. Both train for a
fixed number of epochs; the runs of a seed follow each other, to and fro (A B B A), so that what else the machine does
hits both. The rule of `podwright compare` judges the pairs: the score at the end, how long the run took, and how long
it had a processor, which other work on the machine hardly changes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from podwright.analysis.comparison import MARGIN, compare_pairs

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
BEFORE = "f7f436ce^"
"""The last commit in which the programs dealt out their samples themselves."""
ARMS = ("before", "after")


@dataclass(frozen=True)
class Program:
    """One program: its score, and the options with which it is small."""

    name: str
    score: str
    command: str


_ALL = (
    Program("resnet", "accuracy", "python resnet/train.py --samples 2000 --epochs 3 --target 2"),
    Program("segmentation", "mean_iou", "python segmentation/train.py --data STREET --epochs 5 --size 64x40 --width 8"),
)
PROGRAMS = {program.name: program for program in _ALL}


@dataclass(frozen=True)
class Training:
    """One run: its score at the end, how long it took, and how long it had a processor."""

    score: float
    duration_s: float
    busy_s: float


@dataclass(frozen=True)
class Pair:
    """The two runs of a seed."""

    seed: int
    before: Training
    after: Training


JUDGED = {"Duration": "duration_s", "Processor time": "busy_s"}
"""What is judged beside the score, by its name in a `Training`."""


class Programs:
    """Runs both arms of a program in a home of their own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env = {**os.environ, "PODWRIGHT_HOME": str(folder / "home"), "OMP_NUM_THREADS": "1"}
        (folder / "before").mkdir()
        archive = subprocess.run(["git", "archive", BEFORE, "programs"], cwd=ROOT, stdout=subprocess.PIPE, check=True)
        subprocess.run(["tar", "x", "-C", str(folder / "before")], input=archive.stdout, check=True)
        self.code = {"before": folder / "before" / "programs", "after": ROOT / "programs"}
        street = [sys.executable, "programs/segmentation/scenes.py", str(folder / "street"), "--frames", "144"]
        subprocess.run([*street, "--scenes", "12", "--cameras", "front_center"], cwd=ROOT, check=True)

    def run(self, program: Program, arm: str, seed: int) -> Training:
        """Train once."""
        times = self.folder / "times"
        train = f"{program.command.replace('STREET', str(self.folder / 'street'))} --seed {seed}"
        command = f"sh -c '{train} && times > {times}'"
        values = {"name": program.name, "code": str(self.code[arm]), "command": command, "resources": {"cpus": 1}}
        file = self.folder / f"{program.name}-{arm}.yaml"
        file.write_text(json.dumps(values))
        done = subprocess.run(
            [str(BIN / "podwright"), "run", str(file), "--json"], env=self.env, stdout=subprocess.PIPE, check=True
        )
        record: dict[str, Any] = json.loads(done.stdout)
        return Training(float(record["results"][program.score]), float(record["duration_s"]), children_s(times))

    def pair(self, program: Program, seed: int) -> Pair:
        """Run both arms with a seed; every second seed begins with the other one."""
        order = ARMS if seed % 2 else ARMS[::-1]
        told = {arm: self.run(program, arm, seed) for arm in order}
        return Pair(seed, told["before"], told["after"])


def children_s(times: Path) -> float:
    """Return the seconds of a processor that the children of a shell took, by what its `times` wrote."""
    of_children = times.read_text().splitlines()[1]
    parts = [part.rstrip("s").split("m") for part in of_children.split()]
    return sum(60 * float(minutes) + float(seconds) for minutes, seconds in parts)


def verdict(what: str, pairs: Sequence[tuple[float, float]]) -> str:
    """Return what the rule of `compare` says of pairs."""
    row = compare_pairs(pairs)
    low, high = row.interval or (0.0, 0.0)
    text = f"{what}: {row.ratio:.4f} of before, 95 % interval {low:.4f} to {high:.4f}: **{row.verdict}**"
    return f"{text} at a margin of {MARGIN:.0%}."


def page(program: Program, pairs: Sequence[Pair], load: Sequence[float]) -> str:
    """Return what came of it, as a page."""
    lines = [
        f"# {program.name} before and after the loader",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}, `python benchmarks/loader_programs.py {program.name} --seeds {len(pairs)}`,",
        f"one rank, load {load[0]:.1f} on two cores at the start. Before: commit `{BEFORE}`. The loader deals samples",
        "out in another order than before, so runs of one seed are not equal bit by bit.",
        "",
        f"`{program.command}`",
        "",
        f"| seed | {program.score} before | after | seconds before | after | of a processor before | after |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for pair in pairs:
        cells = []
        for name, digits in (("score", 4), ("duration_s", 1), ("busy_s", 1)):
            cells += [f"{getattr(run, name):.{digits}f}" for run in (pair.before, pair.after)]
        lines.append(f"| {pair.seed} | {' | '.join(cells)} |")
    if len(pairs) > 1:
        for what, name in {program.score: "score", **JUDGED}.items():
            lines += ["", verdict(what, [(getattr(p.before, name), getattr(p.after, name)) for p in pairs])]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run all pairs of a program, and write the page after each."""
    options = argparse.ArgumentParser(description="A program of ours before and after the loader.")
    options.add_argument("program", choices=sorted(PROGRAMS))
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--out", type=Path, help="where the page goes")
    asked = options.parse_args()
    out = asked.out or ROOT / "benchmarks" / "results" / f"loader_{asked.program}.md"
    load, program, pairs = os.getloadavg(), PROGRAMS[asked.program], list[Pair]()
    with tempfile.TemporaryDirectory(prefix="podwright-loader-") as folder:
        programs = Programs(Path(folder))
        for seed in range(1, asked.seeds + 1):
            pairs.append(programs.pair(program, seed))
            out.write_text(page(program, pairs, load))
    print(out.read_text(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
