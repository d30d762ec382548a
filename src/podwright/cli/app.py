"""The command line as the command line library sees it; a command's file is imported when that command is asked for."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup

from podwright.cli.parameters import convert_plainly
from podwright.cli.table import COMMANDS, Command, overview, overview_of

# Plain help and no library tracebacks: the rich forms of both cost more start-up time than all else together.
_PLAIN: dict[str, Any] = {"rich_markup_mode": None, "pretty_exceptions_enable": False}
_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 80}


class _Plain:
    """Converts all parameters by our own means, the help option too."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters, each with our converter."""
        params: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        convert_plainly(params)
        return params


class LazyGroup(_Plain, TyperGroup):
    """Knows the commands from the table alone and imports a command's file only when it is called."""

    row: Command | None = None
    """The command whose commands these are; None for the whole program."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names in the order of the overview."""
        return list(self._rows())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Make the one command that is asked for; return None when there is no such command."""
        row = self._rows().get(cmd_name)
        if row is None:
            return None
        return make_command(row)

    def get_help(self, ctx: Any) -> str:
        """Return the same overview that is printed without this library."""
        if self.row is None:
            return overview().rstrip("\n")
        return overview_of(self.row).rstrip("\n")

    def _rows(self) -> dict[str, Command]:
        if self.row is None:
            return COMMANDS
        return self.row.commands


class PlainCommand(_Plain, TyperCommand):
    """A command whose help has the arguments first, as a user types them, and no words of a Python programmer."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        """Return what follows the command's name in the usage line."""
        return [*(str(param.metavar) for param in self._arguments()), "[OPTIONS]"]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write a list of arguments and one of options, a line each."""
        arguments = [(str(param.metavar), str(getattr(param, "help", ""))) for param in self._arguments()]
        options = [param for param in self.get_params(ctx) if not isinstance(param, TyperArgument)]
        # An option that is hidden has no help record.
        records = filter(None, [option.get_help_record(ctx) for option in options])
        for title, rows in (("Arguments", arguments), ("Options", list(records))):
            if rows:
                with formatter.section(title):
                    formatter.write_dl(rows)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Write the example on a line of its own, ready to be copied."""
        formatter.write(f"\nExample:\n  {self.epilog}\n")

    def _arguments(self) -> list[TyperArgument]:
        return [param for param in self.params if isinstance(param, TyperArgument)]


class WordsCommand(PlainCommand):
    """A command among whose words are some that begin with a dash and are no options, such as `-draft`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Set its own options apart, which take no values, and read all else as words."""
        options = [word for word in args if word.startswith("--") or word == "-h"]
        words = [word for word in args if word not in options]
        return list(super().parse_args(ctx, [*filter("--".__ne__, options), "--", *words]))


def make_command(row: Command) -> Any:
    """Make the library's command object of a row of the table."""
    if row.commands:
        group = _group(_nothing)
        group.row = row
        return group
    module = importlib.import_module(f"podwright.cli.commands.{row.module}")
    single = typer.Typer(add_completion=False, context_settings=_CONTEXT, **_PLAIN)
    shape = WordsCommand if getattr(module, "WORDS_WITH_A_DASH", False) else PlainCommand
    single.command(row.name.split()[-1], cls=shape, help=row.help, epilog=row.example)(getattr(module, row.function))
    return typer.main.get_command(single)


def _root(
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Take the options that stand before a command; `--version` alone is answered before this file is imported."""


def _nothing() -> None:
    """Take no options: those of a command that has commands of its own are theirs."""


def _group(callback: Callable[..., None]) -> Any:
    app = typer.Typer(cls=LazyGroup, context_settings=_CONTEXT, add_completion=callback is _root, **_PLAIN)
    app.callback()(callback)
    return typer.main.get_command(app)


def _whole() -> Any:
    return _group(_root)


def complete(args: list[str]) -> int:
    """Answer a shell that asks what could follow; what it asks is in the environment."""
    return int(_whole().main(args=args, prog_name="podwright", standalone_mode=False) or 0)


def run_app(args: list[str]) -> int:
    """Parse the arguments and run the command; return the exit code the command gave, 0 when it gave none."""
    command = _whole()
    # Not the library's own `main`, which has ends of its own for Ctrl-C and for a reader that went away.
    try:
        # The library takes the words out of the list that it is given, and who explains an error reads them again.
        with command.make_context("podwright", list(args)) as context:
            code = command.invoke(context)
    except typer.Exit as end:
        code = end.exit_code
    sys.stdout.flush()
    if not isinstance(code, int):
        return 0
    return code
