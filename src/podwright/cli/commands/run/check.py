"""`check` and `schema`: what can be said of the two files without starting anything."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from podwright import spec
from podwright.cli.options import AsJson, complete_file
from podwright.cli.terminal.output import print_json, say, say_warnings
from podwright.spec.problems import Problem, Refusal

if TYPE_CHECKING:
    from podwright.spec import Pod, Workload


def check_command(
    files: Annotated[
        list[Path], typer.Argument(metavar="FILE...", help="Pod and workload files.", autocompletion=complete_file)
    ],
    as_json: AsJson = False,
) -> None:
    """Load every file and report what each is; the problems of all of them come at once."""
    answers = [_check(path) for path in files]
    good = [answer for answer in answers if isinstance(answer, dict)]
    refusals = [answer for answer in answers if isinstance(answer, Refusal)]
    if as_json and not refusals:
        return print_json(good)
    if not as_json:
        for answer in good:
            print(f"ok        {answer['file']}: {answer['kind']} {answer['name']}", flush=True)
            for sentence in answer["notes"]:
                say("note", sentence)
            say_warnings(Problem(**row) for row in answer["warnings"])
    if refusals:
        raise Refusal(chain.from_iterable(refusal.problems for refusal in refusals))
    return None


def _check(path: Path) -> Any:
    """Return what a file is, or the refusal of it: one bad file must not hide the next."""
    try:
        loaded = spec.load(path)
    except Refusal as refusal:
        return refusal
    kind = type(loaded).__name__.lower()
    warnings = [each.as_json() for each in loaded.warnings()] if isinstance(loaded, spec.Workload) else []
    return {"file": str(path), "kind": kind, "name": loaded.name, "notes": list(_notes(loaded)), "warnings": warnings}


def _notes(loaded: Pod | Workload) -> Iterator[str]:
    """Yield what is right as it is and yet not what everybody expects."""
    schedulers = loaded.schedulers if isinstance(loaded, spec.Pod) else ()
    for scheduler in schedulers:
        if isinstance(scheduler, spec.KubernetesScheduler) and (sentence := scheduler.nothing_kept()):
            yield sentence


def schema_command(
    kind: Annotated[Literal["pod", "workload"], typer.Argument(metavar="pod|workload", help="Which of the two files.")],
    as_json: AsJson = False,
) -> None:
    """Print a JSON schema; it is JSON with and without `--json`."""
    print_json(spec.schema(kind))
