"""`forward`: a port of a run on this machine, or for others by a Route."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

import typer

from podwright import launch
from podwright.cli.commands.run.shell import node_beside
from podwright.cli.options import AsJson, Node, RunRef
from podwright.cli.terminal.output import print_json, say
from podwright.spec.problems import refuse, short

LAST_PORT = 65535


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
    here, there = ports_of(port)
    with launch.Session.open() as session:
        followed = launch.find(session, run)
        number = node_beside(followed, node, "a port")
        request = launch.PortRequest(followed.folder, number, here, there, route)
        if request.is_here:
            say("here", "the run is on this machine, and so is its port")
        with launch.open_port(session, request, lambda sentence: say("closed", sentence)) as url:
            if as_json:
                print_json({"run": followed.id, "node": number, "port": there, "url": url})
            else:
                print(url, flush=True)
            say("forward", f"port {there} of node {number} of {followed.id}, until it ends or Ctrl-C")
            with suppress(KeyboardInterrupt):
                ended = launch.until_it_ends(session, followed)
                say(ended.state, f"{followed.id} has ended, and its port with it")


def ports_of(text: str) -> tuple[int, int]:
    """Return the port here and the port there, of `PORT` or `HERE:PORT`."""
    here, _, there = text.rpartition(":")
    numbers = [int(number) for number in (here or there, there) if number.isascii() and number.isdigit()]
    if len(numbers) == 2 and numbers[0] <= LAST_PORT and 0 < numbers[1] <= LAST_PORT:
        return numbers[0], numbers[1]
    raise refuse(f'"{short(text)}" is no port', hint="such as 6006, or 8006:6006 for another one here", field="PORT")
