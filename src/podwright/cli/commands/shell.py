"""`shell`: a shell beside the ranks of a run that runs."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from podwright.cli.options import Node, RunRef, node_of

if TYPE_CHECKING:
    from podwright.launch import Run


def shell_command(
    run: RunRef,
    node: Node = "0",
) -> None:
    """Become the engine's own command for it, so that the terminal is the user's and the exit code the shell's."""
    from podwright.launch import Session, find

    with Session.open() as session:
        command = shell_of(find(session, run), node)
    sys.stdout.flush()
    os.execvp(command[0], command)


def shell_of(run: Run, node: str) -> list[str]:
    """Return the command that opens the shell; refuse where there is nothing to be beside."""
    return run.shell(node_beside(run, node, "a shell"))


def node_beside(run: Run, node: str, what: str) -> int:
    """Return the node's number; refuse where there is none to be beside: a sweep, or a run that does not run."""
    from podwright.spec.problems import refuse

    record, points = run.record(), run.folder.asked.points
    if points:
        raise refuse(f"{run.id} has {points} points", hint=f"name one, such as {run.id}-1")
    if record.state != "running":
        hint = f"`podwright wait {run.id}` waits"
        if record.is_final:
            hint = f"`podwright show {run.id}` says more"
        raise refuse(f"{run.id} is {record.state}; {what} needs a run that is running", hint=hint)
    return node_of(node, record)
