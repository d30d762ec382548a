"""Runs that come after another, on an engine that cannot wait by itself: whoever looks next releases or ends them.

Any client may look at any moment, several at once, and may die at any line. So the record is written before the engine
is told: a run that is over here and still held there is ended by the next look.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from podwright.engines.base import Engine
from podwright.launch.journal import note
from podwright.runs import SETTLED, Record, RunFolder
from podwright.spec.problems import Refusal


def settle_held(engine: Engine, folder: RunFolder, record: Record, earlier: Record | None) -> Record | None:
    """Release a held run when the earlier one has succeeded, or end it when that one never will.

    Return the record where it is known without reading it again. `earlier` is None when that run was removed.
    """
    if record.state in SETTLED:
        with suppress(Refusal):
            engine.cancel([folder])
        return record
    if earlier is not None and not earlier.is_final:
        return record
    if earlier is not None and earlier.state == "succeeded":
        return _release(engine, folder, record)
    note(folder, "end", state="failed", reason=_why_never(folder, earlier), code=None)
    with suppress(Refusal):  # a target that is away: the next look finds it settled and still held
        engine.cancel([folder])
    return None


def _release(engine: Engine, folder: RunFolder, record: Record) -> Record:
    """Let it start; where that is refused the run waits on and says why."""
    try:
        engine.release([folder])
    except Refusal as refusal:
        return replace(record, reason=f"waits to be released: {refusal.problems[0].message}")
    return record


def _why_never(folder: RunFolder, earlier: Record | None) -> str:
    name = folder.asked.after
    if earlier is None:
        return f"{name}, which it comes after, was removed"
    return f"{name}, which it comes after, did not succeed"
