"""`diff`: what differs between two runs, as a table."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Annotated

import typer

from podwright import launch
from podwright.cli.options import AsJson, complete_run
from podwright.cli.terminal import figures, output

if TYPE_CHECKING:
    from podwright.analysis.differences import RunDifference

_LEAST = 12
"""However narrow a terminal is, so much of each value is shown."""

Ref = Annotated[str, typer.Argument(metavar="A", help="A run.", autocompletion=complete_run)]
Other = Annotated[str, typer.Argument(metavar="B", help="Another one.", autocompletion=complete_run)]


def diff_command(a: Ref, b: Other, as_json: AsJson = False) -> int:
    """Print what differs, kind by kind; alike ends with 0."""
    with launch.Session.open() as session:
        apart = launch.diff_runs(session, a, b)
    if as_json:
        output.print_json(apart.as_json())
    elif apart.differences:
        print("\n".join(page(apart.differences, output.width_of(sys.stdout))))
    else:
        output.say("alike", f"nothing that was recorded differs between {apart.a} and {apart.b}")
    return int(bool(apart.differences))


def page(rows: Sequence[RunDifference], width: int | None) -> Iterator[str]:
    """Lay the differences out beside each other; of texts too wide for that, the part that differs is shown."""
    room = None
    if width is not None:
        kind, name = max(len(row.kind) for row in rows), max(len(_name(row)) for row in rows)
        room = max(_LEAST, (width - max(kind, 4) - max(name, 4) - 6) // 2)
    cells = [(row.kind, _name(row), *_shown(row, room)) for row in rows]
    yield from output.table(("kind", "name", "a", "b"), cells, width)


def _name(row: RunDifference) -> str:
    return output.one_line(row.name)


def _shown(row: RunDifference, room: int | None) -> tuple[str, str]:
    a, b = (figures.NONE if text is None else output.one_line(text) for text in (row.a, row.b))
    if room is None or max(len(a), len(b)) <= room:
        return a, b
    # Two commands differ far behind their beginning: what they share is cut, but for the word before what differs.
    left, right = a.split(" "), b.split(" ")
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(left, right, strict=False)))
    if shared > 1:
        a, b = (" ".join(["...", *words[shared - 1 :]]) for words in (left, right))
    return output.clip(a, room), output.clip(b, room)
