"""`pull`: results and checkpoints to this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from podwright.cli.options import AsJson, RunRef
from podwright.cli.terminal import output
from podwright.cli.terminal.files import in_words


def pull_command(
    run: RunRef,
    paths: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PATH...]", help="Inside the run's folder; the default is results and checkpoints."),
    ] = None,
    to: Annotated[
        Path,
        typer.Option(
            "--to", metavar="DIR", help="Copy into the folder DIR/RUN; the default is here.", show_default=False
        ),
    ] = Path(),
    as_json: AsJson = False,
) -> None:
    """Copy and print what was copied, a path a line."""
    from podwright.launch import Session, find

    with Session.open() as session:
        pulled = find(session, run)
        with in_words(to):
            to.mkdir(parents=True, exist_ok=True)
        copied = [str(path) for path in pulled.pull(paths or [], to)]
    if as_json:
        return output.print_json(copied)
    if not copied:
        return output.say("nothing", f"{pulled.id} has left no results and no checkpoints")
    return print("\n".join(copied), flush=True)
