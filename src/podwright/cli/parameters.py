"""How words of the command line become values, and what is said when they cannot.

The library would do this with pydantic, in pydantic's words; importing that takes longer than most of our commands run.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import typer


class Converter:
    """Converts the words of one parameter; stands where the library looks for its own converter."""

    def __init__(self, annotation: Any) -> None:
        self.annotation = annotation

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """Return the value, or refuse it by the parameter's name."""
        try:
            if param.multiple or param.nargs == -1:
                return tuple(convert(item, get_args(self.annotation)[0]) for item in value or ())
            if value is None:
                return None
            return _within(convert(value, self.annotation), getattr(param, "min", None))
        except ValueError as error:
            raise typer.BadParameter(str(error), ctx=ctx, param=param) from None


def convert(word: Any, annotation: Any) -> Any:
    """Return a word as text, whole number, path, or one of the choices; ValueError says in words why not."""
    if get_origin(annotation) is Literal:
        choices = get_args(annotation)
        if word not in choices:
            raise ValueError(f'"{word}" is not one of {", ".join(choices)}')
        return word
    if annotation is int and not isinstance(word, int):
        try:
            return int(word)
        except ValueError:
            raise ValueError(f'"{word}" is not a whole number') from None
    if annotation is Path:
        return Path(word)
    return word


def _within(value: Any, least: float | None) -> Any:
    if least is not None and value is not None and value < least:
        raise ValueError(f"must be at least {least:g}")
    return value


def convert_plainly(params: Iterable[Any]) -> None:
    """Give each parameter our converter instead of the library's."""
    for param in params:
        param._runtime_param = Converter(getattr(getattr(param, "type_descriptor", None), "annotation", str))
