"""`run` and `attach`: start a workload, and follow a run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from podwright.cli import crash
from podwright.cli.commands.report import write_report
from podwright.cli.options import AsJson, RunRef, Sets, Target, WorkloadFile, complete_run
from podwright.cli.terminal import output, verdict
from podwright.cli.terminal.follow import codes_of, document_of, follow, held_interrupt, introduce, say_gaps, say_left

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
    profile: Annotated[
        bool, typer.Option("--profile", help="Have the program profile a few steps; the report shows them.")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Start a workload. Detached, stdout gets the id alone, so that a script can hold on to it."""
    from podwright import launch, spec

    asked = spec.load_workload(workload, sets)
    if profile:
        asked = launch.profiled(asked)
    crash.keep_out(asked.secrets)
    with launch.Session.open() as session:
        run = _start(partial(launch.start, session, asked, on=on, repeat=repeat, after=after))
        _, points = run.records()
        introduce(run, len(points))
        say_gaps(run)
        if not detach:
            return _to_the_end(run, as_json)
        if run.is_held():
            output.say("held", f"until {run.folder.asked.after} has succeeded; {RELEASED_BY}")
        output.say("next", f"podwright attach {run.id}")
        if as_json:
            output.print_json(document_of(*run.records()))
        else:
            print(run.id, flush=True)
    return 0


def _start(start: Callable[[], Run]) -> Run:
    """Start the run whole: a Ctrl-C that comes meanwhile takes effect when there is an id to name."""
    started: list[Run] = []
    try:
        with held_interrupt():
            started.append(start())
    except KeyboardInterrupt:
        say_left([run.id for run in started])
        raise
    return started[0]


def attach_command(run: RunRef, as_json: AsJson = False) -> int:
    """Follow a run from where it is now; one that has ended is told about at once."""
    from podwright.launch import Session, find

    with Session.open() as session:
        followed = find(session, run)
        _, points = followed.records()
        introduce(followed, len(points))
        return _to_the_end(followed, as_json)


def _to_the_end(run: Run, as_json: bool) -> int:
    try:
        record, points = follow(run, write_report)
    except KeyboardInterrupt:
        if as_json:
            output.print_json(document_of(*run.records()))
        raise
    if as_json:
        output.print_json(document_of(record, points))
    return verdict.worst(codes_of(record, points))
