"""`wait`: until runs have ended, for scripts."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from podwright.cli.options import AsJson, RunRefs
from podwright.cli.terminal import output, verdict
from podwright.cli.terminal.follow import codes_of, run_document, say_left

if TYPE_CHECKING:
    from podwright.launch import Run


def wait_command(
    runs: RunRefs,
    timeout: Annotated[
        str | None, typer.Option("--timeout", metavar="TIME", help="Wait no longer than this, such as 30m or 2h.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Waits for all runs and tells how each ended; a run that has not ended in time makes the answer no."""
    from podwright import launch
    from podwright.launch import Session

    end = None if timeout is None else time.monotonic() + _seconds(timeout)
    found = launch.find_all(Session.open(), runs)
    documents = []
    try:
        for run in found:
            documents.append(_wait(run, end))
    except KeyboardInterrupt:
        say_left([run.id for run in found[len(documents) :]])
        raise
    if as_json:
        output.print_json(documents[0] if len(documents) == 1 else documents)
    return verdict.worst(code for document in documents for code in codes_of(document, unfinished=verdict.FAILED))


def _seconds(text: str) -> float:
    from podwright.spec.problems import Refusal, refuse
    from podwright.spec.quantity import duration_s

    try:
        return duration_s(text)
    except Refusal as refusal:
        problem = refusal.problems[0]
        raise refuse(problem.message, problem.hint, field="--timeout") from None


def _wait(run: Run, end: float | None) -> dict[str, Any]:
    """Waits for one run. Its result is said at once, so that of many runs the first ones are not held back."""
    from podwright.spec.problems import Refusal

    try:
        run.wait(timeout_s=None if end is None else max(0.0, end - time.monotonic()))
        document = run_document(run)
    except Refusal as refusal:
        if refusal.exit_code != verdict.UNREACHABLE:
            raise
        # The other runs may be elsewhere and are still waited for.
        print(refusal, file=sys.stderr, flush=True)
        return {"id": run.id, "state": None, **refusal.as_json()}
    if document["state"] in verdict.FINAL:
        word, text = verdict.sentence(document, run.record().goal)
        output.say(word, f"{run.id} {text}")
    else:
        output.say(document["state"], f"{run.id} has not ended in time; `podwright attach {run.id}` follows it")
    return document
