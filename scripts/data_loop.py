"""Does choosing by confusion help? Frames chosen by what a model got wrong, against as many at random.

    python -m scripts.data_loop [--seeds 5] [--out benchmarks/results/data_loop.md]

For each seed scenes are drawn anew and split, no scene torn apart: a start, a pool, validation and test. A first model
is trained on the start; what it confuses on validation says which frames of the pool are chosen, by its predictions of
them. Two more models are trained from nothing on the start and the chosen frames, or as many of the pool at random, for
as many steps, and scored on test. The two weakest classes are those of the first model on validation. The rule of
`podwright compare` judges the pairs, and what comes out is written down whatever it is.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from podwright.analysis.comparison import MARGIN, PairComparison, compare_pairs
from scripts.data_demo import ROOT, Demo, Sizes

SIZES = Sizes(frames=360, scenes=24, epochs=6, again=48, train="--size 112x72 --width 16")
SPLIT = "start=0.2,pool=0.4,validation=0.2,test=0.2"
WEAKEST = 2
Scores = dict[str, float | None]


@dataclass(frozen=True)
class Outcome:
    """One seed: the weakest classes, and the scores on test of what was chosen and of what came by chance."""

    seed: int
    confused: tuple[str, str]
    weakest: tuple[str, ...]
    chosen: Scores
    control: Scores

    def of_weakest(self, scores: Scores) -> float:
        """Return the mean IoU of the weakest classes."""
        return sum(scores[name] or 0.0 for name in self.weakest) / len(self.weakest)


def mean_iou(scores: Scores) -> float:
    """Return the mean over the classes that test has."""
    there = [score for score in scores.values() if score is not None]
    return sum(there) / len(there)


def scores_of(demo: Demo, run: dict[str, Any]) -> Scores:
    """Return the IoU of each class."""
    scores: Scores = json.loads(demo.result(run, "iou.json"))
    return scores


def try_seed(demo: Demo) -> Outcome:
    """Go through the loop once."""
    demo.make_frames()
    demo.call("data", "scan", str(demo.frames), "--name", "street")
    demo.call("data", "stats", "street")
    demo.select("drive", "--split", SPLIT, "--representative")
    first = demo.train(frames="drive/start", validation="drive/validation", pool="drive/pool")
    hard = demo.select("hard", "--confusion", first["id"], "--size", str(SIZES.again))
    count = hard["splits"]["all"]["count"]
    pool = demo.call("data", "ls", "drive", "--split", "pool")["files"]
    scenes = sorted({row["path"].partition("/")[0] for row in pool})
    within = " or ".join(f"scene={scene}" for scene in scenes)
    demo.select("chance", "--where", f"({within}) and kind=camera", "--size", str(count))
    arms = {
        name: scores_of(demo, demo.train(frames="drive/start", more=name, validation="drive/test"))
        for name in ("hard", "chance")
    }
    before = scores_of(demo, first)
    there = [name for name, score in before.items() if score is not None and arms["chance"][name] is not None]
    weakest = sorted(there, key=lambda name: before[name] or 0.0)[:WEAKEST]
    first_class, second_class = hard["lineage"]["confusion"]["classes"]
    return Outcome(demo.seed, (first_class, second_class), tuple(weakest), arms["hard"], arms["chance"])


def summary(outcomes: Sequence[Outcome], load: Sequence[float]) -> str:
    """Return what came of it, as a page."""
    lines = [
        "# Choosing by confusion against chance",
        "",
        f"{datetime.now(UTC):%Y-%m-%d}, `python -m scripts.data_loop --seeds {len(outcomes)}`, load {load[0]:.1f}.",
        f"{SIZES.frames} made frames of {SIZES.scenes} scenes for each seed, split by scene ({SPLIT});",
        f"{SIZES.again} of the pool are added to the start; {SIZES.epochs} epochs, `{SIZES.train}`. IoU on test.",
        "",
        "| seed | confused most | weakest on validation | chosen | at random | all classes, chosen | at random |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for outcome in outcomes:
        names = " / ".join(outcome.confused), " / ".join(outcome.weakest)
        weakest = outcome.of_weakest(outcome.chosen), outcome.of_weakest(outcome.control)
        scores = *weakest, mean_iou(outcome.chosen), mean_iou(outcome.control)
        cells = [str(outcome.seed), *names, *(f"{score:.3f}" for score in scores)]
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", *sentences(outcomes)]
    return "\n".join(lines) + "\n"


def sentences(outcomes: Sequence[Outcome]) -> list[str]:
    """Return what the rule of `compare` says of the pairs: the two arms of a seed differ in what was chosen alone."""
    weakest = [(seed.of_weakest(seed.control), seed.of_weakest(seed.chosen)) for seed in outcomes]
    everything = [(mean_iou(seed.control), mean_iou(seed.chosen)) for seed in outcomes]
    judged = (("The two weakest classes", weakest), ("All classes", everything))
    return [sentence(what, pairs) for what, pairs in judged if len(pairs) > 1]


def sentence(what: str, pairs: Sequence[tuple[float, float]]) -> str:
    """Return the ratio of chosen to random with its interval, and the verdict."""
    if min(min(pair) for pair in pairs) <= 0:
        return f"{what}: a score of 0 has no ratio, so nothing is judged."
    row: PairComparison = compare_pairs(pairs)
    low, high = row.interval or (0.0, 0.0)
    text = f"{what}: {row.ratio:.3f} of the IoU at random, 95 % interval {low:.3f} to {high:.3f}: {row.verdict}"
    if row.needed is not None:
        text += f" at a margin of {MARGIN:.0%}; about {row.needed:,} seeds would decide"
    return f"{text}."


def main() -> int:
    """Try all seeds, and write the page after each."""
    options = argparse.ArgumentParser(description="Choosing by confusion against chance.")
    options.add_argument("--seeds", type=int, default=5)
    options.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "data_loop.md")
    asked = options.parse_args()
    load, outcomes = os.getloadavg(), list[Outcome]()
    for seed in range(1, asked.seeds + 1):
        with tempfile.TemporaryDirectory(prefix="podwright-loop-") as folder:
            outcomes.append(try_seed(Demo(Path(folder), SIZES, seed)))
        asked.out.write_text(summary(outcomes, load))
    print(asked.out.read_text(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
