"""What a report is made of, as plain data, so that a page can be made without a run."""

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from podwright.analysis.profile import StepsProfile
from podwright.analysis.reported import Told
from podwright.runs import FINAL
from podwright.runs.events import Event

Kind = TypeVar("Kind", bound=Event)


@dataclass(frozen=True)
class Track:
    """One metric of one node over time."""

    t: "array[float]" = field(default_factory=lambda: array("d"))
    v: "array[float]" = field(default_factory=lambda: array("d"))


@dataclass(frozen=True)
class Confusion:
    """How often pixels of one class were taken for another; rows are the truth."""

    classes: tuple[str, ...]
    matrix: tuple[tuple[int, ...], ...]
    colors: Mapping[str, str]


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
class ReportData:
    """Everything one run's page shows; `record` has the keys of `podwright show --json`, `asked` those of run.json."""

    record: Mapping[str, Any]
    asked: Mapping[str, Any]
    read_at: float
    events: tuple[Event, ...] = ()
    readings: Mapping[tuple[int, str], Track] = field(default_factory=dict)
    told: Told = field(default_factory=Told)
    confusion: Confusion | None = None
    iou: Mapping[str, float | None] = field(default_factory=dict)
    examples: tuple[Example, ...] = ()
    profile: StepsProfile | None = None
    tails: tuple[LastLines, ...] = ()
    files: tuple[TextFile, ...] = ()
    workload_in_code: str = ""
    unread: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """Return the run's state, `pending` when the record does not say."""
        return str(self.record.get("state") or "pending")

    @property
    def final(self) -> bool:
        """Return whether nothing more will happen to this run."""
        return self.state in FINAL

    @property
    def workload(self) -> Mapping[str, Any]:
        """Return the workload that was asked for, empty where it is not known."""
        workload = self.asked.get("workload")
        return workload if isinstance(workload, Mapping) else {}

    def mapping(self, name: str) -> Mapping[str, Any]:
        """Return a mapping of the record, empty where it has none: other versions may have written something else."""
        value = self.record.get(name)
        return value if isinstance(value, Mapping) else {}

    def of(self, *kinds: type[Kind]) -> list[Kind]:
        """Return the events of these kinds, in the order of time."""
        return [event for event in self.events if isinstance(event, kinds)]


def in_order(events: Iterable[Event]) -> tuple[Event, ...]:
    """Return events of several writers in the order of time."""
    return tuple(sorted(events, key=lambda event: (event.time, event.sequence)))
