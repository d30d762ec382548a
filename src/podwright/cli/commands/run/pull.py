"""`pull`: results and checkpoints to this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podwright import launch
from podwright.cli.options import AsJson, RunRef
from podwright.cli.terminal import output
from podwright.cli.terminal.files import in_words

if TYPE_CHECKING:
    from podwright.runs.copies import LeftOut

MAX_SAID = 20


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
    """Copy and print what was copied, a path a line; say what was left out."""
    left_out: list[LeftOut] = []
    with launch.Session.open() as session:
        pulled = launch.find(session, run)
        with in_words(to):
            to.mkdir(parents=True, exist_ok=True)
            copied = [str(path) for path in pulled.pull(paths or [], to, left_out.append)]
    if as_json:
        return output.print_json({"copied": copied, "left_out": [gap.as_json() for gap in left_out]})
    for gap in left_out[:MAX_SAID]:
        output.say("left out", f"{_printable(gap.path)}: {gap.why}")
    if len(left_out) > MAX_SAID:
        output.say("left out", f"{len(left_out) - MAX_SAID} more; --json names all")
    if not copied and not left_out:
        return output.say("nothing", f"{pulled.id} has left no results and no checkpoints")
    return print("\n".join(copied), flush=True)


def _printable(path: str) -> str:
    if path.isprintable():
        return path
    return repr(path)[1:-1]
