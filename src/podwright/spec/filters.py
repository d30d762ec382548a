"""The language of filters: `camera=front_center and Pedestrian>0 and size>=1MB`. Text in, a tree out; pure.

    filter     = all { "or" all }
    all        = part { "and" part }
    part       = "not" part | "(" filter ")" | comparison
    comparison = name operator value
    operator   = "=" | "!=" | "<" | "<=" | ">" | ">=" | "~"

Names and values with other characters stand in double quotes, where `\\n`, `\\t`, `\\r`, `\\x1b` and `\\u200e` are the
characters that they are shown for, and a backslash takes any other character as it is.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass

from podwright.spec.problems import Problem, Refusal, short

OPERATORS = ("=", "!=", "<", "<=", ">", ">=", "~")
_LONGEST = 10_000
_DEEPEST = 100
_TOKEN = re.compile(
    r"""(?P<blank>\s+)
    | (?P<operator>!=|<=|>=|[=<>~])
    | (?P<bracket>[()])
    | "(?P<quoted>(?:[^"\\]|\\.)*)"
    | (?P<word>[^\s()=<>!~"]+)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(?:(?P<code>x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})|(?P<char>.))", re.DOTALL)
_ESCAPED = {"n": "\n", "r": "\r", "t": "\t"}
"""As odd characters of a name are shown."""
_KEYWORDS = ("and", "or", "not")
_EXAMPLE = "write it like `camera=front_center and size>=1MB`"


@dataclass(frozen=True, slots=True)
class Comparison:
    """One column held against a value, each with where it stands in the filter's text, from 1."""

    name: str
    operator: str
    value: str
    name_at: int
    value_at: int


@dataclass(frozen=True, slots=True)
class Combined:
    """Several parts of which all (`and`) or at least one (`or`) must hold."""

    word: str
    parts: tuple[Filter, ...]


@dataclass(frozen=True, slots=True)
class Negated:
    """A part that must not hold."""

    part: Filter


Filter = Comparison | Combined | Negated


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int


def parse_filter(text: str) -> Filter:
    """Return the tree of a filter; a refusal names the place in its text."""
    if len(text) > _LONGEST:
        raise filter_refusal(1, "", f"is longer than {_LONGEST:,} characters", "make a tag of what it chooses")
    return _Parser(list(_tokens(text)), len(text) + 1).tree()


def filter_refusal(at: int, field: str, message: str, hint: str | None) -> Refusal:
    """Return a refusal of what stands at a place of a filter."""
    return Refusal([Problem("filter", 1, at, short(field), message, hint)])


def _tokens(text: str) -> Iterator[_Token]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _unreadable(text, position)
        kind, position = str(match.lastgroup), match.end()
        if kind == "quoted":
            yield _Token(kind, _ESCAPE.sub(_unescaped, match["quoted"]), match.start() + 1)
        elif kind != "blank":
            yield _Token(kind, match[0], match.start() + 1)


def _unescaped(match: re.Match[str]) -> str:
    if match["code"]:
        code = int(match["code"][1:], 16)
        is_character = code <= sys.maxunicode and not 0xD800 <= code <= 0xDFFF
        return chr(code) if is_character else "\ufffd"
    return _ESCAPED.get(match["char"], match["char"])


def _unreadable(text: str, position: int) -> Refusal:
    if text[position] == '"':
        return filter_refusal(position + 1, "", "this quote is never closed", 'close it with another "')
    hint = "operators are " + ", ".join(OPERATORS)
    return filter_refusal(position + 1, "", f'"{text[position]}" is no operator', hint)


class _Parser:
    """Goes through the tokens once; each method leaves `at` behind what it took."""

    def __init__(self, tokens: list[_Token], end: int) -> None:
        self._tokens, self._end = tokens, end
        self._at = self._depth = 0

    def tree(self) -> Filter:
        if not self._tokens:
            raise filter_refusal(1, "", "is empty", _EXAMPLE)
        tree = self._joined("or")
        if self._at < len(self._tokens):
            token = self._tokens[self._at]
            if token.text == ")":
                raise filter_refusal(token.at, "", "this bracket was never opened", None)
            hint = 'join comparisons with `and` or `or`; a value with blanks stands in double quotes ("a b")'
            raise filter_refusal(token.at, token.text, "is one word too many", hint)
        return tree

    def _joined(self, word: str) -> Filter:
        next_level = self._all if word == "or" else self._part
        parts = [next_level()]
        while self._takes_keyword(word):
            parts.append(next_level())
        if len(parts) == 1:
            return parts[0]
        return Combined(word, tuple(parts))

    def _all(self) -> Filter:
        return self._joined("and")

    def _part(self) -> Filter:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise filter_refusal(self._column(), "", f"has more than {_DEEPEST} brackets in each other", None)
        try:
            if self._takes_keyword("not"):
                return Negated(self._part())
            if self._takes("bracket", "("):
                return self._bracketed(self._tokens[self._at - 1].at)
            return self._comparison()
        finally:
            self._depth -= 1

    def _bracketed(self, opened_at: int) -> Filter:
        tree = self._joined("or")
        if not self._takes("bracket", ")"):
            raise filter_refusal(opened_at, "", "this bracket is never closed", "close it with )")
        return tree

    def _comparison(self) -> Comparison:
        name = self._text("a column's name is missing here")
        operator = self._next("operator")
        if operator is None:
            hint = f"{name.text} is compared with one of {', '.join(OPERATORS)}"
            raise filter_refusal(self._column(), name.text, "an operator is missing behind it", hint)
        value = self._text("a value is missing here")
        return Comparison(name.text, operator.text, value.text, name.at, value.at)

    def _text(self, missing: str) -> _Token:
        token = self._next("word", "quoted")
        if token is None or (token.kind == "word" and token.text.lower() in _KEYWORDS):
            column = token.at if token else self._column()
            raise filter_refusal(column, "", missing, _EXAMPLE)
        return token

    def _next(self, *kinds: str) -> _Token | None:
        if self._at < len(self._tokens) and self._tokens[self._at].kind in kinds:
            self._at += 1
            return self._tokens[self._at - 1]
        return None

    def _takes(self, kind: str, text: str) -> bool:
        if self._at == len(self._tokens):
            return False
        token = self._tokens[self._at]
        fits = (token.kind, token.text) == (kind, text)
        self._at += fits
        return fits

    def _takes_keyword(self, word: str) -> bool:
        if self._at < len(self._tokens):
            token = self._tokens[self._at]
            if token.kind == "word" and token.text.lower() == word:
                self._at += 1
                return True
        return False

    def _column(self) -> int:
        if self._at < len(self._tokens):
            return self._tokens[self._at].at
        return self._end
