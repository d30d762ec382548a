"""From events to the record of a run: one after the other, in whatever order they are read."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import islice
from typing import Any

from podwright.pilot.protocol import OWN_TIME
from podwright.runs import events as kinds
from podwright.runs.events import Event, PilotEvent
from podwright.runs.goodput.ledger import GoodputLedger
from podwright.runs.labels import RunLabels
from podwright.runs.record import Asked, Record
from podwright.runs.states import BY_END, BY_EVENT, FINAL, move
from podwright.runs.training_clock import TrainingClock, elapsed_s, is_believed
from podwright.runs.training_progress import ProgressClock

NOT_RESULTS = frozenset({"mllog", "time_ms"})
MAX_RESULTS = 2_000
"""Names that a record holds a last value of: a pilot passes on fewer of each rank."""
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
        self._read: dict[str, float] = {}
        self._clock = TrainingClock()
        self._progress = ProgressClock()
        self._goodput = GoodputLedger(asked.created_at, asked.allocated_nodes, asked.gpus, asked.spares)
        self._labels = RunLabels()
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
            self._goodput.take(event)
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
            case kinds.Recognised() if any(row.get("name") == "step" for row in event.names):
                self._progress.note_read()
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
            case kinds.TagsChanged() | kinds.NoteWritten():
                self._labels = self._labels.after(event)
            case kinds.EventFilesRead():
                self._read |= dict(islice(event.values.items(), MAX_RESULTS))
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
        self._progress.take(event.time, event.epoch, event.rank, event.values)
        for name, value in event.values.items():
            known = self._results.get(name)
            if name in NOT_RESULTS or name.startswith(OWN_TIME):
                continue
            if known is None and len(self._results) >= MAX_RESULTS:
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
        state, reason, code, ended = self._outcome()
        asked = self._asked
        silent = None if state in FINAL else self._silent
        return Record(
            **asked.in_record(),
            state=state,
            folder=self._folder,
            parent=asked.parent,
            matrix=asked.matrix,
            reason=reason,
            exit_code=code,
            attempts=len(self._goes),
            hosts=self._hosts,
            started_at=self._clock.first_go,
            ended_at=ended,
            duration_s=_seconds(self._clock.first_go, ended or now),
            time_to_train_s=self._clock.took_s,
            results=self._last_values(),
            progress=self._progress_in(state, now),
            goodput=self._goodput_of(state, ended or (silent.since if silent else now)),
            cost=self._cost,
            tags=self._labels.tags,
            note=self._labels.note,
            goal_value=self._clock.goal_value,
            silent_since=silent.since if silent else None,
            silent_why=silent.why if silent else "",
            epoch=self._epoch if self._goes else None,
            stopped_in=self._stopped_in(),
        )

    def _goodput_of(self, state: str, until: float) -> dict[str, Any] | None:
        goodput = self._goodput.goodput(until, state)
        return None if goodput is None else goodput.as_json()

    def _progress_in(self, state: str, now: float) -> dict[str, Any] | None:
        """Return how far it is; what an attempt before had come to is not where a run is that waits."""
        if state == "pending" or not self._goes:
            return None
        reached = self._progress.at(now, self._epoch, state in FINAL)
        return None if reached is None else reached.as_json()

    def _last_values(self) -> dict[str, float]:
        """Return the last value of each name; those of event files stand where no rank told one, or it was a guess."""
        last = {name: value for name, (_, _, value) in self._results.items()}
        return dict(sorted((last | self._read).items()))

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
        """Return whether the engine knows better than pilots that were stopped, and know no more than that."""
        if self._end is None or self._end.state != "terminated":
            return False
        if self._engine_end is not None:
            return self._engine_end.state in ("terminated", "failed")
        return not self._cancelled and self._lost is not None and self._lost.time >= self._last


def _brings(nodes: Collection[tuple[float, float]]) -> str:
    """Return how far a run is that waits for its data; each node tells its bytes, and how many there will be."""
    whole = sum(of for _, of in nodes)
    return f"{BRINGS_DATA}, {sum(there for there, _ in nodes) / max(whole, 1.0):.0%} of it is there"


def _seconds(began: float | None, ended: float) -> float | None:
    if not began:
        return None
    return elapsed_s(began, ended)
