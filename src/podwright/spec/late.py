"""Names of a package that are imported when they are first used: a door must cost nothing to whoever passes by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def late_names(package: str, files: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package that has these names in these files."""

    def find(name: str) -> Any:
        for file, names in files.items():
            if name in names.split():
                return getattr(import_module(f"{package}.{file}"), name)
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return find
