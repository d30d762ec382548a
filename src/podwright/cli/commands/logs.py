"""`logs`: what the ranks wrote, in the order in which they wrote it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from podwright.cli.options import AsJson, RunRef
from podwright.cli.terminal.follow import say_left
from podwright.cli.terminal.output import foreign_line, json_text, say

if TYPE_CHECKING:
    from podwright.launch import Run
    from podwright.runs import LogLine


def logs_command(
    run: RunRef,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on until the run has ended.")] = False,
    rank: Annotated[int | None, typer.Option("--rank", metavar="R", help="Only this rank.")] = None,
    node: Annotated[int | None, typer.Option("--node", metavar="N", help="Only the ranks of this node.")] = None,
    grep: Annotated[str | None, typer.Option("--grep", metavar="TEXT", help="Only lines with this text.")] = None,
    as_json: AsJson = False,
) -> None:
    """Print log lines; of several ranks each line begins with its rank."""
    from podwright.launch import Session, find

    with Session.open() as session:
        followed = find(session, run)
        _refuse_unknown(followed, rank, node)
        lines = matching(followed.logs(rank=rank, follow=follow), node, grep)
        try:
            if as_json:
                _print_json(lines)
            elif rank is not None:
                _print(lines, 1, at_once=follow)
            else:
                _print(lines, followed.record().world_size, at_once=follow)
        except KeyboardInterrupt:
            say_left([followed.id])
            raise
        _say_silence(followed)


def _say_silence(run: Run) -> None:
    """Say that further lines may be on a target that does not answer."""
    record = run.last_known()
    if record.silence:
        say("silent", record.silence)


def _print(lines: Iterable[LogLine], ranks: int, at_once: bool) -> None:
    """Print each line after its rank where there are several; a line of the launcher has none."""
    width = len(str(ranks - 1))
    for line in lines:
        prefix = ""
        if ranks > 1:
            rank = "-" if line.rank is None else str(line.rank)
            prefix = f"[{rank:>{width}}] "
        print(f"{prefix}{foreign_line(line.text, sys.stdout)}", flush=at_once)


def _refuse_unknown(run: Run, rank: int | None, node: int | None) -> None:
    """Refuse what would silently print nothing: a rank or node there is not, or a parent, which has no ranks."""
    from podwright.spec.problems import refuse

    if points := run.points():
        raise refuse(f"{run.id} has {len(points)} points with logs of their own", f"`podwright logs {points[0].id}`")
    record = run.record()
    for name, given, count in (("--rank", rank, record.world_size), ("--node", node, record.nodes)):
        if given is not None and not 0 <= given < count:
            raise refuse(f"{run.id} has no {given}", f"it has 0 to {count - 1}", field=name)


def matching(lines: Iterable[LogLine], node: int | None, text: str | None) -> Iterator[LogLine]:
    """Leave out the lines of other nodes and those without the text."""
    for line in lines:
        is_of_node = node is None or line.node == node
        if is_of_node and (text is None or text in line.text):
            yield line


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
