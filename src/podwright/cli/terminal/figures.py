"""Figures as a terminal shows them: the words of `theme` with its own dash, bars and small curves."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from podwright.pilot.protocol import OWN_TIME
from podwright.theme import words

NONE = "-"
"""What stands for "no value" in a terminal; pages have an en dash."""
# What tells how far a run is, and not how good.
PROGRESS_NAMES = frozenset({"step", "steps", "epoch", "epochs", "mllog", "time_ms"})
_BLOCKS = "▁▂▃▄▅▆▇█"
_KINDS = (
    re.compile(r"loss|perplexity|ppl", re.I),
    re.compile(r"acc|iou|dice|f1|auc|map\b|bleu|rouge|wer|fid|psnr|score|reward|error|precision|recall|top\d", re.I),
    re.compile(r"per_s(ec|econd)?$|/s$|throughput|t?flops|mfu", re.I),
    # What a program says of itself comes last: its settings, and where its time went.
    re.compile(r"^(?!lr$|learning_rate$|grad|.*_(s|seconds|bytes|lr|decay)$)", re.I),
)
"""What a person asks of a run, in that order: loss, quality, speed, and then all else."""


def value(item: object) -> str:
    """Return a value that a program gave, numbers with three significant digits."""
    return words.value(item)


def results(values: Mapping[str, object], limit: int | None = None, goal: str | None = None) -> str:
    """Return `name value` pairs, what matters first, without those that only tell how far the run is."""
    names = [name for name in values if name not in PROGRESS_NAMES and not name.startswith(OWN_TIME)]
    names.sort(key=lambda name: (name != goal, _weight(name)))
    return "  ".join(f"{name} {value(values[name])}" for name in names[:limit])


def _weight(name: str) -> int:
    """Return how early a result is named; those of one kind stay in their order."""
    return next((place for place, kind in enumerate(_KINDS) if kind.search(name)), len(_KINDS))


def duration(seconds: float | None) -> str:
    """Return `2m 11s`, or `-` for what did not happen."""
    return words.duration(seconds, NONE)


def size(count: float | None) -> str:
    """Return `3.1 GiB`, or `-` for what was not read."""
    return words.size(count, NONE)


def count(number: int, noun: str, plural: str = "") -> str:
    """Return `1 node`, `2 nodes`; a terminal's columns have no commas in them."""
    return words.count(number, noun, plural, grouped=False)


def seconds_between(start_s: float | None, end_s: float | None, now_s: float | None = None) -> float | None:
    """Return the seconds from one time to another, or to now; None when it has not begun."""
    if start_s is None:
        return None
    return max(0.0, (end_s or now_s or time.time()) - start_s)


def how_far(values: Mapping[str, Any]) -> str:
    """Return `epoch 3/6` or `step 120/600`, as much of it as the program tells."""
    for name, total in (("epoch", "epochs"), ("step", "steps")):
        if values.get(name) is not None:
            end = f"/{value(values[total])}" if values.get(total) is not None else ""
            return f"{name} {value(values[name])}{end}"
    return ""


def reached(progress: Mapping[str, Any] | None) -> str:
    """Return how far a training is: in what its share and its time left are of, so that one line tells of one thing."""
    if not progress:
        return ""
    if progress["of"] == "run":
        return how_far(progress)
    return f"epoch {value(progress['epoch'])}, {_step(progress)}" if progress["epoch"] is not None else _step(progress)


def _step(progress: Mapping[str, Any]) -> str:
    return how_far({name: progress[name] for name in ("step", "steps")})


def rate(progress: Mapping[str, Any] | None) -> str:
    """Return `4.2/s`, or `12 s/step` of one that is slow; nothing before it is known."""
    per_s = progress["rate"] if progress else None
    if not progress or not per_s:
        return ""
    noun = str(progress["rate_unit"]).removesuffix("s/s")
    if per_s >= 1:
        return f"{value(per_s)}/s" if noun == "step" else f"{value(per_s)} {noun}s/s"
    return f"{duration(1 / per_s)}/{noun}"


def time_left(progress: Mapping[str, Any] | None) -> str:
    """Return `ETA 3m 20s`, with what it is of where that is not the run; nothing where nobody can say."""
    if not progress or progress["eta_s"] is None:
        return ""
    of = "" if progress["of"] == "run" else f" of this {progress['of']}"
    return f"ETA {duration(float(round(progress['eta_s'])))}{of}"


def percent(number: float | None) -> str:
    """Return a whole percentage, four characters wide."""
    if number is None:
        return f"{NONE:>4}"
    return f"{round(number):>3}%"


def curve(values: Iterable[float], width: int, top: float = 100.0) -> str:
    """Draw the latest values as a row of blocks, `width` wide, oldest left; blank where there is nothing yet."""
    latest = list(values)[-width:]
    levels = [int(value / top * len(_BLOCKS)) for value in latest]
    blocks = [_BLOCKS[max(0, min(level, len(_BLOCKS) - 1))] for level in levels]
    return "".join(blocks).rjust(width)


def bar(share: float, width: int) -> tuple[str, str]:
    """Return the done and the open part of a progress bar; told apart by shape, so that no colour is needed."""
    filled = round(min(1.0, max(0.0, share)) * width)
    return "━" * filled, "╌" * (width - filled)


def spread(values: Sequence[float], count: int) -> list[float]:
    """Return at most `count` of the values from least to greatest, evenly picked: the shape of a whole cluster."""
    ordered = sorted(values)
    if len(ordered) <= count:
        return ordered
    return [ordered[round(index * (len(ordered) - 1) / (count - 1))] for index in range(count)]
