"""When each node of a run was held, and for what beside its attempts. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from podwright.runs.goodput.attempts import NodeMoments
from podwright.runs.goodput.classes import Stretch, cut, whole_stretch
from podwright.runs.goodput.stretches import AttemptSpan

CLOCKS_APART_MS = 2_000
"""By how much the clocks of two nodes may differ: a pilot that began so shortly after a GO took part in it."""


class Held(NamedTuple):
    """One time that a node was held, from its pilot's start to its end."""

    begin: int
    end: int
    node: int

    def members(self, spans: Sequence[AttemptSpan]) -> list[AttemptSpan]:
        """Return the attempts that the node was in."""
        return [span for span in spans if self.begin <= span.go + CLOCKS_APART_MS and span.go < self.end]


def held(node: int, moments: NodeMoments, spans: Sequence[AttemptSpan], until: int) -> list[Held]:
    """Return the times that a node was held.

    A pilot that was replaced was there until its last attempt was given up, or as long as it was heard of. The first
    is there at the first GO, whatever its clock says.
    """
    times, lives = [], moments.lives
    for index, life in enumerate(lives):
        begin, end = life.begin, until
        if index == 0 and spans:
            begin = min(begin, spans[0].go)
        after = until
        if index + 1 < len(lives):
            after = lives[index + 1].begin
        if life.ended is not None:
            end = life.ended
        elif life.is_gone or index + 1 < len(lives):
            end = max([life.heard, *(span.end for span in spans if life.begin <= span.go < after)])
        end = min(end, after)
        begin = min(begin, until)
        times.append(Held(begin, max(begin, min(end, until)), node))
    if not lives and spans:  # nothing of its record came
        times.append(Held(spans[0].go, max(spans[0].go, until), node))
    return times


def outside(time: Held, spans: Sequence[AttemptSpan], is_over: bool) -> Iterator[Stretch]:
    """Yield what a node was held for beside the attempts that it was in: before, between and after them."""
    at, was_in = time.begin, False
    for span in time.members(spans):
        yield from _piece(at, span.go, "recovery" if was_in else "start")
        at, was_in = max(at, min(span.end, time.end)), True
    rest = "start"
    if was_in:
        follows = any(span.go >= time.end for span in spans)
        rest = "teardown" if is_over and not follows else "recovery"
    yield from _piece(at, time.end, rest)


def _piece(begin: int, end: int, name: str) -> Iterator[Stretch]:
    if end > begin:
        yield whole_stretch(begin, end, name)


def inside(time: Held, stretches: Sequence[Stretch]) -> Iterator[Stretch]:
    """Yield what of an attempt's time a node was held for."""
    for stretch in stretches:
        begin, end = max(stretch.begin, time.begin), min(stretch.end, time.end)
        if end > begin:
            yield stretch if (begin, end) == stretch[:2] else cut(stretch, begin, end)
