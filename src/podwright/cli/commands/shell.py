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
    """Becomes the engine's own command for it, so that the terminal is the user's and the exit code the shell's."""
    from podwright import launch
    from podwright.launch import Session

    command = shell_of(launch.find(Session.open(), run), node)
    sys.stdout.flush()
    os.execvp(command[0], command)


def shell_of(found: Run, node: int) -> list[str]:
    """Gives the command that opens the shell; refuses where there is nothing to be beside."""
    from podwright.spec.problems import refuse

    record = found.record()
    if found.folder.asked.points:
        raise refuse(f"{found.id} has {found.folder.asked.points} points", hint=f"name one, such as {found.id}-1")
    if record.state != "running":
        hint = f"`podwright show {found.id}` says more" if record.is_final else f"`podwright wait {found.id}` waits"
        raise refuse(f"{found.id} is {record.state}; a shell needs a run that is running", hint=hint)
    if node >= record.nodes:
        words = "has one node, which is 0" if record.nodes == 1 else f"has nodes 0 to {record.nodes - 1}"
        raise refuse(f"{found.id} {words}", field="--node")
    return found.shell(node)
