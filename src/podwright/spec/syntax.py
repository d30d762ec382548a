"""What is wrong when a text is no YAML at all, in our words instead of the parser's."""

from __future__ import annotations

import re
from typing import Any

from podwright.spec.problems import Problem, short

_COLON = "a value that has `: ` in it must be in quotes; a field below must be indented under a `name:` line"
_BRACKETS = "close every `[` and `{`; a value that starts with one must be in quotes"
_INDENT = "fields of one level begin in the same column"
_QUOTE = "close the quote on the line where it begins"
_TABS = "indent with spaces; YAML does not take tabs"
_FIRST = 'a value that starts with "{found}" must be in quotes'

# What the parser says -> what is wrong, how to mend it, and whether the place is where the thing began.
_WORDS = (
    ("mapping values are not allowed", "a `:` where none may stand", _COLON, False),
    ("did not find expected ',' or", "a bracket is not closed", _BRACKETS, True),
    ("while scanning a quoted scalar", "a quote is not closed", _QUOTE, True),
    (
        "found unknown escape character",
        "a backslash that means nothing here",
        "use single quotes, or write `\\\\`",
        False,
    ),
    ("escape", "an escape that is no character", "use single quotes, or write `\\\\`", False),
    ("did not find expected '-' indicator", "a field in the middle of a list", _INDENT, False),
    ("could not find expected ':'", "a line without `name: value`", "write `name: value`", True),
    ("did not find expected key", "the indentation does not fit the lines above", _INDENT, False),
    ("cannot start any token", 'a value cannot start with "{found}"', _FIRST, False),
    ("expected node content", "a value is missing here", _BRACKETS, False),
    ("incompatible YAML document", "this YAML version is not known", "take the `%YAML` line out", False),
    ("directive", "a `%` directive is not used in these files", "take it out", False),
    ("expected <document start>", "text after the end of the document", _INDENT, False),
    ("an alias", "a value cannot start with `*`", "a value that starts with `*` must be in quotes", True),
    ("an anchor", "a value cannot start with `&`", "a value that starts with `&` must be in quotes", True),
    ("tag", "a value cannot start with `!`", "a value that starts with `!` must be in quotes", True),
)


def syntax_problems(error: Any, text: str, file: str) -> list[Problem]:
    """Return what a parser's error means; tabs in the indentation are all named at once."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if mark is None:
        return [Problem(file, None, None, "", "is not YAML", "look at it with an editor that knows YAML")]
    lines = text.split("\n")
    tabs = _tabs(lines, mark.line, file)
    return tabs or [_problem(error, mark, lines, file)]


def _tabs(lines: list[str], at: int, file: str) -> list[Problem]:
    places = [
        (number, len(line) - len(line.lstrip(" ")) + 1)
        for number, line in enumerate(lines, 1)
        if re.match(r" *\t\s*\S", line)
    ]
    if not any(number == at + 1 for number, _ in places):
        return []
    return [Problem(file, number, column, "", "a tab in the indentation", _TABS) for number, column in places[:20]]


def _problem(error: Any, mark: Any, lines: list[str], file: str) -> Problem:
    said = f"{getattr(error, 'context', None) or ''} {getattr(error, 'problem', None) or ''}"
    begun = getattr(error, "context_mark", None) or mark
    line = "".join(lines[mark.line : mark.line + 1])
    letter = short(line[mark.column : mark.column + 1])
    if "did not find expected key" in said and line[: mark.column].strip():
        return Problem(file, mark.line + 1, mark.column + 1, "", "text after the end of a value", _BRACKETS)
    if letter == "\\t":
        return Problem(file, mark.line + 1, mark.column + 1, "", "a tab where none may stand", _TABS)
    for sign, message, hint, at_begin in _WORDS:
        if sign in said:
            place = begun if at_begin else mark
            message, hint = message.replace("{found}", letter), hint.replace("{found}", letter)
            return Problem(file, place.line + 1, place.column + 1, "", message, hint)
    return Problem(file, mark.line + 1, mark.column + 1, "", "is not YAML", "look at the line and the one before it")
