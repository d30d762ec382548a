"""`run` and `attach`: start a workload, and follow a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from podwright.cli import crash
from podwright.cli.options import AsJson, RunRef, Sets, Target, WorkloadFile, complete_run
from podwright.cli.terminal import output, verdict
from podwright.cli.terminal.follow import codes_of, follow, held_interrupt, introduce, run_document, say_left

if TYPE_CHECKING:
    from podwright.launch import Run

RELEASED_BY = "a later `podwright ps`,\n`wait`, `attach` or `queue` then releases it"


def run_command(
    workload: WorkloadFile,
    on: Target = "local",
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Print the run's id and do not follow it.")] = False,
    repeat: Annotated[int, typer.Option("--repeat", metavar="N", min=1, help="Start it N times.")] = 1,
    after: Annotated[
        str | None,
        typer.Option("--after", metavar="RUN", help="Start when this run succeeded.", autocompletion=complete_run),
    ] = None,
    sets: Sets = [],  # noqa: B006 - the library makes a new list for each call
    as_json: AsJson = False,
) -> int:
    """Starts a workload. Detached, stdout gets the id alone, so that a script can hold on to it."""
    from podwright import launch, spec
    from podwright.launch import Session

    asked = spec.load_workload(workload, sets)
    crash.keep_out(asked.secrets)
    session = Session.open()
    started: list[Run] = []
    try:
        with held_interrupt():
            started.append(launch.start(session, asked, on=on, repeat=repeat, after=after))
    except KeyboardInterrupt:
        say_left([run.id for run in started])
        raise
    run = started[0]
    introduce(run, run_document(run))
    if detach:
        if run.is_held():
            output.say("held", f"until {run.folder.asked.after} has succeeded; {RELEASED_BY}")
        output.say("next", f"podwright attach {run.id}")
        output.print_json(run_document(run)) if as_json else print(run.id, flush=True)
        return 0
    return _to_the_end(run, as_json)


def attach_command(run: RunRef, as_json: AsJson = False) -> int:
    """Follows a run from where it is now; one that has ended is told about at once."""
    from podwright import launch
    from podwright.launch import Session

    found = launch.find(Session.open(), run)
    introduce(found, run_document(found))
    return _to_the_end(found, as_json)


def _to_the_end(run: Run, as_json: bool) -> int:
    try:
        document = follow(run)
    except KeyboardInterrupt:
        if as_json:
            output.print_json(run_document(run))
        raise
    if as_json:
        output.print_json(document)
    return verdict.worst(codes_of(document))
