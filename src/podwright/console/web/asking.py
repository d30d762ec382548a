"""Typed requests: a frozen dataclass says what a route takes, from its path, its query, a form or a JSON body."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, fields
from functools import cache
from typing import Any, TypeVar, get_args, get_type_hints

from podwright.spec.nearest import did_you_mean
from podwright.spec.problems import Problem, Refusal, short

Asked = TypeVar("Asked")
Given = Mapping[str, Sequence[Any]]
"""By name all values that were given: a query and a form may repeat a name."""
MAX_TEXT = 100_000
TRUE = frozenset({"1", "yes", "true", "on"})
FALSE = frozenset({"0", "no", "false", ""})
Names = tuple[str, ...]


def read_request(shape: type[Asked], given: Given) -> Asked:
    """Return what was asked; all that is wrong with it is refused at once. An unknown name is wrong."""
    whole: Any = shape
    known = {field.name: field for field in fields(whole)}
    problems = [_unknown(name, known) for name in given if name not in known]
    values: dict[str, Any] = {}
    for name, field in known.items():
        try:
            if given.get(name):
                values[name] = _value(kinds_of(whole)[name], given[name])
            elif _is_needed(field):
                raise ValueError("is missing")
        except ValueError as error:
            problems.append(Problem("", None, None, name, str(error)))
    if problems:
        raise Refusal(problems)
    return shape(**values)


@cache
def kinds_of(shape: type) -> dict[str, type]:
    """Return the kinds of a request's fields, without `None`."""
    kinds = {}
    for name, hint in get_type_hints(shape).items():
        if name in {field.name for field in fields(shape)}:
            plain = [part for part in get_args(hint) if part is not type(None)]
            kinds[name] = Names if hint == Names else (plain[0] if plain else hint)
    return kinds


def _is_needed(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def is_needed(shape: type, name: str) -> bool:
    """Return whether a request must say this."""
    return any(field.name == name and _is_needed(field) for field in fields(shape))


def _unknown(name: str, known: Iterable[str]) -> Problem:
    hint = did_you_mean(name, list(known), f"it takes {', '.join(known) or 'nothing'}")
    return Problem("", None, None, short(name), "is not known here", hint)


def _value(kind: Any, given: Sequence[Any]) -> Any:
    if kind == Names:
        return tuple(_text(item) for item in given)
    if len(given) > 1:
        raise ValueError("is given twice")
    return _READERS[kind](given[0])


def _text(item: Any) -> str:
    if not isinstance(item, str):
        raise ValueError("is no text")
    if len(item) > MAX_TEXT:
        raise ValueError(f"has more than {MAX_TEXT:,} characters")
    return item


def _whole(item: Any) -> int:
    if isinstance(item, bool) or not isinstance(item, (int, str)):
        raise ValueError("is no whole number")
    try:
        number = int(item)
    except ValueError:
        raise ValueError("is no whole number") from None
    if abs(number) > 1 << 53:
        raise ValueError("is too large")
    return number


def _yes(item: Any) -> bool:
    word = str(item).lower()
    if word not in TRUE | FALSE:
        raise ValueError("is neither true nor false")
    return word in TRUE


_READERS = {str: _text, int: _whole, bool: _yes}
