"""What an entry of a workload's `data:` is, decided here and nowhere else.

What a selection or a `data://` address leads to is known only where a run is started: `launch` makes a path of both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

InputKind = Literal["code", "path", "url", "selection", "storage", "staged"]

SELECTION = "selection:"
STORAGE = "data://"
_URL = re.compile(r"[\w+.-]+://")


@dataclass(frozen=True, slots=True)
class Input:
    """One input of a run: inside the code that travels, a path that the target must have, or named otherwise.

    What is `staged` the pilots bring to their nodes; its text is where it lies now.
    """

    kind: InputKind
    text: str
    """What ranks are given: relative to the code, absolute on the target, or as written."""
    behind: tuple[str, ...] = ()
    """Of a folder of links: the absolute paths that they lead into."""


def is_named(text: str) -> bool:
    """Say whether an entry is a selection or an address, which no disk can be asked about."""
    return text.startswith(SELECTION) or _URL.match(text) is not None


def resolve_input(text: str, folder: Path, code_folder: Path | None) -> Input:
    """Return what an entry of a workload in this folder is.

    A relative path inside the code folder travels with the code and is named from there, wherever the run goes. An
    absolute path is the target's own, even where it leads into the code folder of this machine.
    """
    if text.startswith(SELECTION):
        return Input("selection", text)
    if text.startswith(STORAGE):
        return Input("storage", text)
    if is_named(text):
        return Input("url", text)
    path = (folder / text).resolve()
    if code_folder is not None and not Path(text).is_absolute() and path.is_relative_to(code_folder):
        return Input("code", path.relative_to(code_folder).as_posix())
    return Input("path", str(path))
