"""`console`: the home in a browser."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from podwright import console
from podwright.cli.options import AsJson
from podwright.cli.terminal import output


def console_command(
    listen: Annotated[
        str, typer.Option("--listen", metavar="ADDRESS:PORT", help="Where it is reached; port 0 is any.")
    ] = "127.0.0.1:8080",
    base_path: Annotated[
        str, typer.Option("--base-path", metavar="PATH", help="What a proxy puts it below, such as /podwright.")
    ] = "",
    no_open: Annotated[bool, typer.Option("--no-open", help="Print the link, and open no browser.")] = False,
    as_json: AsJson = False,
) -> None:
    """Serve until it is ended."""

    def say(url: str) -> None:
        if as_json:
            output.print_json({"url": url})
        else:
            print(url, flush=True)
        sys.stdout.flush()
        if not no_open and not as_json and sys.stdout.isatty():
            typer.launch(url)

    console.serve_console(console.ConsoleWords(listen, base_path), say)
