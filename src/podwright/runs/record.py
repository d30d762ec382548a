"""The record of a run: what was asked, and what its events make of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from podwright.runs import fields
from podwright.runs.goodput.account import from_json, sum_of
from podwright.runs.points import point_id
from podwright.runs.states import FINAL, STATES, summary
from podwright.runs.typed import goal_of, read_fields, texts

INNER = frozenset({"goal", "goal_value", "epoch", "stopped_in", "silent_since", "silent_why"})
"""Fields of a record that `--json` does not have."""


TIMES = ("created_at", "started_at", "ended_at")
MAX_POINTS = 100_000


@dataclass(frozen=True)
class Asked:
    """run.json: written once, before anything starts."""

    id: str
    name: str
    target: str
    engine: str
    created_at: float
    nodes: int
    ranks_per_node: int
    workload: dict[str, Any]
    code: dict[str, Any] | None = None
    image: dict[str, Any] | None = None
    """Of a run in a container: its image's `name`, and `digest` where it was known before the start."""
    inputs: dict[str, Any] | None = None
    """Of inputs that are selections: `selection`, `split` and `digest`, by the name of the input."""
    verified: dict[str, Any] | None = None
    """How their files were compared: `how` (true of all), `files`, and how many by `size`, `stat` and `sha256`."""
    parent: str | None = None
    matrix: dict[str, Any] | None = None
    index: int | None = None
    points: int = 0
    after: str | None = None
    command_line: list[str] = field(default_factory=list)
    version: str = ""
    user: str | None = None
    team: str | None = None
    """Who started it, and their team on its pod."""
    spares: int = 0
    """Nodes that it has beside those that train."""
    file: str = ""
    """The workload's file where it lay, absolute: paths in it are relative to its folder."""
    imported_from: dict[str, Any] | None = None
    """Of a run that another home exported: the file's `digest`, when it came (`at`), and what was `left_out` of it; of
    one that was taken up where it lies the `target` and `at`."""

    @property
    def is_apart(self) -> bool:
        """Return whether it came in a file: nothing of it is anywhere but here."""
        return bool(self.imported_from) and "target" not in (self.imported_from or {})

    @property
    def job_id(self) -> str:
        """Return the run that stands for the whole job: the parent of a point, else the run itself."""
        return self.parent or self.id

    @property
    def point_ids(self) -> list[str]:
        """Return the ids of all points of a parent; none of a single run."""
        return [point_id(self.id, index) for index in range(self.points)]

    @property
    def gpus(self) -> int:
        """Return how many GPUs the run asked for, on all its nodes together."""
        resources = self.workload.get("resources")
        if not isinstance(resources, dict):
            return 0
        return self.allocated_nodes * (fields.node(resources.get("gpus")) or 0)

    @property
    def allocated_nodes(self) -> int:
        """Return how many nodes it has: those that train and the spares."""
        return self.nodes + self.spares

    @property
    def secrets(self) -> list[str]:
        """Return the names of the variables whose values nobody may see."""
        return texts(self.workload.get("secrets")) or []

    @property
    def goal(self) -> dict[str, Any] | None:
        """Return the quality that ends the clock of time to train."""
        return goal_of(self.workload.get("goal"))

    def in_record(self) -> dict[str, Any]:
        """Return what the record of a run has of what was asked, whatever came of it."""
        asked = ("id", "name", "target", "nodes", "spares", "created_at", "verified", "user", "team", "goal")
        same = {name: getattr(self, name) for name in (*asked, "imported_from")}
        return {**same, "world_size": self.nodes * self.ranks_per_node}

    def as_json(self) -> dict[str, Any]:
        """Return what run.json holds."""
        return dict(vars(self))


@dataclass(frozen=True)
class Record:
    """A run as programs and people see it. Times are Unix seconds here and ISO 8601 in JSON."""

    id: str
    name: str
    target: str
    state: str
    folder: str
    nodes: int
    world_size: int
    created_at: float
    parent: str | None = None
    matrix: dict[str, Any] | None = None
    reason: str = ""
    exit_code: int | None = None
    attempts: int = 0
    hosts: tuple[str, ...] = ()
    started_at: float | None = None
    ended_at: float | None = None
    duration_s: float | None = None
    time_to_train_s: float | None = None
    results: dict[str, float] = field(default_factory=dict)
    progress: dict[str, Any] | None = None
    """How far it is, how fast it goes and how long it still takes: a `TrainingProgress`."""
    goodput: dict[str, Any] | None = None
    """Where the time went that it was given: a `Goodput`."""
    cost: dict[str, Any] | None = None
    verified: dict[str, Any] | None = None
    user: str | None = None
    team: str | None = None
    tags: tuple[str, ...] = ()
    note: str = ""
    """What users wrote on it."""
    imported_from: dict[str, Any] | None = None
    goal: dict[str, Any] | None = None
    goal_value: float | None = None
    """What the goal's metric was when the goal was met; `results` has what it was last."""
    spares: int = 0
    """Nodes that wait to take the place of a lost one, beside `nodes`."""
    silent_since: float | None = None
    """Since when the target does not answer: what is told here may be old."""
    silent_why: str = ""
    epoch: tuple[int, int] | None = None
    """The newest attempt; None before the first."""
    stopped_in: tuple[int, int] | None = None
    """The attempt whose pilots were stopped from outside, when nobody said yet why: only the engine knows."""

    @property
    def is_final(self) -> bool:
        """Return whether the run is over; a lost one may still turn up."""
        return self.state in FINAL

    @property
    def silence(self) -> str:
        """Return since when the target does not answer, and why; nothing where it does."""
        if self.silent_since is None:
            return ""
        sentence = f"{self.target} has not answered since {iso(self.silent_since)}"
        return ": ".join(filter(None, [sentence, self.silent_why]))

    def as_json(self) -> dict[str, Any]:
        """Return the record as `--json` and record.json have it; while its target is silent, that is the reason."""
        row = {name: value for name, value in asdict(self).items() if name not in INNER}
        row["reason"] = self.silence or self.reason
        row |= {"hosts": list(self.hosts), "tags": list(self.tags)}
        for name in TIMES:
            row[name] = iso(row[name])
        return row


