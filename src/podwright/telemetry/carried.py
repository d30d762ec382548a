"""The exporters as one file: a host has a Python and nothing of ours, and this is what it is given.

`host_program` writes the modules into SOURCES; they are imported from there, as if they lay in folders.
"""

from __future__ import annotations

import importlib.abc
import importlib.util
import sys
from typing import Any, Dict, Optional

SOURCES: Dict[str, str] = {}


class CarriedModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds and runs the modules that this file carries."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Optional[Any]:
        """Return what is carried under a name; a package is what others lie in."""
        is_package = any(other.startswith(name + ".") for other in SOURCES)
        if name not in SOURCES and not is_package:
            return None
        return importlib.util.spec_from_loader(name, self, is_package=is_package)

    def exec_module(self, module: Any) -> None:
        """Run a module; its text is needed once."""
        source = SOURCES.pop(module.__name__, "")
        exec(compile(source, "exporters.py: " + module.__name__, "exec"), module.__dict__)


if __name__ == "__main__":
    sys.meta_path.insert(0, CarriedModules())
    importlib.import_module("podwright.telemetry.__main__").main(sys.argv[1:])
