"""`cancel` and `rm`: the two commands that end something."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podwright.cli.options import AsJson, RunRefs, Yes
from podwright.cli.terminal import output, verdict

if TYPE_CHECKING:
    from podwright.launch import Run


def cancel_command(runs: RunRefs, yes: Yes = False, as_json: AsJson = False) -> int:
    """Cancels runs; one by name is meant as said, several are asked about."""
    from podwright import launch
    from podwright.launch import Session

    found = launch.find_all(Session.open(), runs)
    if len(found) > 1 and not output.confirm(f"Cancel {len(found)} runs?", yes):
        return 1
    for run in found:
        _cancel(run)
    if as_json:
        records = [run.record().as_json() for run in found]
        output.print_json(records[0] if len(records) == 1 else records)
    return 0


def _cancel(run: Run) -> None:
    state = run.record().state
    if state in verdict.FINAL:
        return output.say(state, f"{run.id} had ended before")
    run.cancel()
    state = run.record().state
    return output.say(
        state if state == "cancelled" else "asked", f"{run.id} to end" if state != "cancelled" else run.id
    )


def rm_command(runs: RunRefs, yes: Yes = False, as_json: AsJson = False) -> int:
    """Removes runs with all that is in their folders; none is removed when one of them has not ended."""
    from podwright import launch
    from podwright.launch import Session

    found = launch.find_all(Session.open(), runs)
    _refuse_active(found)
    names = ", ".join(run.id for run in found)
    if not output.confirm(f"Remove {names} with logs, results and checkpoints?", yes):
        return 1
    for run in found:
        run.remove()
        output.say("removed", run.id)
    if as_json:
        output.print_json([run.id for run in found])
    return 0


def _refuse_active(runs: list[Run]) -> None:
    from podwright.spec.problems import Problem, Refusal

    active = [(run.id, state) for run in runs if (state := run.record().state) not in verdict.FINAL]
    if active:
        hint = f"`podwright cancel {' '.join(name for name, _ in active)}` ends them"
        why = "only runs that have ended are removed"
        raise Refusal(Problem("", None, None, name, f"is {state}; {why}", hint) for name, state in active)
