"""A run in hand: what the command line and Python programs hold on to. Both use the same code."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any

from podwright.analysis.user_paths import as_owner_knows
from podwright.engines.site import SiteLost
from podwright.launch.damaged import MAY_REMAIN, UNREACHABLE, engine_anyway, remove_anyway
from podwright.launch.failures import explain, not_installed
from podwright.launch.follow import by_engine, look, reconcile
from podwright.launch.journal import note
from podwright.launch.origin import left_behind
from podwright.launch.pull import CLOSE_S, pull
from podwright.launch.records import RunRecords
from podwright.launch.session import Session
from podwright.launch.sharing import withdraw
from podwright.launch.tables import SensorSamples, ToldSeries
from podwright.runs import FINAL, LogLine, LogTail, Record, RunFolder
from podwright.runs.copies import LeftOut, ignore
from podwright.runs.event_reader import last_results
from podwright.runs.events import DeviceSeen, Event, RankFailed, RankStack, Sample, SoftwareFound
from podwright.runs.record import moment
from podwright.runs.replacements import Replacement, replacements
from podwright.runs.seal import prepare
from podwright.spec.problems import Refusal, refuse

POLL_S = (0.05, 0.1)
"""A short run is noticed at once, a long one is asked about ten times a second."""
MAX_SAMPLES = 10_000
"""Of one change: more than all nodes of a run measure between two looks."""
REST_S = 5.0
"""The most that is waited between two looks, however long a look at many points takes."""


@dataclass(frozen=True)
class Change:
    """What came since the last look."""

    record: Record
    events: list[Event] = field(default_factory=list)
    samples: list[Sample] = field(default_factory=list)


class Run:
    """One run, or the parent of several points. Every answer is read from the run's folder again."""

    def __init__(self, session: Session, run_id: str) -> None:
        self._session = session
        self.id = run_id
        self.folder: RunFolder = session.home.folder(run_id)

    def __repr__(self) -> str:
        return f"<Run {self.id} {self.last_known().state}>"

    def _repr_html_(self) -> str:
        """Return a card for notebooks."""
        from podwright.launch.html_card import card

        return card(self.last_known())

    def __await__(self) -> Generator[Any, None, Record]:
        """Wait for the end as `wait` does, while the event loop goes on; the final record comes of it."""
        import asyncio

        return asyncio.to_thread(self.wait).__await__()

    @property
    def state(self) -> str:
        """Return its state now."""
        return self.record().state

    @property
    def created_at(self) -> datetime:
        """Return when it was asked for."""
        return datetime.fromtimestamp(self.last_known().created_at, UTC)

    @property
    def started_at(self) -> datetime | None:
        """Return when its ranks first started."""
        return moment(self.last_known().started_at)

    @property
    def ended_at(self) -> datetime | None:
        """Return when it was over."""
        return moment(self.last_known().ended_at)

    @property
    def parent(self) -> str | None:
        """Return the run that this one is a point of."""
        if not self.folder.is_readable:
            return self._session.home.read_anyway(self.id).parent
        return self.folder.asked.parent

    def points(self) -> list[Run]:
        """Return the points of a matrix or the repeats, as far as they are there; none of a single run."""
        home = self._session.home
        ids = home.index.points(self.id)
        if self.folder.is_readable:
            ids = self.folder.asked.point_ids
        return [Run(self._session, point) for point in ids if home.is_there(point)]

    def records(self) -> RunRecords:
        """Return the truth now about the run and its points, with one question to the engine for all."""
        points = reconcile(self._session, [point.id for point in self.points()])
        if points:
            return RunRecords(self._session.home.read_anyway(self.id), points)
        return RunRecords(self.record(), [])

    def parts(self) -> list[Run]:
        """Return the points of a run that has some, else the run itself."""
        return self.points() or [self]

    def record(self) -> Record:
        """Return the truth now: ask the engine, settle what ended."""
        return reconcile(self._session, [self.id])[0]

    def last_known(self) -> Record:
        """Return what is known here, without asking the target."""
        return self._session.home.read_anyway(self.id)

    def wait(self, timeout_s: float | None = None, patient: bool = True) -> Record:
        """Wait until the run is over and return its final record; raise TimeoutError where the time is over first.

        A target that does not answer any more is waited for, unless one is not `patient`.
        """
        record = self.wait_at_most(timeout_s, patient)
        if not is_over(self, record):
            raise TimeoutError(f"{self.id} is {record.state} after {timeout_s:g} s; it goes on")
        return record

    def wait_at_most(self, timeout_s: float | None, patient: bool = True) -> Record:
        """Wait until the run is over, or the time is; the record says which."""
        clock = self._session.clock
        began = clock.monotonic()
        pause_s = POLL_S[0]
        while True:
            looked = clock.monotonic()
            record = looked_at(self, patient)
            if is_over(self, record):
                return record
            if timeout_s is not None and clock.monotonic() >= began + timeout_s:
                return record
            if pause_s == POLL_S[0]:
                threading.Thread(target=prepare).start()
            # A look at many points takes long: most of the time is left to others, but never much of it at once.
            look_s = clock.monotonic() - looked
            clock.sleep(min(max(pause_s, 2 * look_s), REST_S))
            pause_s = min(pause_s * 1.3, POLL_S[1])

    def watch(self, poll_s: float = 0.25, patient: bool = True) -> Iterator[Change]:
        """Yield what happens, as it happens; the last change is the final one. A short run is looked at more often.

        A target that does not answer any more is waited for, unless one is not `patient`.
        """
        events = self.folder.event_tail()
        samples = self.folder.sample_tail()
        pause_s = POLL_S[0]
        while True:
            # Before the record: sealing moves the samples elsewhere.
            fresh = list(deque(samples.rows(), maxlen=MAX_SAMPLES))
            record = looked_at(self, patient)
            yield Change(record, last_results(events.rows()), fresh)
            if is_over(self, record):
                return
            self._session.clock.sleep(pause_s)
            pause_s = min(pause_s * 1.3, poll_s)

    def logs(self, rank: int | None = None, follow: bool = False) -> Iterator[LogLine]:
        """Return the lines of all ranks in order of time, or of one; `follow` goes on until the run is over."""
        if follow:
            lines: Iterator[LogLine] = chain.from_iterable(self.follow_logs())
        else:
            self.record()
            lines = self.folder.log_lines()
        return (line for line in lines if rank is None or line.rank == rank)

    def log_tail(self, last_bytes: int | None = None) -> LogTail:
        """Return a reader that gives the lines that come; of those that are there the last, or all."""
        return LogTail(self.folder, last_bytes)

    def follow_logs(self) -> Iterator[list[LogLine]]:
        """Yield the lines that are there, then those that come, as they come, until the run is over."""
        tail = LogTail(self.folder)
        while True:
            record = self.record()
            yield tail.read()
            if is_over(self, record):
                return
            self._session.clock.sleep(0.2)

    def metrics(self) -> SensorSamples:
        """Return what the sensors read, node by node; `to_arrow()` and `to_pandas()` make a table of it."""
        self.record()
        return SensorSamples(self.folder.samples())

    def series(self) -> ToldSeries:
        """Return all values that its ranks told, rank by rank; `to_arrow()` and `to_pandas()` make a table of them."""
        self.record()
        return ToldSeries(self.folder.series())

    def value(self, rank: int = 0, trust: bool = False) -> Any:
        """Wait for the end, and return what the function returned; of others' machines plain types without `trust`."""
        from podwright.launch.call_values import bring_values

        record = self.wait()
        bring_values(self._session, [self.folder])
        return value_here(self, record, rank, trust)

    def result(self) -> dict[str, float]:
        """Wait for the end, and return what the program reported last, by name."""
        return self.wait().results

    def report(self) -> Path:
        """Write its report, of several points their comparison, and return where it is."""
        self.record()
        reports = self._session.reports
        if reports is None:
            raise refuse("this session writes no reports", hint="`import podwright` and take its `Session`")
        return reports.write([self])

    def cancel(self) -> bool:
        """Ask what is not over to end, with the grace it was promised; return False where all of it was over."""
        return self.id in cancel_runs(self._session, [self])

    def remove(self, only_here: bool = False) -> list[str]:
        """Remove the folder with its checkpoints; refuse a run that is not over. It needs no readable record.

        `only_here`: what its target has of it is left there. Return what else may be left elsewhere, in sentences.
        """
        state = self.record().state
        if state not in FINAL:
            raise refuse(f"{self.id} is {state}", hint=f"`podwright cancel {self.id}` first")
        remains: dict[str, None] = {}
        for part in (*self.points(), self):
            if not only_here:
                remains.update(dict.fromkeys(_remove_elsewhere(part)))
            withdraw(self._session.home, part.folder)
            remains.update(dict.fromkeys(self._session.home.remove(part.id)))
        return list(remains)

    def pull(self, paths: Sequence[str], to: Path, leave_out: Callable[[LeftOut], None] = ignore) -> list[Path]:
        """Copy results and checkpoints, or the named paths of the run's folder, to `to`.

        Links that stay in the run are kept; what is no plain file is left out, and `leave_out` is told.
        """
        return pull(self._session, self.folder, paths, to, leave_out)

    def shell(self, node: int) -> list[str]:
        """Return the command that opens a shell beside the ranks of a node."""
        return self._session.engine_of(self.folder).shell(self.folder, node)

    def replacements(self) -> list[Replacement]:
        """Return which of its nodes were replaced, and when."""
        return replacements(self.folder.events())

    def explain(self, record: Record | None = None) -> list[str]:
        """Return why a run failed, in words: which rank, its last lines, what the sensors saw, what helps."""
        told = self.folder.events_of(RankFailed, DeviceSeen, RankStack, SoftwareFound)
        lines = explain(record or self.record(), told)
        if not self.folder.is_readable:
            return lines
        asked = self.folder.asked
        hints = [left_behind(asked.code, self.folder.path, lines), not_installed(lines, told)]
        lines = [as_owner_knows(line, asked.code) for line in lines]
        return [*lines, *(f"hint {hint}" for hint in hints if hint)]


