"""The ends of several runs at once, as a user asks for them: cancelled, removed, or waited for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Any

from podwright.launch.damaged import UNREACHABLE, cancel_strays
from podwright.launch.finding import find_all
from podwright.launch.follow import reconcile
from podwright.launch.forget import abandon, what_is_left
from podwright.launch.records import RunRecords
from podwright.launch.run import Run, cancel_runs
from podwright.spec.problems import Problem, Refusal

if TYPE_CHECKING:
    from podwright.launch.session import Session
    from podwright.runs import Record

MOMENT_S, LOOK_EVERY_S = 5.0, 0.1
"""How long cancelled runs are watched, and how often: most end within a moment, though longer grace may be promised."""


@dataclass(frozen=True)
class Cancelled:
    """A run that was asked to end, as it was a moment later; `was_over` when there was nothing to ask."""

    record: Record
    was_over: bool = False
    is_stray: bool = False
    """Its folder is gone, and its processes were not."""


def cancel_named(session: Session, refs: Sequence[str]) -> Iterator[Cancelled]:
    """Ask runs to end; those whose folder is gone come first, the others once all have ended or a moment is over.

    A sweep on a cluster has been taken by it: its many points are not looked at one by one.
    """
    strays = {record.id: record for record in cancel_strays(session, refs)}
    yield from (Cancelled(record, is_stray=True) for record in strays.values())
    runs = find_all(session, [ref for ref in refs if ref not in strays])
    asked = cancel_runs(session, runs)
    clock = session.clock
    end = clock.monotonic() + MOMENT_S
    taken = {run.id for run in runs if run.id in asked and session.engine_of(run.folder).remains and run.points()}
    while True:
        records = [run.last_known() if run.id in taken else run.record() for run in runs]
        if all(record.is_final or record.id in taken for record in records) or clock.monotonic() > end:
            break
        clock.sleep(LOOK_EVERY_S)
    yield from (Cancelled(record, was_over=record.id not in asked) for record in records)


@dataclass(frozen=True)
class Removal:
    """A run that was removed, and sentences about what its target may still have of it."""

    id: str
    left: list[str]


def removable(session: Session, refs: Sequence[str], silent_too: bool) -> list[Run]:
    """Return the runs that are meant; all are refused when one has not ended, or only its silent target knows."""
    runs = find_all(session, refs)
    records = [run.record() for run in runs]
    active = [record for record in records if not record.is_final and not (silent_too and record.silence)]
    if active:
        raise Refusal(_still_active(record) for record in active)
    return runs


def _still_active(record: Record) -> Problem:
    if record.silence:
        hint = f"`podwright rm --yes {record.id}` removes what is here, and leaves what is there"
        return Problem("", None, None, record.id, record.silence, hint)
    hint = f"`podwright cancel {record.id}` ends it"
    return Problem("", None, None, record.id, f"is {record.state}; only runs that have ended are removed", hint)


def remove_runs(session: Session, runs: Sequence[Run], silent_too: bool) -> Iterator[Removal]:
    """Remove runs one by one; one whose target does not answer is removed here alone, where that was meant."""
    for run in runs:
        yield Removal(run.id, _remove(session, run, silent_too))


def _remove(session: Session, run: Run, silent_too: bool) -> list[str]:
    record = run.last_known()
    if record.silence:
        left = abandon(session, run, f"removed by its user; {record.silence}")
    else:
        try:
            return run.remove()
        except Refusal as refusal:
            if refusal.exit_code != UNREACHABLE or not silent_too:
                raise
        left = [what_is_left(part) for part in run.parts()]
    run.remove(only_here=True)
    return left


@dataclass(frozen=True)
class Waited:
    """A run that was waited for: its records, or why its target could not be asked."""

    id: str
    records: RunRecords | None = None
    refusal: Refusal | None = field(default=None, compare=False)

    def as_json(self) -> dict[str, Any]:
        """Return it as `--json` has it."""
        if self.records is not None:
            return self.records.as_json()
        return {"id": self.id, "state": None, **(self.refusal.as_json() if self.refusal else {})}


def wait_for_all(session: Session, runs: Sequence[Run], timeout_s: float | None = None) -> Iterator[Waited]:
    """Wait for run after run, for all together no longer than a time; one that is away does not hold up the others."""
    clock = session.clock
    end = None if timeout_s is None else clock.monotonic() + timeout_s
    for run in runs:
        left_s = None if end is None else max(0.0, end - clock.monotonic())
        try:
            run.wait_at_most(left_s, patient=False)
            yield Waited(run.id, run.records())
        except Refusal as refusal:
            if refusal.exit_code != UNREACHABLE:
                raise
            yield Waited(run.id, refusal=refusal)


def as_they_end(session: Session, runs: Sequence[Run], timeout_s: float | None = None) -> Iterator[Run]:
    """Yield runs as they end, with one question to each target at a look; TimeoutError where some have not by then."""
    clock = session.clock
    end = None if timeout_s is None else clock.monotonic() + timeout_s
    waiting, named = {run.id: _ids(run.parts()) for run in runs}, {run.id: run for run in runs}
    while waiting:
        records = reconcile(session, dict.fromkeys(chain.from_iterable(waiting.values())))
        over = {record.id: record.ended_at or 0.0 for record in records if record.is_final}
        ended = [run_id for run_id, parts in waiting.items() if over.keys() >= set(parts)]
        for run_id in sorted(ended, key=lambda run_id: max(over[part] for part in waiting[run_id])):
            yield named[run_id]
        waiting = {run_id: parts for run_id, parts in waiting.items() if run_id not in ended}
        if waiting and end is not None and clock.monotonic() >= end:
            raise TimeoutError(f"{len(waiting)} of {len(named)} runs are not over")
        if waiting:
            clock.sleep(LOOK_EVERY_S)


def _ids(runs: Sequence[Run]) -> list[str]:
    return [run.id for run in runs]
