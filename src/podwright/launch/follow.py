"""Following runs: bring the record in, ask the engine about many at once, settle what is over, seal it."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain

from podwright.costs.record import record_cost
from podwright.engines.base import Engine, Status
from podwright.engines.mirror import Trees
from podwright.engines.site import SiteLost
from podwright.launch.after import settle_held
from podwright.launch.cleanup import clean_ended, is_in
from podwright.launch.damaged import UNREACHABLE, look_anyway, without_site
from podwright.launch.event_values import take_event_values
from podwright.launch.gaps import note_gaps, note_left_out, sentence_of
from podwright.launch.journal import note
from podwright.launch.session import Session
from podwright.launch.sharing import publish
from podwright.launch.submission import resubmit, submitting
from podwright.pilot.protocol import WORKDIR
from podwright.runs import SETTLED, Home, Record, RunFolder
from podwright.runs.events import FoundGone, FoundIdle, Waiting
from podwright.runs.fold import BRINGS_DATA
from podwright.runs.seal import seal
from podwright.runs.store import CREATE_S, NEVER_SUBMITTED
from podwright.spec.problems import Refusal

ENDS = {"succeeded": "failed", "failed": "failed", "cancelled": "terminated"}
"""An engine's outcome as an end. Without the pilots' own word, success cannot be believed."""
NO_END = "the end of its record is missing"
RESULTS_BYTES = 64 << 20
GIVEN_S = 5.0
"""What was seen of a job before it was given again, with another part of the run, says nothing of it now."""
NOT_READ = "ended, its last word is not read yet"
STARTING = "has its nodes; its pilots are starting"
FINISH_S = 600.0
"""How long after its creation a run whose client died before submitting is still submitted by another."""


def reconcile(session: Session, ids: Iterable[str]) -> list[Record]:
    """Return the truth about these runs now; one question to each engine, however many runs it has."""
    home, ids = session.home, list(ids)
    try:
        records = _reconcile(session, ids)
    except SiteLost as lost:
        if len(ids) > 1:
            return list(chain.from_iterable(reconcile(session, [run_id]) for run_id in ids))
        records = {run_id: without_site(home.read_anyway(run_id), lost) for run_id in ids}
    except Refusal:
        raise
    except Exception:
        # What the files of one run hold must not touch the others: each is looked at by itself. One that is over is
        # over; of any other nobody knows more, and a fault of ours must not look like a run that goes on.
        if len(ids) > 1:
            return list(chain.from_iterable(reconcile(session, [run_id]) for run_id in ids))
        records = {run_id: home.read_anyway(run_id) for run_id in ids}
        if not all(record.is_final for record in records.values()):
            raise
    with suppress(Refusal):
        home.keep(record for record in records.values() if home.is_there(record.id))
        session.syncs.write(home, records.values())
    return [records[run_id] for run_id in ids]


def look(session: Session, run_id: str) -> Record:
    """Return the truth about a run now, or where that fails by a fault of ours what is known of it, with the fault."""
    try:
        return reconcile(session, [run_id])[0]
    except Refusal:
        raise
    except Exception as error:
        record = session.home.read_anyway(run_id)
        return replace(record, reason=f"it cannot be looked at: {type(error).__name__}: {error}")


def _reconcile(session: Session, ids: Sequence[str]) -> dict[str, Record]:
    home = session.home
    records, folders = {}, []
    for run_id in ids:
        folder = home.folder(run_id)
        if folder.is_readable:
            folders.append(folder)
        else:
            records[run_id] = look_anyway(session, run_id)
    singles = [folder for folder in folders if not folder.asked.points]
    for engine, members in by_engine(session, singles):
        with session.using(engine):
            records.update(_Look(session, engine).at(members))
    for folder in folders:
        if folder.asked.points:
            reconcile(session, [point for point in folder.asked.point_ids if home.is_there(point)])
            records[folder.id] = home.read(folder.id)
    return records


def by_engine(session: Session, folders: Sequence[RunFolder]) -> list[tuple[Engine, list[RunFolder]]]:
    """Group runs by engine. A sealed run needs none, but one of its target's is as good as any."""
    groups: dict[int, tuple[Engine, list[RunFolder]]] = {}
    for folder in folders:
        engine = session.engine_of(folder)
        groups.setdefault(id(engine), (engine, []))[1].append(folder)
    return list(groups.values())


