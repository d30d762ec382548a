"""The three things that are replaced in a command and in env: `{data.NAME}`, `{matrix.NAME}`, `{checkpoint}`.

Any other brace stays as it is, so that JSON, shell and format strings pass through untouched.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

Scalar = str | int | float | bool

_PLACEHOLDER = re.compile(r"\{((?:data|matrix)\.([A-Za-z0-9_-]+)|checkpoint)\}", re.ASCII)


def fill(text: str, values: Mapping[str, Scalar]) -> str:
    """Replace the placeholders whose names (`data.frames`, `matrix.lr`, `checkpoint`) have a value; others stay.

    What was filled in is not looked at again: a value that has braces in it stays as it is.
    """

    def replace(match: re.Match[str]) -> str:
        if match[1] not in values:
            return match[0]
        return written(values[match[1]])

    return _PLACEHOLDER.sub(replace, text)


def names_in(text: str) -> list[str]:
    """Return the names of the placeholders in a text, in their order: `data.frames`, `checkpoint`."""
    return [match[1] for match in _PLACEHOLDER.finditer(text)]


def written(value: Scalar) -> str:
    """Return a scalar as YAML and most command lines write it: `true`, not `True`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