def is_held(run: Run) -> bool:
    """Return whether a run waits until a client sees that the run it comes after has succeeded."""
    session = run._session
    engine = session.engine_of(run.folder)
    if run.folder.asked.after is None or not engine.holds:
        return False
    with session.using(engine):
        statuses = engine.status([part.folder for part in run.parts()])
    return any(status.held_for for status in statuses.values())


def records_anyway(run: Run) -> RunRecords:
    """Return the records as `Run.records` does; a look that fails by a fault of ours is said in them."""
    session = run._session
    try:
        return run.records()
    except Refusal:
        raise
    except Exception:
        points = [look(session, point.id) for point in run.points()]
        if points:
            return RunRecords(session.home.read_anyway(run.id), points)
        return RunRecords(look(session, run.id), [])


def value_here(run: Run, record: Record | None = None, rank: int = 0, trust: bool = False) -> Any:
    """Return what the function returned, of a run whose values were brought here; its record where it is over."""
    from podwright.launch.call_values import read_value, source_of

    def why() -> str:
        known = record or run.last_known()
        return "\n".join(run.explain(known)) or f"it {known.state}, and rank {rank} left no value"

    return read_value(source_of(run._session.home.path, run.folder, trust), rank, why)


def _cancel_anyway(run: Run) -> bool:
    """Ask a run whose run.json cannot be read to end."""
    records = [part.record() for part in run.parts()]
    live = [record for record in records if not record.is_final]
    for record in live:
        engine, folder = engine_anyway(run._session, record)
        engine.cancel([folder])
    return bool(live)


