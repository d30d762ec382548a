"""`export`, `import` and `sync`: runs that leave this home, and runs that come into it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from podwright import launch
from podwright.cli.options import AsJson, RunRefs, complete_target
from podwright.cli.terminal import figures, output
from podwright.cli.terminal.files import in_words
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.launch import RunsExported

MAX_SAID = 20


def export_command(
    runs: RunRefs,
    to: Annotated[Path, typer.Option("--to", metavar="FILE.zip", help="Write into this file.")],
    checkpoints: Annotated[bool, typer.Option("--checkpoints", help="With checkpoints, which may be large.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print what would go, and write nothing.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write runs that have ended into one file; say what stays behind."""
    with launch.Session.open() as session, in_words(to):
        named = launch.find_all(session, runs)
        exported = launch.export_runs(session, named, to, launch.ExportOptions(checkpoints, dry_run))
    if as_json:
        return output.print_json(exported.as_json())
    if dry_run:
        for name, file in exported.contents.files.items():
            print(f"{figures.size(file.bytes):>10}  {output.one_line(name)}")
    return _say_exported(exported)


def _say_exported(exported: RunsExported) -> None:
    for text in exported.contents.left_out[:MAX_SAID]:
        output.say("left out", output.one_line(text))
    if len(exported.contents.left_out) > MAX_SAID:
        output.say("left out", f"{len(exported.contents.left_out) - MAX_SAID} more; --json names all")
    if exported.digest is None:
        return
    runs = figures.count(len(exported.runs), "run")
    output.say("exported", f"{runs}, {figures.size(exported.bytes)}, {exported.digest}")
    print(exported.file, flush=True)


def import_command(
    file: Annotated[
        str, typer.Argument(metavar="FILE|RUN", help="What `podwright export` wrote; with --from a run's id.")
    ],
    new_id: Annotated[str | None, typer.Option("--as", metavar="ID", help="Take the run up under this id.")] = None,
    target: Annotated[
        str | None,
        typer.Option(
            "--from", metavar="POD", help="Take up a run of yours that lies there.", autocompletion=complete_target
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Take up the runs of a file, or one of a pod, and print their ids; those of points stay with their parent's."""
    if target is not None:
        return _take_up(target, file, new_id, as_json)
    with launch.Session.open() as session:
        imported = launch.import_runs(session, Path(file), new_id)
    if as_json:
        return output.print_json(imported.as_json())
    runs = figures.count(len(imported.runs), "run")
    output.say("imported", f"{runs}, {figures.count(imported.files, 'file')}, {figures.size(imported.bytes)}")
    output.say("next", f"podwright show {imported.id}")
    return print(imported.id, flush=True)


def _take_up(target: str, run_id: str, new_id: str | None, as_json: bool) -> None:
    if new_id is not None:
        raise refuse("goes without --from", hint="on its pod a run has the id that it was started by", field="--as")
    with launch.Session.open() as session:
        taken = launch.take_up(session, target, run_id)
    if as_json:
        return output.print_json(taken.as_json())
    output.say("taken up", f"{figures.count(len(taken.runs), 'run')} of {target}")
    output.say("next", f"podwright attach {taken.id}")
    return print(taken.id, flush=True)


def sync_command(
    runs: RunRefs,
    to: Annotated[
        str,
        typer.Option("--to", metavar="KIND=PLACE", help="mlflow=URL, tensorboard=DIR or wandb=DIR."),
    ],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the runs are over.")] = False,
    as_json: AsJson = False,
) -> None:
    """Write what runs told for a tracker; say how many values were new there."""
    written = 0
    with launch.Session.open() as session, in_words(Path(to.partition("=")[2])):
        for synced in launch.sync_runs(session, launch.find_all(session, runs), to, follow):
            written += synced.written
            if follow and synced.written and not as_json:
                output.say("synced", figures.count(synced.written, "value"))
    total = replace(synced, written=written)
    if as_json:
        return output.print_json(total.as_json())
    counted = f"{figures.count(len(total.runs), 'run')}, {figures.count(written, 'new value')}"
    output.say("synced", f"{counted}: {to}")
    if total.open:
        goes, verb = figures.count(len(total.open), "run"), "goes" if len(total.open) == 1 else "go"
        output.say("next", f"{goes} {verb} on: who looks at it next writes what came since, as does --follow")
    return None
