"""The packages of the extra `data`, which not everybody has installed."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec

from podwright.spec.problems import refuse

_PACKAGES = ("duckdb", "numpy", "PIL", "pyroaring")


def need_packages(names: Sequence[str] = _PACKAGES) -> None:
    """Refuse to go on where a package of the extra is missing, with the command that installs it."""
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        message = f"`podwright data` needs packages that are not installed: {', '.join(missing)}"
        raise refuse(message, hint="pip install 'podwright[data]'")
