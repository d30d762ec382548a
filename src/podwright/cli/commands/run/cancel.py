"""`cancel` and `rm`: the two commands that end something."""

from __future__ import annotations

from typing import TYPE_CHECKING

from podwright import launch
from podwright.cli.options import AsJson, RunRefs, Yes
from podwright.cli.terminal import output

if TYPE_CHECKING:
    from podwright.launch import Cancelled


def cancel_command(runs: RunRefs, yes: Yes = False, as_json: AsJson = False) -> int:
    """Cancel runs; one by name is meant as said, several are asked about."""
    if len(runs) > 1 and not output.confirm(f"Cancel {len(runs)} runs?", yes):
        return 1
    documents = []
    with launch.Session.open() as session:
        for cancelled in launch.cancel_named(session, runs):
            output.say(*_sentence(cancelled))
            documents.append(cancelled.record.as_json())
    if as_json:
        output.print_one_or_all(documents)
    return 0


def _sentence(cancelled: Cancelled) -> tuple[str, str]:
    record = cancelled.record
    if cancelled.is_stray:
        return "asked", f"{record.id} to end: its folder is gone, its processes are not"
    if cancelled.was_over:
        return record.state, f"{record.id} had ended before"
    return (record.state, record.id) if record.is_final else ("asked", f"{record.id} to end")


def rm_command(runs: RunRefs, yes: Yes = False, as_json: AsJson = False) -> int:
    """Remove runs with all that is in their folders; none is removed when one of them has not ended.

    A run whose target does not answer is removed here alone, where that was said with `--yes`.
    """
    with launch.Session.open() as session:
        named = launch.removable(session, runs, silent_too=yes)
        ids = [run.id for run in named]
        if not output.confirm_destroying(f"Remove {', '.join(ids)} with logs, results and checkpoints?", yes):
            return 1
        for removal in launch.remove_runs(session, named, silent_too=yes):
            output.say("removed", removal.id)
            for sentence in removal.left:
                output.say("left", sentence)
    if as_json:
        output.print_json(ids)
    return 0
