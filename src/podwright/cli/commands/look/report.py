"""`report`: what a person looks at, as one HTML file."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Annotated

import typer

from podwright import launch, report
from podwright.cli.options import AsJson, RunRefs
from podwright.cli.terminal import output
from podwright.cli.terminal.files import in_words
from podwright.spec.problems import refuse


def report_command(
    runs: RunRefs,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Where to write; in the run's folder if not said.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Write the report of one run, or of several side by side, and print the path."""
    with launch.Session.open() as session:
        named = launch.find_all_to_read(session, runs)
        if "/" in runs[0] and out is None:
            raise refuse("is missing: nothing is written beside a colleague's run", "`--out FILE`", field="--out")
        with in_words(named[0].folder.path):
            path = report.write_report(named).resolve()
        if out:
            with in_words(out):
                shutil.copyfile(path, out)
            path = out.resolve()
        known = [run.last_known() for run in named]
        silences = [record.silence for record in known if record.silence]
    if as_json:
        return output.print_json({"report": str(path)})
    print(path)
    for silence in silences:
        output.say("silent", silence)
    return output.say("open", path.as_uri())