def as_row(record: Record) -> dict[str, Any]:
    """Return a record as the index keeps it: its JSON form and what a list of runs needs beside."""
    inner = {"goal": record.goal, "goal_value": record.goal_value, "created_s": record.created_at}
    return {**record.as_json(), **inner}


def from_row(row: object) -> Record:
    """Return the record that `as_row` wrote; ValueError says in words what is wrong with any other row."""
    if not isinstance(row, dict):
        raise ValueError("it holds no JSON object")
    times = {name: _unix(row.get(name)) for name in TIMES}
    record = Record(**read_fields(Record, {**row, **times}))
    if record.state not in STATES:
        raise ValueError("state is none that a run can have")
    if record.goal is None:
        return record
    return replace(record, goal=goal_of(record.goal))


def _unix(text: object) -> float | None:
    if not isinstance(text, str):
        return None
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        return None


def parse_asked(row: object) -> Asked:
    """Return what run.json says; ValueError says in words why it is no such file."""
    if not isinstance(row, dict):
        raise ValueError("it holds no JSON object")
    asked = Asked(**read_fields(Asked, row))
    if asked.points > MAX_POINTS:
        raise ValueError("points is greater than any matrix")
    return asked


def iso(unix_s: float | None) -> str | None:
    """Return a time as ISO 8601 in UTC, with milliseconds."""
    if unix_s is None:
        return None
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment(unix_s: float | None) -> datetime | None:
    """Return a time as Python has it, in UTC."""
    return None if unix_s is None else datetime.fromtimestamp(unix_s, UTC)


def sum_up(asked: Asked, folder: str, points: Sequence[Record]) -> Record:
    """Return the record of a parent: what its points add up to."""
    state = summary([point.state for point in points])
    started = min((point.started_at for point in points if point.started_at), default=None)
    ended = None
    if state in FINAL:
        ended = max((point.ended_at for point in points if point.ended_at), default=None)
    duration_s = None
    if ended and started:
        duration_s = round(ended - started, 3)
    counts = Counter(point.state for point in points)
    return Record(
        **asked.in_record(),
        state=state,
        folder=folder,
        reason=", ".join(f"{count} {name}" for name, count in counts.items()),
        exit_code=_exit_code(state, points),
        attempts=sum(point.attempts for point in points),
        hosts=tuple(dict.fromkeys(chain.from_iterable(point.hosts for point in points))),
        silent_since=min((point.silent_since for point in points if point.silent_since), default=None),
        silent_why=next((point.silent_why for point in points if point.silent_why), ""),
        started_at=started,
        ended_at=ended,
        duration_s=duration_s,
        goodput=_whole_goodput(points),
        cost=_whole_cost(points),
    )


def _whole_cost(points: Sequence[Record]) -> dict[str, Any] | None:
    """Return what the points cost together; None where one has no cost, or another currency."""
    costs = [point.cost for point in points if point.cost is not None]
    if not costs or len(costs) < len(points) or len({cost["currency"] for cost in costs}) > 1:
        return None
    amount = round(sum(cost["amount"] for cost in costs), 4)
    return {"amount": amount, "currency": costs[0]["currency"], "origin": f"the sum of {len(costs)} runs"}


def _whole_goodput(points: Sequence[Record]) -> dict[str, Any] | None:
    """Return where the time of all points went that were given any."""
    whole = sum_of(filter(None, (from_json(point.goodput) for point in points)))
    return None if whole is None else whole.as_json()


def _exit_code(state: str, points: Sequence[Record]) -> int | None:
    """Return the exit code of the first point that failed; 0 only when all succeeded."""
    for point in points:
        if point.exit_code:
            return point.exit_code
    if state == "succeeded":
        return 0
    return None
