"""The record of a run: what was asked, and what its events make of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from itertools import chain
from typing import Any

from podwright.runs import events as kinds
from podwright.runs import fields
from podwright.runs.events import Event, PilotEvent
from podwright.runs.states import BY_END, BY_EVENT, FINAL, STATES, move, summary
from podwright.runs.training_clock import TrainingClock, elapsed_s, is_believed
from podwright.runs.typed import goal_of, read_fields, texts

NOT_RESULTS = frozenset({"mllog", "time_ms"})
INNER = frozenset({"goal", "goal_value", "epoch", "stopped_in", "silent_since", "silent_why"})
"""Fields of a record that `--json` does not have."""


TIMES = ("created_at", "started_at", "ended_at")
MOST_POINTS = 100_000
MOST_RESULTS = 2_000
"""Names that a record holds a last value of: a pilot passes on fewer of each rank."""


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
    parent: str | None = None
    matrix: dict[str, Any] | None = None
    index: int | None = None
    points: int = 0
    after: str | None = None
    command_line: list[str] = field(default_factory=list)
    version: str = ""
    file: str = ""
    """The workload's file where it lay, absolute: paths in it are relative to its folder."""

    @property
    def gpus(self) -> int:
        """Return how many GPUs the run asked for, on all its nodes together."""
        resources = self.workload.get("resources")
        if not isinstance(resources, dict):
            return 0
        return self.nodes * (fields.node(resources.get("gpus")) or 0)

    @property
    def secrets(self) -> list[str]:
        """Return the names of the variables whose values nobody may see."""
        return texts(self.workload.get("secrets")) or []

    @property
    def goal(self) -> dict[str, Any] | None:
        """Return the quality that ends the clock of time to train."""
        return goal_of(self.workload.get("goal"))

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
    cost: dict[str, Any] | None = None
    goal: dict[str, Any] | None = None
    goal_value: float | None = None
    """What the goal's metric was when the goal was met; `results` has what it was last."""
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
        row["hosts"] = list(self.hosts)
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
    if asked.points > MOST_POINTS:
        raise ValueError("points is greater than any matrix")
    return asked


