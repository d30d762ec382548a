"""Reading a script with what lies beside it, and writing its workload."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podwright.clients.machine import count_gpus
from podwright.drafts.batch_script import read_batch_script
from podwright.drafts.draft import Guess, ScriptFacts, guess
from podwright.drafts.jobs import ForeignJob, guess_job
from podwright.drafts.script import ScriptContents, look
from podwright.drafts.skypilot import read_skypilot_task
from podwright.spec import load_workload
from podwright.spec.problems import refuse

NAME = "workload.yaml"
BASE = "python:3.11-slim"
_REQUIREMENTS = ("requirements.txt", "requirements/base.txt")
SHELL_SUFFIXES = (".sh", ".bash", ".sbatch", ".slurm", ".job")
SHELL_LINE = re.compile(r"#!\s*/\S*(/env )?\S*\b(ba|da|z|k)?sh\b")
_MAX_BYTES = 1 << 20


@dataclass(frozen=True)
class DraftRequest:
    """A script that works on one machine, and what is not to be guessed of its workload."""

    script: Path
    arguments: tuple[str, ...] = ()
    out: Path | None = None
    """Where to write; beside the script if left out."""
    base: str = BASE

    @property
    def file(self) -> Path:
        """Return the file that is to be written."""
        return self.out or self.script.parent / NAME


@dataclass(frozen=True)
class Draft:
    """A workload that was written, by its name, and what was guessed in it."""

    file: Path
    name: str
    guess: Guess

    def as_json(self) -> dict[str, Any]:
        """Return it as `--json` has it."""
        document = {"file": str(self.file), "name": self.name, "guessed": list(self.guess.notes)}
        return {**document, "missing": list(self.guess.missing)}


def write_draft(request: DraftRequest) -> Draft:
    """Look at a script and write the workload that runs it: the whole file or none; nothing is run."""
    script, file = request.script, request.file
    if file.exists():
        raise refuse(f"{file} is there already", hint="remove it first, or write elsewhere with --out")
    folder = file.parent.resolve()
    if not script.resolve().is_relative_to(folder):
        hint = "the workload's folder is what travels with a run"
        raise refuse(f"{script} is not below {file.parent}", hint=hint)
    draft = _guess(request, folder)
    # Another may have written it since we looked.
    with file.open("x", encoding="utf-8") as opened:
        opened.write(draft.text)
    return Draft(file, load_workload(file).name, draft)


def _guess(request: DraftRequest, folder: Path) -> Guess:
    """Read what the file is: a task of SkyPilot, a shell or batch script, else Python."""
    script = request.script
    kind = _kind(script)
    if kind is None:
        contents = _look(script)
        return guess(contents, _facts(request, folder, contents))
    if request.arguments:
        hint = f"change the command in {NAME} once it is written"
        raise refuse("words after `--` are for Python scripts", hint=hint, field=" ".join(request.arguments))
    return guess_job(kind(_text(script), script.resolve().relative_to(folder).as_posix(), folder.name))


def _kind(script: Path) -> Callable[[str, str, str], ForeignJob] | None:
    if script.suffix in (".yaml", ".yml"):
        return read_skypilot_task
    first = _text(script).partition("\n")[0]
    if script.suffix in SHELL_SUFFIXES or (script.suffix != ".py" and SHELL_LINE.match(first)):
        return read_batch_script
    return None


def _look(script: Path) -> ScriptContents:
    text = _text(script)
    beside = {path.stem: _text(path) for path in sorted(script.parent.glob("*.py")) if path != script}
    beside |= {path.parent.name: _text(path) for path in sorted(script.parent.glob("*/__init__.py"))}
    try:
        return look(text, beside)
    except (SyntaxError, ValueError, RecursionError) as error:
        where, reason = str(script), str(error)
        if isinstance(error, SyntaxError):
            where = f"{error.filename or script}:{error.lineno or 1}"
            reason = error.msg
        message = f"{where}: is not read as Python 3: {reason}"
        raise refuse(message, hint="write the workload by hand") from None


def _facts(request: DraftRequest, folder: Path, contents: ScriptContents) -> ScriptFacts:
    defaults = [option.default for option in contents.options if isinstance(option.default, str)]
    # A default that is no path at all may hold anything, a NUL too, which no file system takes.
    paths = [default for default in defaults if default and "\0" not in default]
    return ScriptFacts(
        script=request.script.resolve().relative_to(folder).as_posix(),
        folder=folder.name,
        base=request.base,
        requirements=next((name for name in _REQUIREMENTS if (folder / name).is_file()), None),
        there=frozenset(path for path in paths if (folder / path).exists()),
        gpus=count_gpus(),
        arguments=request.arguments,
    )


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise refuse(f"{path} cannot be read: {(error.strerror or str(error)).lower()}") from None
