"""How the terminal speaks: data to stdout, talk to stderr, a word and a text in aligned columns."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from podwright.spec.problems import Problem, refuse

WORD_WIDTH = 10
_COLOURS = {
    "succeeded": "32",
    "failed": "31",
    "lost": "31",
    "cancelled": "33",
    "running": "36",
    "warn": "33",
    "dim": "2",
}
# C1 control characters are escape sequences to some terminals; bidi marks make a line read as another one.
_UNSEEN = "\\x7f-\\x9f\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069"
_CONTROL = re.compile(rf"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f{_UNSEEN}]")
_COLOUR_OR_CONTROL = re.compile(rf"(\x1b\[[0-9;:]*m)|[\x00-\x08\x0a-\x1f{_UNSEEN}]")
_NOT_IN_JSON = re.compile(f"[{_UNSEEN}]")
_RESET = "\x1b[0m"


def say(word: str, text: str = "") -> None:
    """Write talk to stderr: the word once, the text beside it, further lines under the text."""
    print("\n".join(aligned(word, text, sys.stderr)), file=sys.stderr, flush=True)


def say_warnings(warnings: Iterable[Problem]) -> None:
    """Say what is allowed and most often a slip, each with how to write what was meant."""
    for warning in warnings:
        say("warning", f"{warning}\n{warning.hint}" if warning.hint else str(warning))


def aligned(word: str, text: str, stream: TextIO) -> list[str]:
    """Lay out a word and the lines of its text; the word has its state's colour where the stream shows colours."""
    first, *rest = plain(text).splitlines() or [""]
    head = paint(word, word, stream) + " " * max(1, WORD_WIDTH - len(word))
    return [(head + first).rstrip(), *(" " * WORD_WIDTH + line for line in rest)]


def paint(text: str, role: str, stream: TextIO) -> str:
    """Colour a text for a role; only on a terminal, and never with NO_COLOR. No meaning is in colour alone."""
    code = _COLOURS.get(role)
    if code is None or not _shows_colours(stream):
        return text
    return f"\x1b[{code}m{text}{_RESET}"


def _shows_colours(stream: TextIO) -> bool:
    wants_none = "NO_COLOR" in os.environ or os.environ.get("TERM") == "dumb"
    return not wants_none and stream.isatty()


def wrapped(text: str, width: int) -> str:
    """Break lines at spaces to fit a width; a word that is longer stays whole, so that it can be copied."""
    lines = []
    for line in text.splitlines():
        lines += textwrap.wrap(line, max(width, 20), break_long_words=False, break_on_hyphens=False) or [""]
    return "\n".join(lines)


def plain(text: str) -> str:
    """Take control characters out of a text that a program or a user wrote, so that it cannot move our cursor."""
    return _CONTROL.sub("", text)


def one_line(text: str) -> str:
    """Return a text on one line: what would end the line or steer a terminal is shown by its escape."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def foreign_line(text: str, stream: TextIO) -> str:
    """Return a line that a rank wrote as it may be shown.

    On a terminal its colours go through and end with the line; all else that steers a terminal, or turns the direction
    of reading, is shown as text. A file or another program gets what was written.
    """
    if not stream.isatty():
        return text
    colours = _shows_colours(stream)

    def visible(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0].encode("unicode_escape").decode("ascii")
        return match[1] if colours else ""

    shown = _COLOUR_OR_CONTROL.sub(visible, text.removesuffix("\r"))
    if "\x1b" in shown:
        return shown + _RESET
    return shown


def json_text(document: Any, indent: int | None = None) -> str:
    """Return JSON in which nothing can steer a terminal: it is data first, but a person may look at it."""
    text = json.dumps(document, indent=indent, ensure_ascii=False, allow_nan=False)
    return _NOT_IN_JSON.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def print_json(document: Any) -> None:
    """Print the one JSON document of `--json`; what JSON cannot say (NaN, infinity) becomes null."""
    try:
        text = json_text(document, indent=2)
    except ValueError:
        text = json_text(_finite(document), indent=2)
    print(text, flush=True)


def print_one_or_all(documents: Sequence[Any]) -> None:
    """Print what `--json` has for several things: a list, or the document itself where there is only one."""
    if len(documents) == 1:
        return print_json(documents[0])
    return print_json(documents)


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def table(head: Sequence[str], rows: Iterable[Sequence[str]], width: int | None = None) -> list[str]:
    """Lay out rows under capital heads, columns two blanks apart; the last column is cut to the width where one is."""
    cells = [[name.upper() for name in head]]
    cells.extend(list(map(plain, row)) for row in rows)
    columns = list(zip(*cells, strict=True))
    widths = [max(map(len, column)) for column in columns[:-1]]
    return [_table_line(row, widths, width) for row in cells]


def _table_line(row: Sequence[str], widths: Sequence[int], width: int | None) -> str:
    *cells, last = row
    left = "".join(f"{cell:<{size}}  " for cell, size in zip(cells, widths, strict=True))
    if width is not None:
        last = clip(last, width - len(left))
    return (left + last).rstrip()


def clip(text: str, width: int | None) -> str:
    """Cut a text that is too wide and marks the cut; None leaves it whole."""
    if width is None or len(text) <= width:
        return text
    return text[: max(width - 3, 0)] + "..."


def width_of(stream: TextIO) -> int | None:
    """Return the width to fit a table to: the terminal's, or None where a program or a file reads."""
    import shutil

    if not stream.isatty():
        return None
    return shutil.get_terminal_size((80, 24)).columns


def confirm_destroying(question: str, yes: bool, answers: TextIO | None = None) -> bool:
    """Ask before something is destroyed; without a terminal nobody can be asked, and only `--yes` answers."""
    if not yes and not (answers or sys.stdin).isatty():
        raise refuse(f"{question} Nobody can be asked here", hint="say --yes", field="--yes")
    return confirm(question, yes, answers)


def confirm(question: str, yes: bool, answers: TextIO | None = None) -> bool:
    """Ask before something is done; only a person at a terminal is asked, and `--yes` has answered already."""
    answers = answers or sys.stdin
    if yes or not answers.isatty():
        return True
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    return answers.readline().strip().lower() in ("y", "yes")
