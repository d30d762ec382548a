"""What hosts get to remedy by: the unit and the hands, in one file beside which they need nothing but Python."""

from __future__ import annotations

from functools import lru_cache

from podwright.telemetry.host_files import carried_program

PROGRAM = "remedy.py"
_MODULES = {
    "podwright.bringup.remedy": (*("desk", "hand", "hands", "journal", "main", "policy", "unit", "webhook"),),
    "podwright.bringup.apply": ("changes", "rolling"),
    "podwright.bringup": ("progress",),
    "podwright.clients": ("reasons",),
    "podwright.files": ("journal", "whole"),
    "podwright.pilot": ("protocol",),
    "podwright.pilot.system": ("numbers", "plain_files"),
    "podwright.spec": ("hostlist", "problems"),
    "podwright.telemetry": ("page", "server"),
}


@lru_cache(maxsize=1)
def remedy_program() -> str:
    """Return the file: Python 3.11, which the hosts of a bring-up have."""
    return carried_program(_MODULES, "podwright.bringup.remedy.main")
