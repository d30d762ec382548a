"""`render`: what a run would start, file by file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from podwright import launch, spec
from podwright.cli.options import AsJson, Sets, Target, WorkloadFile
from podwright.cli.terminal.files import write_files
from podwright.cli.terminal.output import print_json, say, say_warnings


def render_command(
    workload: WorkloadFile,
    on: Target = "local",
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Write the files into this folder.")] = None,
    sets: Sets = [],  # noqa: B006 - the library makes a new list for each call
    as_json: AsJson = False,
) -> None:
    """Print the files that a run would be started with, by the same function that starts it."""
    loaded = spec.load_workload(workload, sets)
    say_warnings(loaded.warnings())
    files = launch.render(loaded, on=on)
    if out is not None:
        for path in write_files(files, out):
            say("wrote", str(path))
    if as_json:
        return print_json(files)
    if out is None:
        sys.stdout.write("\n".join(f"# {name}\n{text.rstrip()}\n" for name, text in files.items()))
    return None
