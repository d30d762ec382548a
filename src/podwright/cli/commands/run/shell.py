"""`shell`: a shell beside the ranks of a run that runs."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from podwright import launch
from podwright.cli.options import Node, RunRef, node_of
from podwright.cli.terminal.output import say
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.launch import Run


def shell_command(run: RunRef, node: Node = "0") -> None:
    """Become the engine's own command for it, so that the terminal is the user's and the exit code the shell's."""
    with launch.Session.open() as session:
        beside = launch.find(session, run)
        number = node_beside(beside, node, "a shell")
        command = beside.shell(number)
        if processes := beside.folder.rank_processes(number):
            pairs = [f"rank {rank} is process {pid}" for rank, pid in processes.items()]
            say("ranks", "\n".join(pairs))
    sys.stdout.flush()
    os.execvp(command[0], command)


def node_beside(run: Run, node: str, what: str) -> int:
    """Return the node's number; refuse where there is none to be beside: a sweep, or a run that does not run."""
    record, points = run.record(), run.folder.asked.points
    if points:
        raise refuse(f"{run.id} has {points} points", hint=f"name one, such as {run.id}-1")
    if record.state != "running":
        hint = f"`podwright wait {run.id}` waits"
        if record.is_final:
            hint = f"`podwright show {run.id}` says more"
        raise refuse(f"{run.id} is {record.state}; {what} needs a run that is running", hint=hint)
    return node_of(node, record)
