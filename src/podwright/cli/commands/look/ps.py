"""`ps`: the runs there are, as a table."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from podwright import launch
from podwright.cli.options import AsJson, complete_target, seconds_of
from podwright.cli.terminal.listing import LATEST, list_runs


def complete_state(incomplete: str) -> list[str]:
    """Return the states that begin like this."""
    return [state for state in launch.STATES if state.startswith(incomplete)]


def ps_command(
    everything: Annotated[bool, typer.Option("--all", "-a", help="List all runs, not only the latest 20.")] = False,
    state: Annotated[
        str | None,
        typer.Option("--state", metavar="S", help="Only runs in this state.", autocompletion=complete_state),
    ] = None,
    name: Annotated[
        str | None, typer.Option("--name", metavar="N", help="Only of this workload; `*` stands for anything.")
    ] = None,
    on: Annotated[
        str | None,
        typer.Option("--on", metavar="TARGET", help="Only on this target or pod.", autocompletion=complete_target),
    ] = None,
    since: Annotated[
        str | None, typer.Option("--since", metavar="TIME", help="Only those started since, such as `2d`.")
    ] = None,
    user: Annotated[
        str | None,
        typer.Option("--user", metavar="U", help="What this user shares, or `all` beside your own runs."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the runs there are, newest last."""
    earliest = None if since is None else time.time() - seconds_of(since, "--since")
    list_runs(launch.RunChoice(state, name, on, earliest, user), None if everything else LATEST, as_json)