@dataclass(frozen=True)
class _Look:
    """One look at runs of one engine."""

    session: Session
    engine: Engine

    @property
    def home(self) -> Home:
        """Return the home of the runs."""
        return self.session.home

    def at(self, folders: Sequence[RunFolder]) -> dict[str, Record]:
        """Return the records. The engine is asked before they are read: a run that ends in between is not lost."""
        live = [folder for folder in folders if not folder.is_sealed]
        began = self.session.clock.time()
        statuses = self._statuses(live)
        gaps: Mapping[str, Sequence[str]] = self.engine.collect(live) if live else {}
        records = {}
        for run_id, why in (self.engine.unread(live) if live else {}).items():
            statuses[run_id] = replace(statuses[run_id], unread=why)
        for folder in folders:
            note_gaps(folder, gaps.get(folder.id, []))
            record = self.home.read(folder.id)
            note_left_out(self.home, folder)
            if not folder.is_sealed and not record.is_final:
                record = self._note_silence(folder, record, statuses[folder.id], began)
            # A settled record needs no judgement, unless its pilots were stopped: only the engine can say by whom.
            if not folder.is_sealed and (record.state not in SETTLED or record.stopped_in):
                record = self._judge(folder, record, statuses[folder.id])
            records[folder.id] = record
        waiting = [folder for folder in live if not records[folder.id].is_final and not statuses[folder.id].silent]
        if waiting:
            self.engine.tend(waiting)
        held = [folder for folder in live if folder.asked.after and statuses[folder.id].held_for]
        records |= self._settle_held(held, records)
        settled = [folder for folder in live if records[folder.id].state in SETTLED]
        now = self._statuses(settled)
        self._close([folder for folder in settled if now[folder.id].state == "gone"], records)
        clean_ended(self.engine, [folder for folder in settled if self._lingers(folder, records, now)])
        return records

    def _lingers(self, folder: RunFolder, records: Mapping[str, Record], now: Mapping[str, Status]) -> bool:
        """Return whether a run that has ended is still there, and its record is in."""
        status = now[folder.id]
        if status.state == "gone" or status.silent:
            return False
        at_work = status.state != "waiting"
        return is_in(folder, records[folder.id], at_work, self.session.clock.time())

    def _settle_held(self, folders: Sequence[RunFolder], records: Mapping[str, Record]) -> dict[str, Record]:
        """Release or end runs that are held for another; that one is looked at first, once for all of them."""
        names = {str(folder.asked.after) for folder in folders}
        known = [name for name in names if self.home.is_there(name)]
        earlier = {record.id: record for record in reconcile(self.session, known)}
        settled = {}
        for folder in folders:
            before = earlier.get(str(folder.asked.after))
            record = settle_held(self.engine, folder, records[folder.id], before)
            settled[folder.id] = record or self.home.read(folder.id)
        return settled

    def _statuses(self, folders: Sequence[RunFolder]) -> dict[str, Status]:
        """Ask the engine; one that cannot even be asked, as its credentials are gone, is as silent as its target."""
        if not folders:
            return {}
        try:
            return self.engine.status(folders)
        except Refusal as refusal:
            if refusal.exit_code != UNREACHABLE:
                raise
            silent = Status("there", silent=refusal.problems[0].message)
            return {folder.id: silent for folder in folders}

    def _note_silence(self, folder: RunFolder, record: Record, status: Status, began: float) -> Record:
        """Note once that the target does not answer, and that it does again."""
        if bool(status.silent) == (record.silent_since is not None):
            return record
        if status.silent:
            note(folder, "silent", since=round(began, 3), why=status.silent)
        else:
            note(folder, "answered")
        return self.home.read(folder.id)

    def _close(self, folders: Sequence[RunFolder], records: dict[str, Record]) -> None:
        """Bring the last of the records and the results here, in one exchange for all, then seal the folders.

        What each run cost is computed now, when all of it is known.
        """
        if not folders:
            return
        gaps = self.engine.collect(folders)
        try:
            left_out = self.engine.fetch(folders, Trees(("results",), RESULTS_BYTES, but=(WORKDIR,)))
        except Refusal:
            return  # a cluster that is away just now: the next look closes them
        for folder in folders:
            if folder.id not in left_out:
                continue
            note_gaps(folder, gaps.get(folder.id, []))
            note_gaps(folder, [sentence_of(folder, gap) for gap in left_out[folder.id]])
            self.home.read(folder.id)  # what has just come may hold events that cannot be understood
            note_left_out(self.home, folder)
            values = take_event_values(folder, records[folder.id])
            if values:
                records[folder.id] = self.home.read(folder.id)
            records[folder.id] = self._with_cost(folder, records[folder.id])
            with suppress(OSError):
                seal(folder, records[folder.id], values)
            publish(self.home, folder, records[folder.id])

    def _with_cost(self, folder: RunFolder, record: Record) -> Record:
        """Return the record with what the run cost, which is noted for all who read the run from its events."""
        if record.cost is not None or folder.is_sealed:
            return record
        cost = record_cost(folder, record)
        if cost is None:
            return record
        note(folder, "cost", **cost)
        return self.home.read(folder.id)

    def _judge(self, folder: RunFolder, record: Record, status: Status) -> Record:
        """Settle what the engine says of a run whose record has no last word, or one only the engine can explain."""
        if status.silent:
            return _open(record, "its pilots were stopped") if record.stopped_in else record
        events = {event.kind: event for event in folder.client_events()}
        if status.unfinished:
            return self._go_on(folder, record, status, events.keys())
        if "submitted" not in events and status.handle:
            note(folder, "submitted", handle=status.handle)  # its client died before it could say so
        elif "submitted" not in events and (status.state, status.outcome) == ("gone", ""):
            if "lost" in events:
                return record
            return self._finish_submit(folder, record)
        if status.state != "gone":
            return self._still_there(folder, record, status)
        if status.unknown_to_engine and "cancel" not in events:
            submitted = events.get("submitted")
            given_just_now = submitted is not None and time.time() - submitted.time < GIVEN_S
            if given_just_now or self._submit_again(folder, record, lost=True):
                return self.home.read(folder.id)
        if status.unread:
            return _open(record, f"{NOT_READ}: {status.unread}")
        # From here on the run is gone for good. Pilots that were stopped said so, and nobody knows better: cancelled.
        if record.stopped_in and not status.outcome:
            return record
        # A run that began, or ended by itself, has a last word that may still be on its way. One that was cancelled
        # before it began has none to wait for.
        may_have_last_word = record.attempts > 0 or status.outcome != "cancelled"
        if record.stopped_in is None and may_have_last_word and self._may_lag(folder, record, FoundGone, status):
            return record
        self._note_end(folder, record, status, "cancel" in events)
        return self.home.read(folder.id)

    def _note_end(self, folder: RunFolder, record: Record, status: Status, cancelled: bool) -> None:
        """Note how a run ended that is gone for good, as far as its engine knows."""
        if status.told and status.outcome == "succeeded":
            reason = ": ".join(filter(None, [NO_END, status.reason]))
            note(folder, "end", state="succeeded", reason=reason, code=0)
        elif status.outcome in ENDS:
            code = record.exit_code if record.stopped_in else None
            note(folder, "end", state=ENDS[status.outcome], reason=status.reason, code=code)
        elif cancelled and not record.attempts:
            # A scheduler may forget what it removes from its queue: nobody else has taken it.
            note(folder, "end", state="terminated", reason="was cancelled before it began", code=None)
        elif record.state != "lost":
            self.engine.clean(folder)
            note(folder, "lost", why=status.reason)

    def _still_there(self, folder: RunFolder, record: Record, status: Status) -> Record:
        """Say why a run waits; one that had begun and waits again was requeued, or suspended."""
        stopped_in = record.stopped_in
        if stopped_in is None and self._is_idle(folder, record, status):
            stopped_in = record.epoch
        if status.state == "waiting" and stopped_in:
            note(folder, "requeued", stopped_in, why=status.reason)
            return self.home.read(folder.id)
        if record.stopped_in:
            return _open(record, "it is being stopped")
        if status.unheard and record.state in ("starting", "running"):
            return replace(record, reason=status.unheard)
        if status.state == "there" and status.unread and record.state == "pending":
            return replace(record, state="starting", reason=f"has its nodes; {status.unread}")
        why = status.reason
        if status.state == "there" and record.reason.startswith(BRINGS_DATA):
            return record
        if status.state == "there" and not why and _was_waiting(folder, record):
            why = STARTING
        if record.state == "pending" and why and why != record.reason:
            note(folder, "waiting", why=why)
            return self.home.read(folder.id)
        return record

    def _is_idle(self, folder: RunFolder, record: Record, status: Status) -> bool:
        """Return whether no part of it runs any more, and its pilots could not say so."""
        waits = status.state == "waiting" and record.state in ("starting", "running")
        return waits and not self._may_lag(folder, record, FoundIdle, status)

    def _may_lag(self, folder: RunFolder, record: Record, kind: type[FoundGone | FoundIdle], status: Status) -> bool:
        """Return whether engine and record are still given time to agree, counted from when this was first seen.

        The engine's news may be older than the record, or the record on its way.
        """
        if not self.engine.lag_s:
            return False
        sightings = [event for event in folder.client_events() if isinstance(event, kind)]
        times = [event.time for event in sightings if event.epoch == record.epoch]
        if times:
            return time.time() - times[0] < self.engine.lag_s
        note(folder, kind.kind, record.epoch, why=status.reason)
        return True

    def _finish_submit(self, folder: RunFolder, record: Record, alone: bool = False) -> Record:
        """Submit what a dead client left; `alone`: the engine takes this part without those that it has already."""
        siblings = _siblings(self.home, folder)
        with submitting((siblings or [folder])[0]) as nobody_else:
            if not nobody_else:
                return record  # its client is at it
        if self._submit_again(folder, record, alone):
            return self.home.read(folder.id)
        if time.time() - record.created_at < CREATE_S:
            return record  # its client may still be writing the other points
        self.engine.clean(folder)
        note(folder, "lost", why=NEVER_SUBMITTED)
        return self.home.read(folder.id)

    def _go_on(self, folder: RunFolder, record: Record, status: Status, noted: Collection[str]) -> Record:
        """Finish a submission that broke off, or remove what is half made of a run that nobody wants any more."""
        if "submitted" in noted:
            return record  # with another part, just now
        if "lost" not in noted and "cancel" not in noted:
            return self._finish_submit(folder, record, alone=True)
        if status.state != "gone":
            self.engine.clean(folder)
        return record

    def _submit_again(self, folder: RunFolder, record: Record, alone: bool = False, lost: bool = False) -> bool:
        """Give a young run of this home to the engine that never had it, with all its parts, or that lost it (`lost`).

        A run by itself may have begun by then: it goes on from its checkpoint.
        """
        if folder.asked.imported_from or time.time() - record.created_at >= FINISH_S:
            return False
        siblings = _siblings(self.home, folder)
        parts = siblings
        if alone:
            parts = [sibling for sibling in siblings if sibling.handle is None]
        may_have_begun = lost and folder.asked.parent is None
        if not parts or (not may_have_begun and any(self.home.read(part.id).attempts for part in parts)):
            return False
        return resubmit(self.engine, siblings, parts)


def _open(record: Record, reason: str) -> Record:
    """Return the record of a run that is not over as far as anybody knows."""
    return replace(record, state="running", reason=reason, ended_at=None, exit_code=None)


def _siblings(home: Home, folder: RunFolder) -> list[RunFolder]:
    """Return all parts of the same job; none when the client died before it had written them all."""
    parent = folder.asked.parent
    if parent is None:
        return [folder]
    ids = home.folder(parent).asked.point_ids
    if not all(home.has(run_id) for run_id in ids):
        return []
    return [home.folder(run_id) for run_id in ids]


def _was_waiting(folder: RunFolder, record: Record) -> bool:
    """Return whether a run is said to wait for what it has by now, by a client and not by its pilots."""
    reasons = [event.why for event in folder.client_events() if isinstance(event, Waiting)]
    return record.state == "pending" and record.reason in reasons[-1:]
