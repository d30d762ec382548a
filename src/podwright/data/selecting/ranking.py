"""Which samples would teach a model most: by what one run of it confused, or was least sure of.

A run may leave `results/samples.jsonl`, a line for each sample that it predicted:

    {"image": PATH BELOW THE DATASET'S ROOT, "uncertainty": 0.31, "confused": {"Car": {"Truck": 1200}}}

`confused` has pixels by true class and by the class that they were taken for. Where a run has no such file, samples
that hold both classes are taken for those that it would confuse.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from podwright.analysis.classes import most_mixed
from podwright.data.selecting.pool import Array, Pool
from podwright.files.untrusted import read_untrusted
from podwright.reading.run_data import read_confusion
from podwright.spec.problems import refuse

SAMPLES = "results/samples.jsonl"
_LARGEST_BYTES = 1 << 30


@dataclass(frozen=True)
class Ranking:
    """The samples of a pool that count, best first, and what they were ranked by."""

    indices: Array
    lineage: dict[str, Any]


def by_confusion(pool: Pool, run: str, folder: Path, classes: str | None) -> Ranking:
    """Rank samples by how many pixels of two classes the run took for each other, or could have."""
    first, second = _two_classes(pool, classes) if classes else _most_mixed(pool, run, folder)
    lineage: dict[str, Any] = {"run": run, "classes": [first, second]}
    predicted = _predicted(folder)
    if predicted:
        scores = [_confused(predicted.get(sample.image.path), first, second) for sample in pool.samples]
        return _ranked(np.array(scores), {**lineage, "ranked_by": "predictions of the run"})
    both = pool.pixels[:, [pool.classes.index(first), pool.classes.index(second)]]
    return _ranked(both.min(axis=1), {**lineage, "ranked_by": "frames that hold both classes"})


def by_uncertainty(pool: Pool, run: str, folder: Path) -> Ranking:
    """Rank samples by how unsure the run's model was of them; refuse a run that does not tell."""
    predicted = _predicted(folder)
    if not predicted:
        hint = f"its program must write {SAMPLES}; --confusion does without"
        raise refuse(f"{run} has no predictions of single samples", hint=hint, field="--uncertainty")
    scores = [_number((predicted.get(sample.image.path) or {}).get("uncertainty")) for sample in pool.samples]
    return _ranked(np.array(scores), {"run": run, "ranked_by": "uncertainty that the run told"})


def _ranked(scores: Array, lineage: dict[str, Any]) -> Ranking:
    order = np.argsort(-scores, kind="stable")
    return Ranking(order[scores[order] > 0], lineage)


def _two_classes(pool: Pool, classes: str) -> tuple[str, str]:
    names = [name.strip() for name in classes.split(",")]
    if len(names) != 2 or names[0] == names[1]:
        raise refuse("needs two classes", hint="write it like `--classes Car,Truck`", field="--classes")
    for name in names:
        if name not in pool.classes:
            raise refuse(
                f'there is no class "{name}"', hint=f"classes are {', '.join(pool.classes)}", field="--classes"
            )
    return names[0], names[1]


def _most_mixed(pool: Pool, run: str, folder: Path) -> tuple[str, str]:
    """Return the two classes that the run confused most, of those that the dataset has."""
    unread: list[str] = []
    confusion = read_confusion(folder, unread)
    if confusion is None:
        reason = f": {unread[0]}" if unread else ""
        hint = "name the classes yourself: --classes Car,Truck"
        raise refuse(f"{run} has no confusion matrix in its results{reason}", hint=hint, field="--confusion")
    for mixed in most_mixed(confusion):
        if mixed.truth in pool.classes and mixed.taken_for in pool.classes:
            return mixed.truth, mixed.taken_for
    raise refuse(f"{run} confused no two classes that this dataset has", field="--confusion")


def _predicted(folder: Path) -> dict[str, dict[str, Any]]:
    try:
        data = read_untrusted(folder, SAMPLES, _LARGEST_BYTES)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise refuse(f"cannot be read: {error.strerror}", file=str(folder / SAMPLES)) from None
    return {row["image"]: row for row in _rows(data)}


def _rows(data: bytes) -> Iterator[dict[str, Any]]:
    """Yield the lines that are what they should be: a program wrote them, which may have been killed."""
    for line in data.splitlines():
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict) and isinstance(row.get("image"), str):
            yield row


def _confused(row: dict[str, Any] | None, first: str, second: str) -> float:
    confused = (row or {}).get("confused")
    if not isinstance(confused, dict):
        return 0.0
    total = 0.0
    for truth, taken_for in ((first, second), (second, first)):
        of_truth = confused.get(truth)
        if isinstance(of_truth, dict):
            total += _number(of_truth.get(taken_for))
    return total


def _number(value: object) -> float:
    if isinstance(value, int | float) and math.isfinite(value):
        return float(value)
    return 0.0
