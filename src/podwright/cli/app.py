"""The command line as the command line library sees it; a command's file is imported when that command is asked for."""

from __future__ import annotations

import importlib
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from podwright.cli.commands import COMMANDS, Command, overview

# Plain help and no library tracebacks: the rich forms of both cost more start-up time than all else together.
_PLAIN: dict[str, Any] = {"rich_markup_mode": None, "pretty_exceptions_enable": False}
_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 80}


class LazyGroup(TyperGroup):
    """Knows the commands from the table alone and imports a command's file only when it is called."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Gives the names in the order of the overview."""
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Makes the one command that is asked for; None when there is no such command."""
        row = COMMANDS.get(cmd_name)
        return None if row is None else make_command(row)

    def get_help(self, ctx: Any) -> str:
        """Gives the same overview that is printed without this library."""
        return overview().rstrip("\n")


def make_command(row: Command) -> Any:
    """Makes the library's command object of a row of the table."""
    module = importlib.import_module(f"podwright.cli.{row.module}")
    single = typer.Typer(add_completion=False, context_settings=_CONTEXT, **_PLAIN)
    single.command(row.name, help=row.help, epilog=f"Example: {row.example}")(getattr(module, row.function))
    return typer.main.get_command(single)


def _print_version(wanted: bool) -> None:
    if wanted:
        from podwright import __version__

        print(f"podwright {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_print_version)
    ] = False,
) -> None:
    """Takes the options that stand before any command."""


def run_app(args: list[str]) -> int:
    """Parses the arguments and runs the command; returns the exit code the command gave, 0 when it gave none."""
    app = typer.Typer(cls=LazyGroup, context_settings=_CONTEXT, **_PLAIN)
    app.callback()(_root)
    try:
        code = typer.main.get_command(app)(args=args, prog_name="podwright", standalone_mode=False)
    except typer.Abort:
        return 130
    sys.stdout.flush()
    return code if isinstance(code, int) else 0
