"""`wait`: until runs have ended, for scripts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from podwright import launch
from podwright.cli.options import AsJson, RunRefs, seconds_of
from podwright.cli.terminal import output, verdict
from podwright.cli.terminal.follow import codes_of, say_left

if TYPE_CHECKING:
    from collections.abc import Sequence

    from podwright.launch import Run, Session, Waited


def wait_command(
    runs: RunRefs,
    timeout: Annotated[
        str | None, typer.Option("--timeout", metavar="TIME", help="Wait no longer than this, such as 30m or 2h.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Wait for all runs and report how each ended; a run that has not ended in time makes the answer no."""
    timeout_s = None if timeout is None else seconds_of(timeout, "--timeout")
    with launch.Session.open() as session:
        return wait_for(session, launch.find_all(session, runs), timeout_s, as_json)


def wait_for(session: Session, runs: Sequence[Run], timeout_s: float | None, as_json: bool) -> int:
    """Say how each run ended as soon as it has, so that of many the first ones are not held back; return one code."""
    documents, codes = [], []
    try:
        for waited in launch.wait_for_all(session, runs, timeout_s):
            codes += _said(waited)
            documents.append(waited.as_json())
    except KeyboardInterrupt:
        say_left([run.id for run in runs[len(documents) :]])
        raise
    if as_json:
        output.print_one_or_all(documents)
    return verdict.worst(codes)


def _said(waited: Waited) -> list[int]:
    """Say how a run ended; return the exit codes of it or of its points."""
    if waited.records is None:
        print(output.plain(str(waited.refusal)), file=sys.stderr, flush=True)
        return [verdict.UNREACHABLE]
    record, points = waited.records
    if record.is_final:
        word, text = verdict.sentence(record, record.goal, len(points))
        output.say(word, f"{waited.id} {text}")
    else:
        output.say(record.state, f"{waited.id} has not ended in time; `podwright attach {waited.id}` follows it")
    return codes_of(waited.records, unfinished=verdict.FAILED)