def _remove_elsewhere(run: Run) -> list[str]:
    """Remove what a run left on its target; return what may be left there."""
    if not run.folder.is_readable:
        return remove_anyway(run._session, run.id)
    try:
        if not run.folder.asked.is_apart:
            run._session.engine_of(run.folder).remove(run.folder)
    except SiteLost as lost:
        return [MAY_REMAIN.format(target=run.folder.asked.target, why=lost.reason)]
    return []


def cancel_runs(session: Session, runs: Sequence[Run]) -> set[str]:
    """Ask what is not over of these runs to end, all that an engine has at once; return those that were not over."""
    asked, singles = set(), []
    for run in runs:
        if not run.folder.is_readable and _cancel_anyway(run):
            asked.add(run.id)
        elif run.folder.is_readable and run.points():
            asked |= _cancel_points(session, run)
        elif run.folder.is_readable:
            singles.append(run)
    records = reconcile(session, [run.id for run in singles])
    live = [run.folder for run, record in zip(singles, records, strict=True) if not record.is_final]
    for folder in live:
        note(folder, "cancel")
    for engine, folders in by_engine(session, live):
        engine.cancel(folders)
    return asked | {folder.id for folder in live}


def _cancel_points(session: Session, parent: Run) -> set[str]:
    """Ask the points of a matrix to end before they are looked at: that takes as long as some of them need to end."""
    folders = [point.folder for point in parent.points()]
    live = [folder for folder in folders if not session.home.read_anyway(folder.id).is_final]
    if not live:
        return set()
    engine = session.engine_of(parent.folder)
    with session.using(engine):
        engine.cancel(live, whole=True)
    for folder in live:
        note(folder, "cancel")
    return {parent.id}


def looked_at(run: Run, patient: bool) -> Record:
    """Return what is known of a run now; where one is not patient, a target that does not answer is refused."""
    record = run.record()
    if not patient:
        refuse_silence(record)
    return record


def refuse_silence(record: Record) -> None:
    """Refuse to go on with a run whose target does not answer any more."""
    if record.silence:
        hint = f"the run goes on without us: `podwright attach {record.id}` later"
        raise refuse(record.silence, hint=hint, exit_code=UNREACHABLE)


def is_over(run: Run, record: Record) -> bool:
    """Return whether it is final and its folder closed: its last lines are in.

    A closing that never comes is not waited for.
    """
    if not record.is_final or record.state == "lost" or record.ended_at is None:
        return record.is_final
    if not run.folder.is_readable:
        return True  # nobody can close it
    if all(part.folder.is_sealed for part in run.parts()):
        return True
    late_s = CLOSE_S + run._session.engine_of(run.folder).lag_s
    return run._session.clock.time() - record.ended_at > late_s
