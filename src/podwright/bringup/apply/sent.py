"""The programs that hosts are sent, each in one piece."""

from __future__ import annotations

import re
from importlib.resources import files

_SHARED = re.compile(r"^from podwright\.bringup\.on_host\.(\w+) import .*\n", re.MULTILINE)
_FUTURE = "from __future__ import annotations\n"


def sent(name: str) -> str:
    """Return a program in one piece, as a host gets it: what it takes from another file here stands in it."""
    here = files("podwright.bringup.on_host")
    return _SHARED.sub(
        lambda found: (here / f"{found[1]}.py").read_text().replace(_FUTURE, ""), (here / name).read_text()
    )
