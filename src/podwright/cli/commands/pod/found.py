"""`pod runs`: what a user has on a pod, whichever home started it."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from podwright import launch
from podwright.cli.options import AsJson, complete_target
from podwright.cli.terminal import figures, output

if TYPE_CHECKING:
    from podwright.launch import RunsOnTarget

HEADS = ("run", "state", "nodes", "age", "here")
TargetRef = Annotated[
    str, typer.Argument(metavar="POD[:SCHEDULER]", help="Where to look.", autocompletion=complete_target)
]


def pod_runs_command(target: TargetRef, as_json: AsJson = False) -> None:
    """Ask the target for the runs of this user, and say which of them this home has."""
    with launch.Session.open() as session:
        listed = launch.runs_on(session, target)
    if as_json:
        return output.print_json(listed.as_json())
    if not listed.runs:
        return output.say("no runs", f"{target} has none of yours")
    print("\n".join(output.table(HEADS, _rows(listed), output.width_of(sys.stdout))), flush=True)
    if others := [run.asked.id for run in listed.runs if run.asked.id not in listed.here]:
        output.say("next", f"podwright import --from {target} {others[0]}")
    return None


def _rows(listed: RunsOnTarget) -> Iterator[tuple[str, ...]]:
    now = time.time()
    for run in listed.runs:
        asked = run.asked
        state = f"{run.state}, {figures.count(asked.points, 'point')}" if asked.points else run.state
        age = figures.duration(float(int(max(0.0, now - asked.created_at))))
        yield asked.id, state, str(asked.nodes), age, "yes" if asked.id in listed.here else "no"
