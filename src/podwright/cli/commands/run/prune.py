"""`prune`: old runs go, with what they left on their clusters."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from podwright import launch
from podwright.cli.options import AsJson, Yes, seconds_of
from podwright.cli.terminal import figures, output
from podwright.cli.terminal.verdict import UNREACHABLE
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.launch import Pruned


def prune_command(
    older: Annotated[
        str, typer.Option("--older", metavar="TIME", help="Only runs that ended longer ago than this.")
    ] = "30d",
    keep_last: Annotated[
        int, typer.Option("--keep-last", metavar="N", min=0, help="Keep the newest N that have ended.")
    ] = 0,
    checkpoints: Annotated[
        bool, typer.Option("--checkpoints", help="Remove only checkpoints, here and on clusters.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would go, and remove nothing.")] = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> int:
    """Remove runs that ended long ago; what cannot be reached is left and named."""
    older_s = seconds_of(older, "--older")
    with launch.Session.open() as session:
        prunable = launch.prunable(session, older_s, keep_last, checkpoints)
        if dry_run or not prunable.sizes:
            return _say(prunable.as_pruned(), "would go", as_json)
        if not _is_confirmed(prunable.as_pruned(), checkpoints, yes):
            return 1
        return _say(launch.prune_runs(session, prunable), "removed", as_json)


def _is_confirmed(planned: Pruned, checkpoints: bool, yes: bool) -> bool:
    what = figures.count(len(planned.runs), "run")
    if checkpoints:
        what = f"the checkpoints of {what}"
    if not yes and not sys.stdin.isatty():
        hint = "say --yes where nobody can be asked; --dry-run shows them"
        raise refuse(f"{what} would be removed, {figures.size(planned.size_bytes)}", hint, field="--yes")
    return output.confirm_destroying(f"Remove {what}, {figures.size(planned.size_bytes)}?", yes)


def _say(pruned: Pruned, word: str, as_json: bool) -> int:
    for run_id in pruned.runs:
        output.say(word, run_id)
    for left in pruned.left:
        output.say("left", f"{left.id}: {left.reason}")
    if as_json:
        output.print_json(pruned.as_json())
    else:
        print(f"{figures.count(len(pruned.runs), 'run')}, {figures.size(pruned.size_bytes)}", flush=True)
    return UNREACHABLE if any(left.is_away for left in pruned.left) else 0
