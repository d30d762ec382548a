"""Names of a package that are imported when they are first used: a door must cost nothing to whoever passes by."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

_IMPORT = re.compile(r"^    from ([\w.]+) import (?:\(([^)]*)\)|(.*))$", re.MULTILINE)


def late_names(package: str, file: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package whose `__init__.py` this is.

    Where each name is defined stands there once: in the imports under TYPE_CHECKING, which type checkers read too.
    """
    home_of: dict[str, str] = {}
    for match in _IMPORT.finditer(Path(file).read_text(encoding="utf-8")):
        names = re.sub(r" as \w+", "", match[2] or match[3])
        home_of |= dict.fromkeys(re.findall(r"\w+", names), match[1])

    def find(name: str) -> Any:
        home = home_of.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if home == package:
            return import_module(f"{package}.{name}")
        return getattr(import_module(home), name)

    return find
