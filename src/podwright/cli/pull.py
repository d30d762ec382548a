"""`pull`: results and checkpoints to this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from podwright.cli import talk
from podwright.cli.options import AsJson, RunRef


def pull_command(
    run: RunRef,
    paths: Annotated[
        list[str] | None, typer.Argument(metavar="[PATH...]", help="Inside the run's folder; the default is `results`.")
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("--to", metavar="DIR", help="The folder to copy into; the default is the run's id."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Copies and prints what was copied, a path a line."""
    from podwright import launch
    from podwright.runs import Home

    found = launch.find(Home.open(), run)
    target = to or Path(found.id)
    copied = [str(path) for path in found.pull(paths or ["results"], target)]
    if as_json:
        return talk.print_json(copied)
    for path in copied:
        print(path)
    return talk.say("pulled", f"{len(copied)} files to {target}")
