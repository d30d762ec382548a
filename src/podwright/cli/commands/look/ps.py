"""`ps`: the runs there are, as a table; `best`: the best of some."""

from __future__ import annotations

import sys
import time
from typing import Annotated

import typer

from podwright import launch
from podwright.cli.options import AsJson, complete_run, complete_target, seconds_of
from podwright.cli.terminal import output
from podwright.cli.terminal.listing import LATEST, coloured, list_found, list_runs, listing
from podwright.spec.problems import refuse

Where = Annotated[
    str | None,
    typer.Option("--where", metavar="FILTER", help="Only those that fit, such as `loss<0.3 and tag=paper`."),
]
Sort = Annotated[
    str | None, typer.Option("--sort", metavar="COLUMN", help="The least first; with a dash before it the greatest.")
]
Columns = Annotated[
    str | None, typer.Option("--columns", metavar="A,B", help="Show these instead of the outcome, such as `lr,loss`.")
]
Tree = Annotated[bool, typer.Option("--tree", help="Show the points of each sweep behind it.")]


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
    where: Where = None,
    sort: Sort = None,
    columns: Columns = None,
    tree: Tree = False,
    as_json: AsJson = False,
) -> None:
    """List the runs there are, newest last."""
    earliest = None if since is None else time.time() - seconds_of(since, "--since")
    choice = launch.RunChoice(state, name, on, earliest, user)
    limit = None if everything else LATEST
    if (where, sort, columns, tree) == (None, None, None, False):
        return list_runs(choice, limit, as_json)
    shown = tuple(filter(None, (columns or "").split(",")))
    return list_found(launch.RunSearch(choice, where, sort, shown, tree, limit), as_json)


def best_command(
    name: Annotated[
        str,
        typer.Argument(metavar="NAME", help="A workload's name or a pattern, or a sweep.", autocompletion=complete_run),
    ],
    metric: Annotated[
        str | None, typer.Option("--metric", metavar="M", help="A result; that of the goal if not said.")
    ] = None,
    highest: Annotated[bool, typer.Option("--highest", help="More of it is better.")] = False,
    lowest: Annotated[bool, typer.Option("--lowest", help="Less of it is better.")] = False,
    as_json: AsJson = False,
) -> int:
    """Print the best run that has succeeded; 1 when none told the metric."""
    if highest and lowest:
        raise refuse("goes without --lowest", "only one end of it is the good one", field="--highest")
    request = launch.BestRequest(name, metric)
    if highest or lowest:
        request = launch.BestRequest(name, metric, "highest" if highest else "lowest")
    with launch.Session.open() as session:
        found = launch.best(session, request)
    if as_json:
        output.print_json(None if found is None else found.as_json())
    elif found is None:
        output.say("no run", f"of {name} has succeeded and told it; `podwright ps --name {name}` lists them")
    else:
        print("\n".join(coloured(listing([found], output.width_of(sys.stdout)), [found], sys.stdout)))
    return int(found is None)
