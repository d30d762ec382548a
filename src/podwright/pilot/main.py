"""`python3 pilot.pyz ROLE ...`: each role imports only what it needs, since a zip is compiled again at every start."""

from __future__ import annotations

import sys

from . import __version__

USAGE = """\
The pilot of Podwright: runs beside the workload on every node of a run.

  pilot.pyz node ORDER                          the pilot of one node
  pilot.pyz keep [--after RUN_FOLDER] [--at-once N] [--gpus LIST] ORDER...
                                                all nodes of runs on this machine, so many runs side by side
  pilot.pyz rank -- COMMAND                     one rank, started by a launcher
  pilot.pyz contain ORDER COMMAND               the pilot of one node, in the container that the command starts
  pilot.pyz ship ORDER                          send this node's record to standard output as frames
  pilot.pyz stage ORDER                         bring the data of a run into a cache that its nodes share
  pilot.pyz mirror                              answer what has come of runs, asked on standard input
  pilot.pyz sample [--seconds N] [--out FILE]   show what the sensors read here
  pilot.pyz --version
"""


ROLES = {
    "node": ("life.roles", 1),
    "keep": ("keeper.role", 1),
    "rank": ("ranks.shim", 2),
    "contain": ("keeper.container", 2),
    "ship": ("carry.ship", 1),
    "stage": ("data.prefetch", 1),
    "mirror": ("carry.mirror", 0),
    "sample": ("sensors.sampler", 0),
}
"""The module of each role, and how many arguments it needs."""
MISUSED = 64
"""As EXIT_BAD_ORDER, without the time that importing the protocol takes."""


def _orders(role: str, argv: list[str]) -> list[str]:
    """Return the order files a command line names."""
    if role == "keep":
        while argv and argv[0].startswith("--"):
            argv = argv[2:]
        return argv
    return argv[:1] if role in ("node", "contain", "ship", "stage") else []


def _complaint(orders: list[str]) -> str:
    """Return what is wrong with the first order that cannot be read, or nothing."""
    if not orders:
        return ""
    from .protocol import read_order
    from .system.sealed import order_path

    try:
        for path in orders:
            read_order(order_path(path))
    except (OSError, ValueError) as error:
        return f"podwright: {error}"
    return ""


def main(argv: list[str]) -> int:
    if argv[:1] == ["--version"]:
        print("podwright pilot " + __version__)
        return 0
    if argv[:1] in ([], ["--help"], ["-h"]):
        print(USAGE, end="")
        return 0
    name, arguments = argv[0], argv[1:]
    module, min_arguments = ROLES.get(name, ("", 0))
    orders = _orders(name, arguments)
    if not module or len(arguments) < min_arguments or (name == "keep" and not orders):
        print(USAGE, end="", file=sys.stderr)
        return MISUSED
    complaint = _complaint(orders)
    if complaint:
        print(complaint, file=sys.stderr)
        return MISUSED
    # Not by importlib, which takes longer to import than a rank's shim has.
    role = __import__(f"{__package__}.{module}", fromlist=["main"])
    exit_code: int = role.main(arguments)
    return exit_code
