"""What the monitoring host gets to ask management controllers by, in one file beside which it needs nothing."""

from __future__ import annotations

from functools import lru_cache

from podwright.telemetry.host_files import carried_program

PROGRAM = "bmcs.py"
_MODULES = {
    "podwright.bringup.bmc": ("poller",),
    "podwright.clients": ("http_client", "reasons", "redfish", "redfish_channel"),
    "podwright.spec": ("problems",),
    "podwright.telemetry": ("page", "server"),
}


@lru_cache(maxsize=1)
def bmc_program() -> str:
    """Return the file: Python 3.11, which the hosts of a bring-up have."""
    return carried_program(_MODULES, "podwright.bringup.bmc.poller")
