"""What a run's time adds up to: goodput and the classes it falls into, and the lane of each attempt. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from podwright.runs import fields
from podwright.runs.goodput.classes import CLASSES, Stretch, milliseconds
from podwright.runs.goodput.interruptions import mean_time

GPU, NODE = "gpu_s", "node_s"
UNITS = {GPU: "GPU", NODE: "node"}
"""What a second is counted of: of each GPU, or of each node where a run has none."""


@dataclass(frozen=True)
class AttemptLane:
    """One attempt as it is drawn: its time from GO on, on one node, and how it ended."""

    number: int
    stretches: tuple[Stretch, ...]
    kept_until: int
    """What was productive after it is at risk, in a run that goes on."""
    closed_by: str


@dataclass(frozen=True)
class Goodput:
    """The time that a run was given, in whole milliseconds of its unit; its classes sum to all of it."""

    unit: str
    classes: Mapping[str, int]
    queue: int = 0
    """What it waited for, times what it wanted; no class, since nothing was allocated."""
    at_risk: int = 0
    """Of what is productive: steps that no checkpoint holds yet, in a run that goes on."""
    interruptions: int = 0
    running: int = 0
    """How long its attempts took."""
    lanes: tuple[AttemptLane, ...] = field(default=(), compare=False)

    @property
    def allocated(self) -> int:
        """Return all that was allocated."""
        return sum(self.classes.values())

    @property
    def share(self) -> float | None:
        """Return which share of what was allocated was productive."""
        return self._share_of(self.allocated)

    @property
    def ettr(self) -> float | None:
        """Return the same with the queue: effective training time ratio."""
        return self._share_of(self.allocated + self.queue)

    def _share_of(self, whole: int) -> float | None:
        return round(self.classes.get("productive", 0) / whole, 4) if whole else None

    @property
    def worst(self) -> str | None:
        """Return the class beside the productive one that took most."""
        others = [name for name in CLASSES[1:] if self.classes.get(name)]
        return max(others, key=lambda name: self.classes[name], default=None)

    def as_json(self) -> dict[str, Any]:
        """Return it as a record has it; seconds have three places and sum to the whole."""
        row: dict[str, Any] = {
            "share": self.share,
            "ettr": self.ettr,
            "unit": self.unit,
            "at_risk_s": self.at_risk / 1000,
            "queue_s": self.queue / 1000,
            "allocated_s": self.allocated / 1000,
            "classes": {name: self.classes.get(name, 0) / 1000 for name in CLASSES},
            "interruptions": self.interruptions,
            "running_s": self.running / 1000,
        }
        mean = mean_time(self.running / 1000, self.interruptions)
        row["mtti_s"] = None if mean is None else round(mean[0], 1)
        row["mtti_interval_s"] = None if mean is None else [round(end, 1) for end in mean[1]]
        return row


def from_json(row: object) -> Goodput | None:
    """Return what `as_json` wrote; None for anything else."""
    if not isinstance(row, Mapping) or row.get("unit") not in UNITS:
        return None
    told = fields.numbers(row.get("classes"))
    if told is None or not told.keys() <= set(CLASSES) or any(value < 0 for value in told.values()):
        return None
    classes = {name: milliseconds(value) for name, value in told.items()}
    queue, at_risk, running = (
        milliseconds(fields.number(row.get(name)) or 0.0) for name in ("queue_s", "at_risk_s", "running_s")
    )
    return Goodput(str(row["unit"]), classes, queue, at_risk, fields.node(row.get("interruptions")) or 0, running)


def sum_of(rows: Iterable[Goodput]) -> Goodput | None:
    """Return several runs as one; None where there is none, or they are counted by different units."""
    listed: Sequence[Goodput] = list(rows)
    if not listed or len({row.unit for row in listed}) > 1:
        return None
    classes: Counter[str] = Counter()
    for row in listed:
        classes.update(row.classes)
    return Goodput(
        listed[0].unit,
        classes,
        queue=sum(row.queue for row in listed),
        at_risk=sum(row.at_risk for row in listed),
        interruptions=sum(row.interruptions for row in listed),
        running=sum(row.running for row in listed),
    )
