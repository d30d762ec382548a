"""How a command that could not do its work ends: what is printed where, and with which exit code."""

from __future__ import annotations

import difflib
import errno
import os
import sys
import traceback
from typing import TYPE_CHECKING

import typer

from podwright.cli import crash
from podwright.cli.table import COMMANDS

if TYPE_CHECKING:
    from podwright.spec.problems import Refusal

FAULT = 70

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
    """Prints why the command ended and returns the exit code; only a fault of ours has no refusal."""
    refusal = as_refusal(error, args)
    if refusal is None:
        return _fault(error, args)
    if wants_json(args):
        import json

        print(json.dumps(refusal.as_json(), indent=2), flush=True)
    else:
        print(refusal, file=sys.stderr, flush=True)
    return refusal.exit_code


def code_of(error: Exception, args: list[str]) -> int:
    """Gives the exit code alone, for when nobody reads the words."""
    refusal = as_refusal(error, args)
    return FAULT if refusal is None else refusal.exit_code


def wants_json(args: list[str]) -> bool:
    """Tells whether a program reads stdout; asked of the bare arguments, since they may be what could not be parsed."""
    return "--json" in (args[: args.index("--")] if "--" in args else args)


def as_refusal(error: Exception, args: list[str]) -> Refusal | None:
    """Gives what the user can mend about an error, or None when it is not theirs to mend."""
    from podwright.spec.problems import Refusal, refuse

    if isinstance(error, Refusal):
        return error
    if isinstance(error, typer.TyperException):
        return _misused(error, _called(args))
    if isinstance(error, OSError) and error.errno in _MENDABLE:
        message, hint = _MENDABLE[error.errno]
        return refuse(message, hint, file=str(error.filename or ""))
    return None


def _called(args: list[str]) -> str:
    """Gives the command that was called, as far as it is one."""
    row = COMMANDS.get(args[0])
    inner = row.commands.get(args[1]) if row is not None and len(args) > 1 else None
    return " ".join(["podwright", *((inner or row).name.split() if row is not None else [])])


def _fault(error: Exception, args: list[str]) -> int:
    from podwright.spec.problems import refuse

    if os.environ.get("PODWRIGHT_DEBUG") == "1":
        traceback.print_exception(error)
    what, where = crash.describe(error, args)
    print(f"{what}\n{where}", file=sys.stderr)
    if wants_json(args):
        import json

        print(json.dumps(refuse(what, where).as_json(), indent=2))
    return FAULT


def _misused(error: typer.TyperException, command: str) -> Refusal:
    """Says in our words what the library found wrong with the command line.

    Its kinds of error are told apart by what they carry: the classes themselves are not public.
    """
    from podwright.spec.problems import refuse

    hint = f"`{command} --help` shows what it takes"
    param, option = getattr(error, "param", None), getattr(error, "option_name", None)
    if param is not None:
        missing = type(error).__name__ == "MissingParameter"
        return refuse("is missing" if missing else _lower(error.message), hint, field=_param_name(param))
    if option is not None:
        return _misused_option(option, error, command)
    if "No such command" in error.message:
        return _no_such_command(error, command)
    extra = error.message.partition("extra argument(s) (")[2].rstrip(")")
    return refuse("is one argument too many", hint, field=extra) if extra else refuse(_lower(error.message), hint)


def _misused_option(option: str, error: typer.TyperException, command: str) -> Refusal:
    from podwright.spec.problems import refuse

    if type(error).__name__ != "NoSuchOption":
        value = "takes no value" if "not take" in error.message else "needs a value"
        return refuse(value, f"`{command} --help` shows what it takes", field=option)
    # The library sorts its suggestions by name; the closest one is what was meant.
    close = difflib.get_close_matches(option, getattr(error, "possibilities", None) or (), n=1)
    hint = f"did you mean `{close[0]}`?" if close else f"`{command} --help` shows what it takes"
    return refuse("unknown option", hint, field=option)


def _no_such_command(error: typer.TyperException, command: str) -> Refusal:
    from podwright.spec.problems import refuse

    before = command.split()[1:]
    known = COMMANDS[before[0]].commands if before else COMMANDS
    name = error.message.split("'")[1] if "'" in error.message else error.message
    close = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean `{command} {close[0]}`?" if close else f"the commands are {', '.join(known)}"
    return refuse("unknown command", hint, field=name)


def _param_name(param: object) -> str:
    """Gives the name as it stands in the help: the long option, or the argument in capitals."""
    if getattr(param, "param_type_name", "") == "option":
        return str(max(getattr(param, "opts", ["option"]), key=len))
    return str(getattr(param, "metavar", None) or getattr(param, "name", "")).strip("[].")


def _lower(message: str) -> str:
    text = message.strip().rstrip(".")
    return text[:1].lower() + text[1:]
