"""`init`: a workload file for a script, a batch script or a task of SkyPilot that is there already."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from podwright import drafts
from podwright.cli.options import AsJson
from podwright.cli.terminal import output
from podwright.cli.terminal.files import in_words

_BASE = "python:3.11-slim"


def init_command(
    script: Annotated[
        Path, typer.Argument(metavar="SCRIPT", help="A Python program, a shell or batch script, or a SkyPilot task.")
    ],
    arguments: Annotated[
        list[str], typer.Argument(metavar="[-- WORD...]", help="What it is started with, instead of a guess.")
    ] = [],  # noqa: B006 - the library makes a new list for each call
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Where to write; workload.yaml beside it if not said.")
    ] = None,
    base: Annotated[str, typer.Option("--base", metavar="IMAGE", help="The image that its own starts from.")] = _BASE,
    as_json: AsJson = False,
) -> None:
    """Look at a script and write the workload that runs it; the path goes to stdout, what was guessed to stderr."""
    request = drafts.DraftRequest(script, tuple(arguments), out, base)
    with in_words(request.file):
        draft = drafts.write_draft(request)
    if as_json:
        return output.print_json(draft.as_json())
    for note in draft.guess.notes:
        output.say("guessed", note)
    if missing := draft.guess.missing:
        output.say("missing", f"{', '.join(missing)}: {draft.guess.advice}")
    output.say("next", f"podwright run {draft.file}")
    return print(draft.file, flush=True)
