"""`init`: a workload file for a script that is there already."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podwright.cli.options import AsJson
from podwright.cli.terminal import output
from podwright.cli.terminal.files import in_words

if TYPE_CHECKING:
    from podwright.drafts.draft import Guess, ScriptFacts
    from podwright.drafts.script import ScriptContents

_NAME = "workload.yaml"
_REQUIREMENTS = ("requirements.txt", "requirements/base.txt")
_BASE = "python:3.11-slim"
_MAX_BYTES = 1 << 20


def init_command(
    script: Annotated[Path, typer.Argument(metavar="SCRIPT", help="A Python program that works on one machine.")],
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
    from podwright import spec

    target = out or script.parent / _NAME
    draft = _guess(script, target, base, tuple(arguments))
    _write(target, draft.text)
    workload = spec.load_workload(target)
    if as_json:
        document = {"file": str(target), "name": workload.name, "guessed": list(draft.notes)}
        return output.print_json({**document, "missing": list(draft.missing)})
    for note in draft.notes:
        output.say("guessed", note)
    if draft.missing:
        output.say("missing", f"{', '.join(draft.missing)}: the script wants it; add it to the command")
    output.say("next", f"podwright run {target}")
    return print(target, flush=True)


def _guess(script: Path, target: Path, base: str, arguments: tuple[str, ...]) -> Guess:
    from podwright.drafts.draft import guess

    if target.exists():
        raise _refusal(f"{target} is there already", "remove it first, or write elsewhere with --out")
    folder = target.parent.resolve()
    contents = _look(script)
    if not script.resolve().is_relative_to(folder):
        raise _refusal(f"{script} is not below {target.parent}", "the workload's folder is what travels with a run")
    return guess(contents, _facts(script, folder, contents, base, arguments))


def _look(script: Path) -> ScriptContents:
    from podwright.drafts.script import look

    text = _text(script)
    beside = {path.stem: _text(path) for path in sorted(script.parent.glob("*.py")) if path != script}
    beside |= {path.parent.name: _text(path) for path in sorted(script.parent.glob("*/__init__.py"))}
    try:
        return look(text, beside)
    except (SyntaxError, ValueError, RecursionError) as error:
        where, why = str(script), str(error)
        if isinstance(error, SyntaxError):
            where = f"{error.filename or script}:{error.lineno or 1}"
            why = error.msg
        raise _refusal(f"{where}: is not read as Python 3: {why}", "write the workload by hand") from None


def _facts(script: Path, folder: Path, contents: ScriptContents, base: str, arguments: tuple[str, ...]) -> ScriptFacts:
    from podwright.clients.machine import count_gpus
    from podwright.drafts.draft import ScriptFacts

    defaults = [option.default for option in contents.options if isinstance(option.default, str)]
    # A default that is no path at all may hold anything, a NUL too, which no file system takes.
    paths = [default for default in defaults if default and "\0" not in default]

    return ScriptFacts(
        script=script.resolve().relative_to(folder).as_posix(),
        folder=folder.name,
        base=base,
        requirements=next((name for name in _REQUIREMENTS if (folder / name).is_file()), None),
        there=frozenset(path for path in paths if (folder / path).exists()),
        gpus=count_gpus(),
        arguments=arguments,
    )


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise _refusal(f"{path} cannot be read: {(error.strerror or str(error)).lower()}", None) from None


def _write(target: Path, text: str) -> None:
    """Make the file anew or not at all: another may have written it since we looked."""
    with in_words(target), target.open("x", encoding="utf-8") as file:
        file.write(text)


def _refusal(message: str, hint: str | None) -> Exception:
    from podwright.spec.problems import refuse

    return refuse(message, hint=hint)
