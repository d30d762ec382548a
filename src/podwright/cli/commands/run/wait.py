"""`wait`: until runs have ended, for scripts."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podwright.cli.options import AsJson, RunRefs, seconds_of
from podwright.cli.terminal import output, verdict
from podwright.cli.terminal.follow import codes_of, document_of, say_left

if TYPE_CHECKING:
    from podwright.launch import Run


def wait_command(
    runs: RunRefs,
    timeout: Annotated[
        str | None, typer.Option("--timeout", metavar="TIME", help="Wait no longer than this, such as 30m or 2h.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Wait for all runs and tell how each ended; a run that has not ended in time makes the answer no."""
    from podwright.launch import Session, find_all

    end = None if timeout is None else time.monotonic() + seconds_of(timeout, "--timeout")
    with Session.open() as session:
        return wait_for(find_all(session, runs), end, as_json)


def wait_for(runs: Sequence[Run], end: float | None, as_json: bool) -> int:
    """Wait for each run, at most until `end` by the monotonic clock; return the exit code that stands for all."""
    documents: list[dict[str, Any]] = []
    codes: list[int] = []
    try:
        for run in runs:
            document, own_codes = _wait(run, end)
            documents.append(document)
            codes += own_codes
    except KeyboardInterrupt:
        say_left([run.id for run in runs[len(documents) :]])
        raise
    if as_json:
        output.print_one_or_all(documents)
    return verdict.worst(codes)


def _wait(run: Run, end: float | None) -> tuple[dict[str, Any], list[int]]:
    """Wait for one run. Its result is said at once, so that of many runs the first ones are not held back."""
    from podwright.spec.problems import Refusal

    left_s = None if end is None else max(0.0, end - time.monotonic())
    try:
        run.wait(timeout_s=left_s, patient=False)
        record, points = run.records()
    except Refusal as refusal:
        if refusal.exit_code != verdict.UNREACHABLE:
            raise
        # The other runs may be elsewhere and are still waited for.
        print(output.plain(str(refusal)), file=sys.stderr, flush=True)
        return {"id": run.id, "state": None, **refusal.as_json()}, [verdict.UNREACHABLE]
    if record.is_final:
        word, text = verdict.sentence(record, record.goal, len(points))
        output.say(word, f"{run.id} {text}")
    else:
        output.say(record.state, f"{run.id} has not ended in time; `podwright attach {run.id}` follows it")
    return document_of(record, points), codes_of(record, points, unfinished=verdict.FAILED)
