"""`cancel` and `rm`: the two commands that end something."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from podwright.cli.options import AsJson, RunRefs, Yes
from podwright.cli.terminal import output, verdict

if TYPE_CHECKING:
    from podwright.launch import Run, Session
    from podwright.runs import Record
    from podwright.spec.problems import Problem

MOMENT_S = 5.0
"""That `cancel` waits for runs to end; a run may have been promised a longer grace."""


def cancel_command(runs: RunRefs, yes: Yes = False, as_json: AsJson = False) -> int:
    """Cancel runs; one by name is meant as said, several are asked about."""
    from podwright.launch import Session, cancel_runs, cancel_strays, find_all

    if len(runs) > 1 and not output.confirm(f"Cancel {len(runs)} runs?", yes):
        return 1
    with Session.open() as session:
        strays = {record.id: record for record in cancel_strays(session, runs)}
        for run_id in strays:
            output.say("asked", f"{run_id} to end: its folder is gone, its processes are not")
        named = find_all(session, [run_id for run_id in runs if run_id not in strays])
        asked = cancel_runs(session, named)
        records = _soon(named)
        for record in records:
            _say(record, record.id not in asked)
        records = [*strays.values(), *records]
        if as_json:
            output.print_one_or_all([record.as_json() for record in records])
    return 0


def _soon(runs: Sequence[Run]) -> list[Record]:
    """Return how the runs are once all have ended, which most do within a moment, or when that time is over."""
    end = time.monotonic() + MOMENT_S
    while True:
        records = [run.record() for run in runs]
        if all(record.is_final for record in records) or time.monotonic() > end:
            return records
        time.sleep(0.1)


def _say(record: Record, was_over: bool) -> None:
    if was_over:
        return output.say(record.state, f"{record.id} had ended before")
    if record.is_final:
        return output.say(record.state, record.id)
    return output.say("asked", f"{record.id} to end")


def rm_command(runs: RunRefs, yes: Yes = False, as_json: AsJson = False) -> int:
    """Remove runs with all that is in their folders; none is removed when one of them has not ended.

    A run whose target does not answer is removed here alone, where that was said with `--yes`.
    """
    from podwright.launch import Session, find_all

    with Session.open() as session:
        named = find_all(session, runs)
        _refuse_active(named, yes)
        ids = [run.id for run in named]
        if not output.confirm_destroying(f"Remove {', '.join(ids)} with logs, results and checkpoints?", yes):
            return 1
        for run in named:
            left = _remove(session, run, yes)
            output.say("removed", run.id)
            for sentence in left:
                output.say("left", sentence)
    if as_json:
        output.print_json(ids)
    return 0


def _remove(session: Session, run: Run, yes: bool) -> list[str]:
    """Remove a run; return what a target that cannot be reached may still have of it."""
    from podwright.launch.forget import abandon, what_is_left
    from podwright.spec.problems import Refusal

    record = run.last_known()
    if record.silence:
        left = abandon(session, run, f"removed by its user; {record.silence}")
    else:
        try:
            return run.remove()
        except Refusal as refusal:
            if refusal.exit_code != verdict.UNREACHABLE or not yes:
                raise
        left = [what_is_left(part) for part in run.parts()]
    run.remove(only_here=True)
    return left


def _refuse_active(runs: list[Run], yes: bool) -> None:
    from podwright.spec.problems import Problem, Refusal

    records = [run.record() for run in runs]
    active = [record for record in records if not record.is_final and not (yes and record.silence)]
    if active:
        raise Refusal(_still_active(record, Problem) for record in active)


def _still_active(record: Record, problem: type[Problem]) -> Problem:
    if record.silence:
        hint = f"`podwright rm --yes {record.id}` removes what is here, and leaves what is there"
        return problem("", None, None, record.id, record.silence, hint)
    hint = f"`podwright cancel {record.id}` ends it"
    return problem("", None, None, record.id, f"is {record.state}; only runs that have ended are removed", hint)
