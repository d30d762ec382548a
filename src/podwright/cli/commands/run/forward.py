"""`forward`: a port of a run on this machine, or for others by a Route."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Annotated

import typer

from podwright.cli.commands.run.shell import node_beside
from podwright.cli.options import AsJson, Node, RunRef
from podwright.cli.terminal.output import print_json, say

if TYPE_CHECKING:
    from podwright.launch import Run, Session
    from podwright.runs import RunFolder

LOOK_EVERY_S = 2.0
LAST_PORT = 65535
HERE = "local"
"""The engine whose ports are this machine's own."""


def forward_command(
    run: RunRef,
    port: Annotated[
        str, typer.Argument(metavar="[HERE:]PORT", help="A port of the run; HERE is the one on this machine, 0 any.")
    ],
    node: Node = "0",
    route: Annotated[bool, typer.Option("--route", help="Make a Route for others instead (OpenShift).")] = False,
    as_json: AsJson = False,
) -> None:
    """Print the address, and keep it open until Ctrl-C or the end of the run."""
    from podwright.launch import Session, find

    here, there = ports_of(port)
    with Session.open() as session:
        followed = find(session, run)
        number = node_beside(followed, node, "a port")
        with _door(session, followed.folder, number, (here, there), route) as url:
            if as_json:
                print_json({"run": followed.id, "node": number, "port": there, "url": url})
            else:
                print(url, flush=True)
            say("forward", f"port {there} of node {number} of {followed.id}, until it ends or Ctrl-C")
            with suppress(KeyboardInterrupt):
                wait_for_end(followed)


def _door(
    session: Session, run: RunFolder, node: int, ports: tuple[int, int], route: bool
) -> AbstractContextManager[str]:
    """Return what keeps the port open, and its address."""
    from podwright.launch.forward import expose

    here, there = ports
    if route:
        return expose(session, run, node, there)
    if run.asked.engine == HERE and here == there:
        say("here", "the run is on this machine, and so is its port")
        return nullcontext(f"http://127.0.0.1:{there}")
    return _forwarded(session, run, node, ports)


@contextmanager
def _forwarded(session: Session, run: RunFolder, node: int, ports: tuple[int, int]) -> Iterator[str]:
    from podwright.launch.forward import PortForward

    here, there = ports
    with closing(PortForward(session, run, node, there, lambda sentence: say("closed", sentence))) as forward:
        yield forward.open(here)


def wait_for_end(run: Run) -> None:
    """Wait until the run has ended; a target that is silent for a while has ended nothing."""
    while not (record := run.record()).is_final:
        time.sleep(LOOK_EVERY_S)
    say(record.state, f"{run.id} has ended, and its port with it")


def ports_of(text: str) -> tuple[int, int]:
    """Return the port here and the port there, of `PORT` or `HERE:PORT`."""
    from podwright.spec.problems import refuse, short

    here, _, there = text.rpartition(":")
    numbers = [int(number) for number in (here or there, there) if number.isascii() and number.isdigit()]
    if len(numbers) == 2 and numbers[0] <= LAST_PORT and 0 < numbers[1] <= LAST_PORT:
        return numbers[0], numbers[1]
    raise refuse(f'"{short(text)}" is no port', hint="such as 6006, or 8006:6006 for another one here", field="PORT")
