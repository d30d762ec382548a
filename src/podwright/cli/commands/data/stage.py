"""`data stage`: the files of a selection, copied to where nodes see them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from podwright.cli.commands.data.options import complete_name, open_catalog, shown_progress
from podwright.cli.options import AsJson
from podwright.cli.terminal import figures, output


def data_stage_command(
    selection: Annotated[
        str,
        typer.Argument(metavar="SELECTION[/SPLIT]", autocompletion=complete_name, help="What is copied."),
    ],
    to: Annotated[Path, typer.Option("--to", metavar="DIR", help="The folder it is copied to.")],
    verify: Annotated[
        bool, typer.Option("--verify", help="Read what is there already, too, and compare it by its SHA-256.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Copy the files of a selection to a folder, checked, and only what is not there yet."""
    with shown_progress() as progress:
        copied = open_catalog().stage(selection, to, progress, verify)
    if as_json:
        return output.print_json(copied.as_json())
    rate = figures.size(copied.bytes / copied.took_s) if copied.took_s else figures.NONE
    print(f"{copied.files} files, {figures.size(copied.bytes)}: {copied.copied} copied, {copied.reused} were there")
    return print(f"{copied.took_s:g} s, {rate}/s; scan it with `podwright data scan {to} --name DATASET`")
