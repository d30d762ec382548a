"""How a command that could not do its work ends: what is printed where, and with which exit code."""

from __future__ import annotations

import errno
import json
import os
import re
import sys
import traceback

import typer

from podwright.cli import crash
from podwright.cli.table import COMMANDS, EVERY, Command
from podwright.cli.terminal.output import plain
from podwright.spec.problems import Refusal, refuse

FAULT = 70
PROGRAM = "podwright"

# What a user can mend although it is neither in a file of ours nor on the command line.
_MENDABLE = {
    errno.ENOSPC: ("there is no space left", "free some, or set PODWRIGHT_HOME to a folder on another disk"),
    errno.EDQUOT: ("your disk quota is used up", "free some, or set PODWRIGHT_HOME to a folder on another disk"),
    errno.EROFS: ("it is on a read-only file system", "set PODWRIGHT_HOME to a folder that can be written"),
    errno.EACCES: ("you may not use it", "change its permissions, or set PODWRIGHT_HOME to a folder of your own"),
    errno.EPERM: ("you may not do that to it", "change its permissions, or set PODWRIGHT_HOME to a folder of your own"),
    errno.EMFILE: ("too many files are open", "raise the limit with `ulimit -n`"),
}


def explain(error: Exception, args: list[str]) -> int:
    """Print why the command ended and return the exit code; only a fault of ours has no refusal."""
    refusal = as_refusal(error, args)
    if refusal is None:
        return _fault(error, args)
    if wants_json(args):
        print(json.dumps(refusal.as_json(), indent=2), flush=True)
    else:
        print(plain(str(refusal)), file=sys.stderr, flush=True)
    return refusal.exit_code


def code_of(error: Exception, args: list[str]) -> int:
    """Return the exit code alone, for when nobody reads the words."""
    refusal = as_refusal(error, args)
    if refusal is None:
        return FAULT
    return refusal.exit_code


def wants_json(args: list[str]) -> bool:
    """Tell whether a program reads stdout; asked of the bare arguments, since they may be what could not be parsed."""
    for arg in args:
        if arg in ("--", "--json"):
            return arg == "--json"
    return False


def as_refusal(error: Exception, args: list[str]) -> Refusal | None:
    """Return what the user can mend about an error, or None when it is not theirs to mend."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, typer.TyperException):
        return _misused(error, args)
    if isinstance(error, OSError) and error.errno in _MENDABLE:
        message, hint = _MENDABLE[error.errno]
        return refuse(message, hint, file=str(error.filename or ""))
    return None


def _called(args: list[str]) -> str:
    """Return the command that was called, as far as it is one."""
    row = COMMANDS.get(args[0])
    if row is None:
        return PROGRAM
    word = args[1] if len(args) > 1 else ""
    return f"{PROGRAM} {row.commands.get(word, row).name}"


def _fault(error: Exception, args: list[str]) -> int:
    if os.environ.get("PODWRIGHT_DEBUG") == "1":
        traceback.print_exception(error)
    what, where = crash.describe(error, args)
    print(plain(f"{what}\n{where}"), file=sys.stderr)
    if wants_json(args):
        print(json.dumps(refuse(what, where).as_json(), indent=2))
    return FAULT


def _misused(error: typer.TyperException, args: list[str]) -> Refusal:
    """Say in our words what the library found wrong with the command line.

    Its kinds of error are told apart by what they carry: the classes themselves are not public.
    """
    command = _called(args)
    hint = _see_help(command)
    param, option = getattr(error, "param", None), getattr(error, "option_name", None)
    if param is not None:
        if type(error).__name__ == "MissingParameter":
            return refuse("is missing", hint, field=_param_name(param))
        return refuse(_lower(error.message), hint, field=_param_name(param))
    if option is not None:
        return _misused_option(option, error, args)
    if "No such command" in error.message:
        return _no_such_command(error, command)
    extra = error.message.partition("extra argument(s) (")[2].rstrip(")")
    if extra:
        return refuse("is one argument too many", hint, field=extra)
    return refuse(_lower(error.message), hint)


def _misused_option(option: str, error: typer.TyperException, args: list[str]) -> Refusal:
    from podwright.spec.nearest import did_you_mean

    command = _called(args)
    if type(error).__name__ == "NoSuchOption":
        later = [word for word in args if word in _commands_of(command)]
        if later:
            return refuse("stands before the command", f"put it behind: `{command} {later[-1]} {option}`", field=option)
        # The library sorts its suggestions by name; the closest one is what was meant.
        hint = did_you_mean(option, getattr(error, "possibilities", None) or (), _see_help(command))
        return refuse("unknown option", hint, field=option)
    if "not take" in error.message:
        return refuse("takes no value", _see_help(command), field=option)
    return refuse("needs a value", _see_help(command), field=option)


def _no_such_command(error: typer.TyperException, command: str) -> Refusal:
    from podwright.spec.nearest import did_you_mean

    known = _commands_of(command)
    # The library quotes what it does not know: No such command 'rn'.
    quoted = re.search("'([^']*)", error.message)
    name = quoted[1] if quoted else error.message
    hint = did_you_mean(name, known, f"the commands are {', '.join(known)}", shown=f"{command} {{}}".format)
    return refuse("unknown command", hint, field=name)


def _commands_of(command: str) -> dict[str, Command]:
    """Return the commands that may follow: those of the program, or those that a command has of its own."""
    if command == PROGRAM:
        return COMMANDS
    return EVERY[command.removeprefix(f"{PROGRAM} ")].commands


def _see_help(command: str) -> str:
    return f"`{command} --help` shows what it takes"


def _param_name(param: object) -> str:
    """Return the name as it stands in the help: the long option, or the argument in capitals."""
    if getattr(param, "param_type_name", "") == "option":
        return str(max(getattr(param, "opts", ["option"]), key=len))
    return str(getattr(param, "metavar", None) or getattr(param, "name", "")).strip("[].")


def _lower(message: str) -> str:
    text = message.strip().rstrip(".")
    return text[:1].lower() + text[1:]
