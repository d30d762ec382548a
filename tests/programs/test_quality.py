"""The table of docs/programs.md: what each program reaches as it stands, and what must not reach it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from tests.paths import ROOT
from tests.programs.conftest import TORCHRUN, told
from tests.programs.mlperf import check

Load = Callable[[str, str], ModuleType]
Spawn = Callable[..., "subprocess.Popen[str]"]
LIMIT_S = 3600


@dataclass(frozen=True)
class Row:
    """A line of the table."""

    metric: str
    target: float
    reached: float


def rows() -> dict[str, Row]:
    """The table by program."""
    text = (ROOT / "docs" / "programs.md").read_text(encoding="utf-8")
    found = re.findall(r"^\| `([\w -]+)` \|.*\| `(\w+)` \| ([\d.]+) \| ([\d.]+) \|", text, re.M)
    return {name: Row(metric, float(target), float(reached)) for name, metric, target, reached in found}


ROWS = rows()
CHECKED = ("resnet", "transformer --model bert", "translation")
"""Those that MLPerf has a benchmark for."""
IN_CI = ("transformer --model bert", "translation")
RUNS = [pytest.param(name, marks=pytest.mark.slow if name in IN_CI else pytest.mark.nightly) for name in ROWS]


def test_the_table_is_whole() -> None:
    """A program without a target is none of its rows: it checks something else."""
    trained = {path.parent.name for path in (ROOT / "programs").glob("*/train.py")}
    assert {name.split()[0] for name in ROWS} == trained


@pytest.mark.timeout(LIMIT_S + 100)
@pytest.mark.parametrize("name", RUNS)
def test_it_reaches_its_target(name: str, spawn: Spawn, tmp_path: Path) -> None:
    row = ROWS[name]
    program, *arguments = name.split()
    launcher: tuple[str, ...] = ()
    if program == "segmentation":
        launcher = TORCHRUN
        made = spawn("segmentation/scenes.py", tmp_path / "frames", "--frames", 480, "--scenes", 4)
        made.communicate(timeout=LIMIT_S)
        assert made.returncode == 0
        arguments += ["--data", str(tmp_path / "frames")]
    process = spawn(f"{program}/train.py", *arguments, "--out", tmp_path / "out", launcher=launcher)
    text, _ = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, text
    best = max(told(text, row.metric).values())
    assert best >= row.target
    assert best == pytest.approx(row.reached, abs=0.05)
    if program == "segmentation":
        assert constant_iou(tmp_path / "out") < row.target / 2
    if name in CHECKED:
        valid, said = check(text, tmp_path)
        assert valid, said


def constant_iou(out: Path) -> float:
    """The mean IoU of who says the most frequent class of every pixel."""
    pixels = np.sum(json.loads((out / "confusion.json").read_text())["matrix"], axis=1)
    return float(pixels.max() / pixels.sum() / np.count_nonzero(pixels))


def test_an_untrained_segmentation_does_not_reach_it(load: Load, frames: Path) -> None:
    train = load("segmentation", "train")
    config = train.read_config(["--data", str(frames), "--device", "cpu"])
    task = train.Scenes(config, train.World(0, 1, 1, torch.device("cpu")))
    task.net.eval()
    assert task.score()["mean_iou"] < ROWS["segmentation"].target / 2


@dataclass(frozen=True)
class Baselines:
    """What is reached without learning."""

    untrained: float
    constant: float
    target: float


def task_of(load: Load, program: str, kind: str, *arguments: str) -> tuple[ModuleType, Any]:
    """A program's task as it is before its training."""
    train = load(program, "train")
    torch.manual_seed(0)
    config = train.read_settings(train.Config, "", [*arguments, "--device", "cpu"], {})
    task = getattr(train, kind)(config, train.World(0, 1, 1, torch.device("cpu")))
    task.net.eval()
    return train, task


def most_frequent(truth: torch.Tensor) -> float:
    """The share of the most frequent answer."""
    return float(truth.bincount().max()) / len(truth)


def baselines(load: Load, name: str) -> Baselines:
    """Of one program."""
    program, *arguments = name.split()
    train, task = task_of(load, program, KINDS[program], *arguments)
    return Baselines(task.score()[task.quality], CONSTANT[program](train, task), task.target)


def same_sentence(train: ModuleType, task: Any) -> float:
    """The best BLEU of one sentence for all, of a hundred."""
    right = [train.words_of(row) for row in task.held_right.tolist()]
    guesses = [train.words_of(row) for row in task.right[:100].tolist()]
    sums = [np.sum([train.counts(guess, row) for row in right], axis=0) for guess in guesses]
    return max(train.bleu(total.tolist()) for total in sums)


def same_boxes(train: ModuleType, task: Any) -> float:
    """The mean average precision of the same boxes in every picture: each as sure as it fits a shape of its kind."""
    match, defaults = sys.modules["boxes"].match, task.net.defaults
    pairs = [match(*row, defaults)[0] for row in zip(*task.truth[1:], strict=True)]
    answers = torch.stack(pairs)
    sure = torch.stack([(answers == kind + 1).double().mean(0) for kind in range(len(train.KINDS))], 1)
    sure = sure / sure.max()
    _, boxes, kinds = task.held_out
    counts = sum(train.counts_of(defaults, sure, *row) for row in zip(boxes, kinds, strict=True))
    each = [train.average_precision(counts[kind], (kinds == kind).sum()) for kind in range(len(train.KINDS))]
    return float(np.mean(each))


def same_shower(train: ModuleType, task: Any) -> float:
    """The likeness of who gives the mean shower of a kind every time."""
    pictures, kinds = task.truth
    means = torch.stack([pictures[kinds == kind].mean(0) for kind in range(len(train.KINDS))])
    return float(train.likenesses(task.held_out, means[task.held_kinds], task.held_kinds)["likeness"])


KINDS = {"resnet": "Digits", "transformer": "Text", "translation": "Pairs", "detection": "Shapes", "gan": "Showers"}
"""The task of each program."""
CONSTANT: dict[str, Callable[[ModuleType, Any], float]] = {
    "resnet": lambda train, task: most_frequent(task.held_truth),
    "transformer": lambda train, task: most_frequent(task.held_out),
    "translation": same_sentence,
    "detection": same_boxes,
    "gan": same_shower,
}
"""The best that can be said without looking."""


@pytest.mark.parametrize("name", [name for name in ROWS if name != "segmentation"])
def test_what_has_not_learnt_does_not_reach_it(name: str, load: Load) -> None:
    """An untrained network and the best constant guess are at most half as good as the target asks."""
    seen = baselines(load, name)
    assert seen.target == ROWS[name].target
    assert max(seen.untrained, seen.constant) < seen.target / 2, seen
