"""Figures that a run has one of each: how each is read and shown. Pure."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from podwright.analysis.ranks import Story
from podwright.analysis.statistics import as_number
from podwright.theme import words

Read = Callable[[Story], float | None]


@dataclass(frozen=True)
class RunFigure:
    """What it is called, how it is read and shown; what is counted differs by whole numbers.

    `less_is_better` is None where nobody said what is good.
    """

    name: str
    read: Read
    show: Callable[[float | None], str]
    counted: bool = False
    less_is_better: bool | None = None


_LESS = frozenset(["cer", "error", "latency", "loss", "mae", "mse", "nll", "perplexity", "ppl", "rmse", "wer"])
_MORE = frozenset(["acc", "accuracy", "auc", "bleu", "f1", "iou", "precision", "psnr", "recall", "ssim"])
_FAST = frozenset(["goodput", "mfu", "tflops", "throughput"])
"""Parts of names that leave no doubt."""
_RATE = re.compile(r".*(_per_s|_per_second|_per_minute|_per_hour|_per_gpu_hour)")
_TIME = re.compile(r".*_(s|ms|us|seconds|minutes|hours)")


def less_is_better(name: str) -> bool | None:
    """Return what the name of a value says about it: a loss and a time are better small, an accuracy and a
    rate large, of others None."""
    if _RATE.fullmatch(name):
        return False
    if _TIME.fullmatch(name):
        return True
    parts = set(re.split(r"[^a-z0-9]+", name.lower()))
    if parts & _LESS:
        return True
    return False if parts & (_MORE | _FAST) else None


def field(name: str) -> Read:
    """Return the reader of a figure of the record itself."""
    return lambda story: as_number(getattr(story.data.record, name))


TIME_TO_TRAIN = RunFigure("time to train", field("time_to_train_s"), words.duration, less_is_better=True)
DURATION = RunFigure("duration", field("duration_s"), words.duration, less_is_better=True)


def result(name: str) -> Read:
    """Return the reader of a value that the program told, as it was last."""
    return lambda story: as_number(story.data.record.results.get(name))


def four(value: float | None) -> str:
    """Return a number with four digits that count."""
    return words.number(value, 4)


def cost_figure(stories: Sequence[Story]) -> RunFigure:
    """Return the figure of what each run cost, named with the currency."""
    currencies = {str(story.data.record.cost.get("currency")) for story in stories if story.data.record.cost}
    name = f"cost, {' or '.join(sorted(currencies))}".removesuffix(", ")
    return RunFigure(name, amount, words.number, less_is_better=True)


def amount(story: Story) -> float | None:
    """Return what the run cost; None where that is not known."""
    return as_number((story.data.record.cost or {}).get("amount"))
