"""`python3 pilot.pyz ROLE ...`: each role imports only what it needs, since a zip is compiled anew at every start."""

from __future__ import annotations

import sys

from . import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing `typing` takes as long as Python's own start
    from typing import Callable, Dict, List

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


def _node(argv: List[str]) -> int:
    from .life.roles import main as run

    return run(argv[0])


def _keep(argv: List[str]) -> int:
    from .keeper.role import main as run

    return run(argv)


def _rank(argv: List[str]) -> int:
    from .ranks.shim import main as run

    return run(argv[1:])


def _contain(argv: List[str]) -> int:
    from .keeper.container import main as run

    return run(argv[0], argv[1:])


def _ship(argv: List[str]) -> int:
    from .carry.ship import main as run

    return run(argv[0])


def _stage(argv: List[str]) -> int:
    from .data.prefetch import main as run

    return run(argv[0])


def _mirror(argv: List[str]) -> int:
    from .carry.mirror import main as run

    return run()


def _sample(argv: List[str]) -> int:
    from .sensors.sampler import main as run

    return run(argv)


ROLES: Dict[str, Callable[[List[str]], int]] = {
    "node": _node,
    "keep": _keep,
    "rank": _rank,
    "contain": _contain,
    "ship": _ship,
    "stage": _stage,
    "mirror": _mirror,
    "sample": _sample,
}
MISUSED = 64
"""As EXIT_BAD_ORDER, without the time that importing the protocol takes."""
MIN_ARGUMENTS = {"node": 1, "keep": 1, "rank": 2, "contain": 2, "ship": 1, "stage": 1}


def _orders(role: str, argv: List[str]) -> List[str]:
    """Return the order files a command line names."""
    if role == "keep":
        while argv and argv[0].startswith("--"):
            argv = argv[2:]
        return argv
    return argv[:1] if role in ("node", "contain", "ship", "stage") else []


def _complaint(orders: List[str]) -> str:
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


def main(argv: List[str]) -> int:
    if argv[:1] == ["--version"]:
        print("podwright pilot " + __version__)
        return 0
    if argv[:1] in ([], ["--help"], ["-h"]):
        print(USAGE, end="")
        return 0
    name, arguments = argv[0], argv[1:]
    role = ROLES.get(name)
    if role is None or len(arguments) < MIN_ARGUMENTS.get(name, 0):
        return _misused()
    orders = _orders(name, arguments)
    if name == "keep" and not orders:
        return _misused()
    complaint = _complaint(orders)
    if complaint:
        print(complaint, file=sys.stderr)
        return MISUSED
    return role(arguments)


def _misused() -> int:
    print(USAGE, end="", file=sys.stderr)
    return MISUSED