def iso(unix_s: float | None) -> str | None:
    """Return a time as ISO 8601 in UTC, with milliseconds."""
    if unix_s is None:
        return None
    return datetime.fromtimestamp(unix_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


BRINGS_DATA = "brings its data to its nodes"


class Fold:
    """Takes events in the order they are read and gives the record they add up to.

    An event of an older epoch than the newest GO tells history only: a late copy of an old attempt must not change the
    state, the results or the end.
    """

    def __init__(self, asked: Asked, folder: str) -> None:
        self._asked, self._folder = asked, folder
        self._state = "pending"
        self._epoch: tuple[int, int] = (-1, 0)
        self._goes: set[tuple[int, int]] = set()
        self._hosts: tuple[str, ...] = ()
        self._end: kinds.RunEnded | None = None
        self._engine_end: kinds.EngineEnded | None = None
        self._lost: kinds.Lost | None = None
        self._results: dict[str, tuple[tuple[int, int], int, float]] = {}
        self._clock = TrainingClock()
        self._cost: dict[str, Any] | None = None
        self._cancelled = False
        self._why, self._why_at = "", 0.0
        self._gone_at: float | None = None
        self._silent: kinds.TargetSilent | None = None
        self._staging: dict[int, tuple[float, float]] = {}
        self._last = asked.created_at

    def take(self, events: Iterable[Event]) -> None:
        """Take further events in."""
        for event in events:
            self._take(event)
            self._clock = self._clock.after(event)
            if isinstance(event, PilotEvent):
                if is_believed(event.time):
                    self._last = max(self._last, event.time)
                if event.kind in BY_EVENT and event.epoch >= self._epoch:
                    self._state = move(self._state, BY_EVENT[event.kind])

    def _take(self, event: Event) -> None:
        match event:
            case kinds.ResultTold():
                self._take_result(event)
            case kinds.AttemptStarted():
                self._take_go(event)
            case kinds.RunEnded() if event.epoch >= self._epoch:
                self._end = event
            case kinds.EngineEnded():
                self._engine_end = event
            case kinds.Retry() | kinds.LeaderLost() | kinds.GivenBack() if event.epoch >= self._epoch:
                self._why, self._why_at = event.why or "", event.time
            case kinds.StagingProgress() if event.epoch >= self._epoch:
                self._staging[event.node] = (event.size_bytes or 0.0, event.of or 0.0)
                self._why, self._why_at = _brings(self._staging.values()), event.time
            # Clients' notes are read after the pilots' events: one from before these says nothing of now.
            case kinds.Waiting() if self._state == "pending" and event.time >= self._why_at:
                self._why = event.why
            case kinds.Requeued():
                self._take_requeued(event)
            case kinds.CancelAsked():
                self._cancelled = True
            case kinds.Lost():
                self._lost = event
            case kinds.CostReckoned():
                self._cost = {"amount": event.amount, "currency": event.currency, "origin": event.origin}
            case kinds.FoundGone() if self._gone_at is None:
                self._gone_at = event.time
            case kinds.TargetSilent():
                self._silent = event
            case kinds.TargetAnswered():
                self._silent = None

    def _take_go(self, event: kinds.AttemptStarted) -> None:
        self._goes.add(event.epoch)
        if event.epoch > self._epoch:
            self._epoch, self._hosts = event.epoch, event.hosts
            self._state = "pending"  # each GO begins its attempt anew
            if self._end is not None and self._end.epoch < event.epoch:
                self._end = None

    def _take_result(self, event: kinds.ResultTold) -> None:
        for name, value in event.values.items():
            known = self._results.get(name)
            if name in NOT_RESULTS or (known is None and len(self._results) >= MOST_RESULTS):
                continue
            if known is None or (event.epoch, -event.rank) >= (known[0], -known[1]):
                self._results[name] = (event.epoch, event.rank, value)

    def _take_requeued(self, event: kinds.Requeued) -> None:
        """Put the run back: whoever stopped its pilots, or took their nodes away, did not mean the run."""
        stopped = self._end is None or (self._end.state == "terminated" and self._end.epoch <= event.epoch)
        if stopped and event.epoch >= self._epoch:
            self._end, self._state, self._why = None, "pending", event.why

    def record(self, now: float) -> Record:
        """Return what the events taken so far add up to; a run that is not over has lasted until `now`."""
        asked = self._asked
        state, reason, code, ended = self._outcome()
        started, first_hit = self._clock.first_go, self._clock.first_hit
        silent = None if state in FINAL else self._silent
        return Record(
            id=asked.id,
            name=asked.name,
            target=asked.target,
            state=state,
            folder=self._folder,
            nodes=asked.nodes,
            world_size=asked.nodes * asked.ranks_per_node,
            created_at=asked.created_at,
            parent=asked.parent,
            matrix=asked.matrix,
            reason=reason,
            exit_code=code,
            attempts=len(self._goes),
            hosts=self._hosts,
            started_at=started,
            ended_at=ended,
            duration_s=_seconds(started, ended or now),
            time_to_train_s=self._clock.took_s,
            results={name: value for name, (_, _, value) in sorted(self._results.items())},
            cost=self._cost,
            goal=asked.goal,
            goal_value=first_hit.value if first_hit else None,
            silent_since=silent.since if silent else None,
            silent_why=silent.why if silent else "",
            epoch=self._epoch if self._goes else None,
            stopped_in=self._stopped_in(),
        )

    def _stopped_in(self) -> tuple[int, int] | None:
        if self._cancelled or self._engine_end is not None:
            return None
        if self._end is None or self._end.state != "terminated":
            return None
        return self._end.epoch

    def _outcome(self) -> tuple[str, str, int | None, float | None]:
        """Return (state, reason, exit code, ended at)."""
        # The pilots' own last word counts most: they saw the ranks end. Only where they say no more than that they were
        # stopped, and the engine says that it gave the run up, is the engine's the better reason.
        end, engine_end = self._end, self._engine_end
        if end is not None and not self._given_up():
            return BY_END[end.state], end.reason, end.exit_code, end.time
        # The engine's word is next: no pilot could say how it ended. What a user cancelled was cancelled, whatever the
        # engine made of the processes that were stopped for it.
        if engine_end is not None:
            state = BY_END[engine_end.state]
            if self._cancelled:
                state = "cancelled"
            return state, engine_end.reason, engine_end.code, engine_end.time
        # A loss counts until a pilot speaks again: the run had only been out of sight. It ended, as far as anybody
        # knows, when it was first found gone: until then it was shown as one that goes on.
        if self._lost is not None and self._lost.time >= self._last:
            return "lost", self._lost.why, None, max(self._last, self._gone_at or self._lost.time)
        # It is not over. Only a run that waits has a reason; that of an earlier wait is not told of a later state.
        if self._state == "pending":
            return self._state, self._why, None, None
        return self._state, "", None, None

    def _given_up(self) -> bool:
        """Return whether the engine gave the run up: it stops the pilots, which know no more, and it knows why."""
        if self._end is None or self._engine_end is None:
            return False
        return (self._end.state, self._engine_end.state) == ("terminated", "failed")


def _brings(nodes: Collection[tuple[float, float]]) -> str:
    """Return how far a run is that waits for its data; each node tells its bytes, and how many there will be."""
    whole = sum(of for _, of in nodes)
    return f"{BRINGS_DATA}, {sum(there for there, _ in nodes) / max(whole, 1.0):.0%} of it is there"


def _seconds(began: float | None, ended: float) -> float | None:
    if not began:
        return None
    return elapsed_s(began, ended)


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
        id=asked.id,
        name=asked.name,
        target=asked.target,
        state=state,
        folder=folder,
        nodes=asked.nodes,
        world_size=asked.nodes * asked.ranks_per_node,
        created_at=asked.created_at,
        reason=", ".join(f"{count} {name}" for name, count in counts.items()),
        exit_code=_exit_code(state, points),
        attempts=sum(point.attempts for point in points),
        hosts=tuple(dict.fromkeys(chain.from_iterable(point.hosts for point in points))),
        silent_since=min((point.silent_since for point in points if point.silent_since), default=None),
        silent_why=next((point.silent_why for point in points if point.silent_why), ""),
        started_at=started,
        ended_at=ended,
        duration_s=duration_s,
        cost=_whole_cost(points),
        goal=asked.goal,
    )


def _whole_cost(points: Sequence[Record]) -> dict[str, Any] | None:
    """Return what the points cost together; None where one has no cost, or another currency."""
    costs = [point.cost for point in points if point.cost is not None]
    if not costs or len(costs) < len(points) or len({cost["currency"] for cost in costs}) > 1:
        return None
    amount = round(sum(cost["amount"] for cost in costs), 4)
    return {"amount": amount, "currency": costs[0]["currency"], "origin": f"the sum of {len(costs)} runs"}


def _exit_code(state: str, points: Sequence[Record]) -> int | None:
    """Return the exit code of the first point that failed; 0 only when all succeeded."""
    for point in points:
        if point.exit_code:
            return point.exit_code
    if state == "succeeded":
        return 0
    return None
