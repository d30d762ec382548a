"""`cancel` and `rm`: the two commands that end something."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podwright.cli.options import AsJson, RunRefs, Yes
from podwright.cli.terminal import output

if TYPE_CHECKING:
    from podwright.launch import Run


def cancel_command(runs: RunRefs, yes: Yes = False, as_json: AsJson = False) -> int:
    """Cancel runs; one by name is meant as said, several are asked about."""
    from podwright.launch import Session, find_all

    with Session.open() as session:
        named = find_all(session, runs)
        if len(named) > 1 and not output.confirm(f"Cancel {len(named)} runs?", yes):
            return 1
        for run in named:
            _cancel(run)
        if as_json:
            output.print_one_or_all([run.record().as_json() for run in named])
    return 0


def _cancel(run: Run) -> None:
    record = run.record()
    if record.is_final:
        return output.say(record.state, f"{run.id} had ended before")
    run.cancel()
    if run.record().state == "cancelled":
        return output.say("cancelled", run.id)
    return output.say("asked", f"{run.id} to end")


def rm_command(runs: RunRefs, yes: Yes = False, as_json: AsJson = False) -> int:
    """Remove runs with all that is in their folders; none is removed when one of them has not ended."""
    from podwright.launch import Session, find_all

    with Session.open() as session:
        named = find_all(session, runs)
        _refuse_active(named)
        ids = [run.id for run in named]
        if not output.confirm(f"Remove {', '.join(ids)} with logs, results and checkpoints?", yes):
            return 1
        for run in named:
            remains = run.remove()
            output.say("removed", "\n".join([run.id, *remains]))
    if as_json:
        output.print_json(ids)
    return 0


def _refuse_active(runs: list[Run]) -> None:
    from podwright.spec.problems import Problem, Refusal

    records = [run.record() for run in runs]
    active = [record for record in records if not record.is_final]
    if active:
        hint = f"`podwright cancel {' '.join(record.id for record in active)}` ends them"
        why = "only runs that have ended are removed"
        raise Refusal(Problem("", None, None, record.id, f"is {record.state}; {why}", hint) for record in active)
