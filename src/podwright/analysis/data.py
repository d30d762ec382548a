"""What a report is made of, as plain data, so that a page can be made without a run. Pure."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from podwright.analysis.profile import StepsProfile
from podwright.analysis.reported import CurvePoint, Told
from podwright.analysis.straggler import Straggler
from podwright.pilot.protocol import goal_reached
from podwright.runs import Asked, Record
from podwright.runs.events import Event
from podwright.runs.goodput import Goodput
from podwright.theme import words

Kind = TypeVar("Kind", bound=Event)


@dataclass(frozen=True)
class Track:
    """One metric of one node over time."""

    t: array[float] = field(default_factory=lambda: array("d"))
    v: array[float] = field(default_factory=lambda: array("d"))


@dataclass(frozen=True)
class Confusion:
    """How often pixels of one class were taken for another; rows are the truth."""

    classes: tuple[str, ...]
    matrix: tuple[tuple[int, ...], ...]
    colors: Mapping[str, str]

    def counts(self, index: int) -> tuple[int, int, int]:
        """Return how many pixels of a class were rightly named, were there, and were predicted."""
        return self.matrix[index][index], sum(self.matrix[index]), sum(row[index] for row in self.matrix)


@dataclass(frozen=True)
class Example:
    """One frame as the model saw it; the pictures are data: addresses, empty where a picture is missing."""

    title: str
    image: str
    truth: str
    prediction: str
    mean_iou: float | None = None
    accuracy: float | None = None


@dataclass(frozen=True)
class LastLines:
    """The last lines of one rank, or of the launcher when it is None, each with its stream: `o` or `e`."""

    rank: int | None
    node: int
    lines: tuple[tuple[str, str], ...]
    failed: bool = False

    @property
    def name(self) -> str:
        """Return whose lines they are."""
        if self.rank is None:
            return "launcher"
        return f"rank {self.rank}"


@dataclass(frozen=True)
class TextFile:
    """A file of the run that is shown whole."""

    name: str
    text: str


@dataclass(frozen=True)
class QualityGoal:
    """The quality that was asked for."""

    metric: str
    bound: float
    at_least: bool

    def reached_by(self, value: float) -> bool:
        """Return whether a value is good enough."""
        return goal_reached({"at_least" if self.at_least else "at_most": self.bound}, value)

    def is_better(self, value: float, other: float) -> bool:
        """Return whether a value is closer to what was asked for, or further beyond it, than another."""
        return value > other if self.at_least else value < other

    def best_of(self, points: Sequence[CurvePoint]) -> CurvePoint:
        """Return the best of some points, the earliest of equal ones."""
        return (max if self.at_least else min)(points, key=lambda point: point.value)

    def show(self, value: float | None) -> str:
        """Return a value as briefly as the bound, with more figures where it would else read as the bound."""
        text = words.score(value)
        if value != self.bound and text == words.score(self.bound):
            return words.number(value, 4)
        return text

    @property
    def text(self) -> str:
        """Return `at least 0.65`."""
        side = "least" if self.at_least else "most"
        return f"at {side} {words.score(self.bound)}"


@dataclass(frozen=True)
class ReportData:
    """Everything one run's page shows."""

    record: Record
    asked: Asked
    read_at: float
    events: tuple[Event, ...] = ()
    readings: Mapping[tuple[int, str], Track] = field(default_factory=dict)
    told: Told = field(default_factory=Told)
    confusion: Confusion | None = None
    iou: Mapping[str, float | None] = field(default_factory=dict)
    examples: tuple[Example, ...] = ()
    profile: StepsProfile | None = None
    goodput: Goodput | None = None
    straggler: Straggler | None = None
    tails: tuple[LastLines, ...] = ()
    files: tuple[TextFile, ...] = ()
    workload_in_code: str = ""
    unread: tuple[str, ...] = ()

    @property
    def matrix(self) -> Mapping[str, Any]:
        """Return what was varied, of a point."""
        return self.record.matrix or {}

    @property
    def goal(self) -> QualityGoal | None:
        """Return the quality that was asked for, if there was one."""
        goal = self.record.goal or self.asked.goal or {}
        for name in ("at_least", "at_most"):
            if goal.get(name) is not None:
                return QualityGoal(goal["metric"], float(goal[name]), name == "at_least")
        return None

    def of(self, *kinds: type[Kind]) -> list[Kind]:
        """Return the events of these kinds, in the order of time."""
        return [event for event in self.events if isinstance(event, kinds)]


def in_order(events: Iterable[Event]) -> tuple[Event, ...]:
    """Return events of several writers in the order of time."""
    return tuple(sorted(events, key=lambda event: (event.time, event.sequence)))
