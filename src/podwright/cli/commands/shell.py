"""`shell`: a shell beside the ranks of a run that runs."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from podwright.cli.options import RunRef

if TYPE_CHECKING:
    from podwright.launch import Run


def shell_command(
    run: RunRef,
    node: Annotated[int, typer.Option("--node", metavar="N", min=0, help="The node of the run, from 0.")] = 0,
) -> None:
    """Become the engine's own command for it, so that the terminal is the user's and the exit code the shell's."""
    from podwright.launch import Session, find

    with Session.open() as session:
        command = shell_of(find(session, run), node)
    sys.stdout.flush()
    os.execvp(command[0], command)


def shell_of(run: Run, node: int) -> list[str]:
    """Return the command that opens the shell; refuse where there is nothing to be beside."""
    check_beside(run, node, "a shell")
    return run.shell(node)


def check_beside(run: Run, node: int, what: str) -> None:
    """Refuse where there is no node to be beside: a sweep, a run that does not run, a number too high."""
    from podwright.spec.problems import refuse

    record, points = run.record(), run.folder.asked.points
    if points:
        raise refuse(f"{run.id} has {points} points", hint=f"name one, such as {run.id}-1")
    if record.state != "running":
        hint = f"`podwright wait {run.id}` waits"
        if record.is_final:
            hint = f"`podwright show {run.id}` says more"
        raise refuse(f"{run.id} is {record.state}; {what} needs a run that is running", hint=hint)
    if node >= record.nodes:
        nodes = "one node, which is 0" if record.nodes == 1 else f"nodes 0 to {record.nodes - 1}"
        raise refuse(f"{run.id} has {nodes}", field="--node")
