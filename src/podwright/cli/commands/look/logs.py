"""`logs`: what the ranks wrote, in the order in which they wrote it."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

import typer

from podwright import launch
from podwright.cli.options import AsJson, RunRef, node_of, ranks_of, seconds_of
from podwright.cli.terminal.follow import say_left
from podwright.cli.terminal.output import foreign_line, json_text, say
from podwright.pilot.protocol import PROGRESS
from podwright.spec.problems import refuse
from podwright.theme import words

if TYPE_CHECKING:
    from podwright.launch import Run
    from podwright.runs import LogLine, Record


def logs_command(
    run: RunRef,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on until the run has ended.")] = False,
    rank: Annotated[str | None, typer.Option("--rank", metavar="R", help="Only these, such as `0,3-5`.")] = None,
    node: Annotated[
        str | None, typer.Option("--node", metavar="N", help="Only the ranks of this node: its name or its number.")
    ] = None,
    grep: Annotated[str | None, typer.Option("--grep", metavar="TEXT", help="Only lines with this text.")] = None,
    regex: Annotated[str | None, typer.Option("--regex", metavar="RE", help="Only lines that this fits.")] = None,
    tail: Annotated[int | None, typer.Option("--tail", metavar="N", min=0, help="Only the last lines.")] = None,
    since: Annotated[str | None, typer.Option("--since", metavar="TIME", help="Only of the last `5m`.")] = None,
    times: Annotated[bool, typer.Option("-t", "--times", help="Begin each line with its time.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print log lines; of several ranks each line begins with its rank."""
    with launch.Session.open() as session:
        followed = launch.find_to_read(session, run)
        record = _record_of(followed)
        ranks = None if rank is None else ranks_of(rank, followed.id, record.world_size)
        number = None if node is None else node_of(node, record)
        choice = launch.LineFilter(ranks, number, _pattern(grep, regex), _earliest(since))
        lines = launch.filtered_logs(followed, choice, tail, follow)
        try:
            if as_json:
                _print_json(lines)
            else:
                width = 0 if ranks and len(ranks) == 1 else len(str(record.world_size - 1))
                _print(lines, width * (record.world_size > 1), times, at_once=follow)
        except KeyboardInterrupt:
            say_left([followed.id])
            raise
        _say_silence(followed)


CLEARED = "\r\x1b[K"
"""What a terminal begins a line again with."""


def _record_of(run: Run) -> Record:
    """Return what is known of a run; refuse a parent, which has no ranks."""
    if points := run.points():
        raise refuse(f"{run.id} has {len(points)} points with logs of their own", f"`podwright logs {points[0].id}`")
    return run.record()


def _pattern(text: str | None, regex: str | None) -> re.Pattern[str] | None:
    if text is not None and regex is not None:
        raise refuse("goes without --grep", "give one of the two", field="--regex")
    if text is not None:
        return re.compile(re.escape(text))
    if regex is None:
        return None
    try:
        return re.compile(regex)
    except re.error as error:
        raise refuse(f"is no regular expression: {error}", field="--regex") from None


def _earliest(since: str | None) -> float | None:
    return None if since is None else time.time() - seconds_of(since, "--since")


def _say_silence(run: Run) -> None:
    """Say that further lines may be on a target that does not answer."""
    record = run.last_known()
    if record.silence:
        say("silent", record.silence)


def _print(lines: Iterable[LogLine], width: int, times: bool, at_once: bool) -> None:
    """Print each line after its rank, in a column that is `width` wide, if any; a line of the launcher has none."""
    in_place = at_once and sys.stdout.isatty()
    for line in lines:
        is_open = at_once and line.stream == PROGRESS
        if is_open and not in_place:
            continue
        prefix = f"{words.clock(line.t)} " * times
        if width:
            rank = "-" if line.rank is None else str(line.rank)
            prefix += f"[{rank:>{width}}] "
        shown = f"{CLEARED * in_place}{prefix}{foreign_line(line.text, sys.stdout)}"
        print(shown, end="" if is_open else "\n", flush=at_once)


def _print_json(lines: Iterable[LogLine]) -> None:
    """Print one array, a line an element, as they come; it is closed also when Ctrl-C ends the following."""
    separator = "["
    try:
        for line in lines:
            row = {"t": line.t, "node": line.node, "rank": line.rank, "stream": line.stream, "text": line.text}
            print(separator, json_text(row), sep="\n", end="", flush=True)
            separator = ","
    finally:
        end = "[]" if separator == "[" else "\n]"
        print(end, flush=True)
