"""What an entry of a workload's `data:` is, decided here and nowhere else.

Selections (`selection:NAME`) and `data://` addresses will be kinds of their own. Until then the first is a path like
any other, and the second a URL that ranks are given as it is written.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

InputKind = Literal["code", "path", "url"]

_URL = re.compile(r"[\w+.-]+://")


@dataclass(frozen=True, slots=True)
class Input:
    """One input of a run: inside the code that travels, a path that the target must have, or a URL."""

    kind: InputKind
    text: str
    """What ranks are given: relative to the code, absolute on the target, or as written."""


def is_url(text: str) -> bool:
    """Say whether an entry names something by its address, which no disk can be asked about."""
    return _URL.match(text) is not None


def resolve_input(text: str, folder: Path, code_folder: Path | None) -> Input:
    """Return what an entry of a workload in this folder is.

    A relative path inside the code folder travels with the code and is named from there, wherever the run goes. An
    absolute path is the target's own, even where it leads into the code folder of this machine.
    """
    if is_url(text):
        return Input("url", text)
    path = (folder / text).resolve()
    if code_folder is not None and not Path(text).is_absolute() and path.is_relative_to(code_folder):
        return Input("code", path.relative_to(code_folder).as_posix())
    return Input("path", str(path))
