"""Until when the steps of each attempt were kept: in what the run ended with, or in a checkpoint. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from podwright.pilot.protocol import Epoch
from podwright.runs.goodput.attempts import Checkpoint
from podwright.runs.goodput.stretches import AttemptSpan
from podwright.runs.goodput.tellings import Place, Telling

_STEP_OF_NAME = re.compile(r"(?:steps?|checkpoint|ckpt|iter)[-_=]?0*(\d+)")
FOREVER = 1 << 62


def kept_until(spans: Sequence[AttemptSpan], checkpoints: Sequence[Checkpoint], succeeded: bool) -> dict[Epoch, int]:
    """Return until when the work of each attempt counts.

    Where a later attempt told its first step, that is where it went on: all from there on was done twice, and the later
    one counts. Of the last that told steps counts what the newest checkpoint holds, and all of it when the run
    succeeded. Programs that count the steps of an epoch alone are judged by their checkpoints.
    """
    told = [span for span in spans if span.rows]
    kept = {span.epoch: FOREVER for span in spans}
    for index, span in enumerate(told):
        later = told[index + 1 :]
        if later:
            kept[span.epoch] = _before_later(span, later, checkpoints)
        elif not succeeded:
            kept[span.epoch] = _in_checkpoint(span, checkpoints)
    return kept


def _before_later(span: AttemptSpan, later: Sequence[AttemptSpan], checkpoints: Sequence[Checkpoint]) -> int:
    if any(other.moments.tellings.begins_anew for other in (span, *later)):
        return _in_checkpoint(span, checkpoints)
    again = min(other.rows[0].place for other in later)
    return _last_before(span, again)


def _last_before(span: AttemptSpan, place: Place) -> int:
    """Return when an attempt came to the step before a place."""
    return max((row.at for row in span.rows if row.place < place), default=span.go)


def _in_checkpoint(span: AttemptSpan, checkpoints: Sequence[Checkpoint]) -> int:
    """Return until when the newest checkpoint of an attempt holds its work; its start where it wrote none."""
    own = [checkpoint for checkpoint in checkpoints if checkpoint.epoch == span.epoch]
    if not own:
        return span.go
    newest = max(own, key=lambda checkpoint: checkpoint.at)
    at_step = _time_of_step(span.rows, newest)
    return newest.at if at_step is None else at_step


def _time_of_step(rows: Sequence[Telling], checkpoint: Checkpoint) -> int | None:
    """Return when the step was done that a checkpoint is named after; None where its name says no such step."""
    named = _STEP_OF_NAME.search(checkpoint.name)
    before = [row for row in rows if row.at <= checkpoint.at]
    if named is None or not before or any(row.place[1] for row in rows):
        return None
    step = int(named[1])
    if not rows[0].place[2] <= step <= before[-1].place[2]:
        return None
    return max((row.at for row in before if row.place[2] <= step), default=None)
