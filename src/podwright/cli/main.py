"""The entry of the command line: answers the overview at once, hands on all else, turns every end into an exit code.

Nothing but the standard library is imported at the top, so that `podwright --help` starts almost as fast as Python.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # `typing` takes longer to import than this file to run
if TYPE_CHECKING:
    from collections.abc import Callable

INTERRUPTED = 130


def main(argv: list[str] | None = None, answer: Callable[[list[str]], int] | None = None) -> int:
    """Run one command line and return its exit code; no exception and no traceback leaves it.

    `answer` does what the arguments ask for; a test may hand in its own.
    """
    _make_streams_safe()
    answer = answer or _answer
    if argv is not None:
        return _code_of(list(argv), answer)
    code = _code_of(sys.argv[1:], answer)
    _leave(code)
    return code


def _code_of(args: list[str], answer: Callable[[list[str]], int]) -> int:
    try:
        return answer(args)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return _reader_has_gone()
    except SystemExit as end:
        if isinstance(end.code, int):
            return end.code
        return int(end.code is not None)
    except Exception as error:
        return _explained(error, args)


def _leave(code: int) -> None:
    """End the process at once: taking the interpreter and its libraries down takes longer than many commands do."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except BrokenPipeError:
        _reader_has_gone()
    except OSError:
        code = code or 1
    os._exit(code)


def _answer(args: list[str]) -> int:
    if "_PODWRIGHT_COMPLETE" in os.environ:
        from podwright.cli.app import complete

        return complete(args)
    if not args or args in (["-h"], ["--help"]):
        from podwright.cli.table import overview

        if args:
            print(overview(), end="", flush=True)
            return 0
        # Nothing was asked for: that is a wrong command line, and a script shall notice.
        print(overview(), end="", file=sys.stderr, flush=True)
        return 2
    if args[0] == "--version":
        from podwright import __version__

        print(f"podwright {__version__}", flush=True)
        return 0
    if args == ["ps"]:
        # What people type most, and scripts ask every second: a third of its time would go to the command line library.
        from podwright.cli.terminal.listing import list_runs

        list_runs()
        return 0
    from podwright.cli.app import run_app

    return run_app(args)


def _explained(error: Exception, args: list[str]) -> int:
    from podwright.cli import errors

    try:
        return errors.explain(error, args)
    except BrokenPipeError:
        return _reader_has_gone() or errors.code_of(error, args)


def _make_streams_safe() -> None:
    """Open nothing where a stream was closed by the caller, and show a character a terminal lacks by its number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: PTH123, SIM115 - pathlib is slow to import; held to the end
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _reader_has_gone() -> int:
    """End quietly when whoever read our output (`| head`) has had enough.

    Both streams are pointed at nothing, since Python flushes them once more on its way out and would complain.
    """
    nothing = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except BrokenPipeError:
            os.dup2(nothing, stream.fileno())
    return 0
