"""`run` and `attach`: start a workload, and follow a run."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podwright import launch, report, spec
from podwright.cli import crash
from podwright.cli.options import AsJson, RunRef, Sets, Target, WorkloadOrHere, Yes, complete_run, ranks_of
from podwright.cli.terminal import output, verdict
from podwright.cli.terminal.follow import (
    Watching,
    codes_of,
    follow,
    held_interrupt,
    introduce,
    say_gaps,
    say_left,
)
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.launch import Run, Session
    from podwright.spec import Workload

Notify = Annotated[
    str | None, typer.Option("--notify", metavar="COMMAND", help="Run this once the run has ended; no shell does.")
]
Profile = Annotated[
    bool, typer.Option("--profile", help="Have the program profile a few steps; the report shows them.")
]

Verify = Annotated[
    bool, typer.Option("--verify", help="Read all files of its selections first, and compare each by its SHA-256.")
]
Like = Annotated[
    str | None,
    typer.Option("--like", metavar="RUN", help="Start this run again as it was.", autocompletion=complete_run),
]
Tags = Annotated[str | None, typer.Option("--tag", metavar="A,B", help="Tag it, for `ps --where tag=A`.")]
Note = Annotated[str | None, typer.Option("--note", metavar="TEXT", help="Write a note on it.")]
Ranks = Annotated[str, typer.Option("--rank", metavar="R", help="Show what these write, such as `0,3-5`, or `all`.")]
After = Annotated[
    str | None,
    typer.Option("--after", metavar="RUN", help="Start when this run succeeded.", autocompletion=complete_run),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show the status alone, not what the ranks write.")]
MAX_RANKS = 1_000_000
MAX_CHANGED = 8
LAST_BYTES = 8192
"""Of what a run wrote before somebody comes back to it: a screen or two."""
RELEASED_BY = "a later `podwright ps`,\n`wait`, `attach` or `queue` then releases it"


def run_command(
    workload: WorkloadOrHere = None,
    on: Target = "local",
    detach: Annotated[bool, typer.Option("--detach", "-d", help="Print the run's id and do not follow it.")] = False,
    repeat: Annotated[int, typer.Option("--repeat", metavar="N", min=1, help="Start it N times.")] = 1,
    after: After = None,
    sets: Sets = [],  # noqa: B006 - the library makes a new list for each call
    like: Like = None,
    resume: Annotated[
        str | None,
        typer.Option("--resume", metavar="RUN", help="Go on from its checkpoint.", autocompletion=complete_run),
    ] = None,
    notify: Notify = None,
    tag: Tags = None,
    note: Note = None,
    profile: Profile = False,
    verify: Verify = False,
    rank: Ranks = "0",
    quiet: Quiet = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> int:
    """Start a workload. Detached, stdout gets the id alone, so that a script can hold on to it."""
    watching = Watching(_wanted(rank), quiet, as_json=as_json)
    labels, notify_of = _labels(tag, note), launch.notifier(notify)
    before = like or resume
    _refuse_beside(like, resume, workload, on, sets, repeat, after, profile, verify)
    with launch.Session.open() as session:
        if before:
            run = _start(partial(_again, session, _trusted(session, before, yes), resume is not None))
        else:
            loaded = _workload(workload, sets, profile)
            start = launch.start_verified if verify else launch.start
            run = _start(partial(start, session, loaded, on=on, repeat=repeat, after=after))
        labels(session, run)
        if notify_of:
            notify_of(run)
        if before and not detach:
            return _follow_again(launch.find(session, before), run, watching)
        return _after_start(run, detach, watching)


def _follow_again(before: Run, after: Run, watching: Watching) -> int:
    """Follow a run that was started like another, and say what of its software is another than it was."""
    code = _after_start(after, False, watching)
    changed = launch.environment_changes(before, after)
    for row in changed[:MAX_CHANGED]:
        output.say("differs", output.one_line(f"{row.name} {row.a or 'was not there'}, now {row.b or 'not there'}"))
    if len(changed) > MAX_CHANGED:
        output.say("differs", f"{len(changed) - MAX_CHANGED} more: podwright diff {before.id} {after.id}")
    return code


def _labels(tag: str | None, note: str | None) -> Callable[[Session, Run], None]:
    """Return what writes tags and a note on a run, which are refused before it is started."""
    tags = launch.tags_of([] if tag is None else tag.split(","), "--tag")
    text = None if note is None else launch.check_note(note, "--note")

    def write(session: Session, run: Run) -> None:
        if tags:
            launch.tag_runs(session, [run], launch.TagChange(tags))
        if text:
            launch.note_run(session, run, text)

    return write


def _workload(path: Path | None, sets: list[str], profile: bool) -> Workload:
    """Read the workload; say what helps where none is there, or where a program is named instead of one."""
    file = path or Path("workload.yaml")
    if path is None and not file.is_file():
        hint = "name the file, or let `podwright init SCRIPT` write one for your program"
        raise refuse("there is no workload.yaml here", hint)
    if file.suffix == ".py" and file.is_file():
        raise refuse(f"{file} is a program, not a workload", f"`podwright init {file}` writes a workload that runs it")
    workload = spec.load_workload(file, sets)
    output.say_warnings(workload.warnings())
    if profile:
        workload = launch.profiled(workload)
    crash.keep_out(workload.secrets)
    return workload


def _trusted(session: Session, ref: str, yes: bool) -> Run:
    """Return the run that is started again; of an imported one command and code are shown, and somebody agrees."""
    run = launch.find(session, ref)
    asked = run.folder.asked
    if asked.imported_from is None:
        return run
    for word in ("setup", "command"):
        for line in [asked.workload.get(word)] if word == "command" else asked.workload.get(word) or []:
            output.say(word, output.one_line(shlex.join(map(str, line)) if isinstance(line, list) else str(line)))
    code = asked.code or {}
    output.say("code", f"{code.get('files', 0)} files: `tar -tvf {run.folder.path}/job/code.tar` lists them")
    if not output.confirm_destroying(f"{run.id} was imported. Run this program of somebody else?", yes):
        raise typer.Exit(1)
    return run


def _again(session: Session, run: Run, resume: bool) -> Run:
    crash.keep_out(run.folder.asked.secrets)
    return launch.start_again(session, run.id, resume, trust=True)


def _refuse_beside(like: str | None, resume: str | None, workload: Path | None, on: str, *others: object) -> None:
    """Refuse what would change a run that is started as it was."""
    if not (like or resume):
        return
    if like and resume:
        raise refuse(
            "goes without --like", "--resume starts the same as --like does, from the checkpoint", field="--resume"
        )
    field = "--like" if like else "--resume"
    if workload is not None or on != "local" or any(given not in (None, [], 1, False) for given in others):
        hint = "a run that is started again takes file, target and settings from its record"
        raise refuse("goes without WORKLOAD, --on, --set, --repeat, --after, --profile and --verify", hint, field=field)


def _wanted(rank: str, run_id: str = "a run", count: int = MAX_RANKS) -> frozenset[int] | None:
    """Return the ranks whose output is shown; None stands for all."""
    return None if rank == "all" else ranks_of(rank, run_id, count)


def _after_start(run: Run, detach: bool, watching: Watching) -> int:
    _, points = run.records()
    introduce(run, len(points))
    say_gaps(run)
    if not detach:
        return _to_the_end(run, watching)
    if launch.is_held(run):
        output.say("held", f"until {run.folder.asked.after} has succeeded; {RELEASED_BY}")
    output.say("next", f"podwright attach {run.id}")
    if watching.as_json:
        output.print_json(run.records().as_json())
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


def attach_command(run: RunRef, rank: Ranks = "0", quiet: Quiet = False, as_json: AsJson = False) -> int:
    """Follow a run from where it is now; how one ended that has is said at once."""
    with launch.Session.open() as session:
        followed = launch.find(session, run)
        _, points = followed.records()
        introduce(followed, len(points))
        known = followed.last_known()
        ranks = _wanted(rank, followed.id, known.world_size)
        return _to_the_end(followed, Watching(ranks, quiet or known.is_final, LAST_BYTES, as_json))


def _to_the_end(run: Run, watching: Watching) -> int:
    try:
        records = follow(run, report.write_report, watching)
    except KeyboardInterrupt:
        if watching.as_json:
            output.print_json(run.records().as_json())
        raise
    if watching.as_json:
        output.print_json(records.as_json())
    return verdict.worst(codes_of(records))
