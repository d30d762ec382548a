"""Which node of the run this is: the engine's own variables, read through one table."""

from __future__ import annotations

import os
import socket
from typing import Mapping, NamedTuple, Optional, Tuple

from .numbers import whole_number


class NodePlace(NamedTuple):
    """One node of a run: its number, which start of it this is, and where the leader is."""

    node: int
    restart: int
    leader: str
    host: str
    job: str
    copy: str = ""
    """Tells copies of a job apart where a restart begins the whole job anew under the same id."""
    lost: int = 0
    """How many copies of this node before it were lost, where the engine leaves it to the leader to judge that."""
    join_s: int = 0
    """How long this start of it waits for the other nodes at least, where the engine pauses between starts."""


class EngineVariables(NamedTuple):
    """How one engine says it: variables for the node's number, the engine's restart count and the job's own id."""

    engine: str
    node: str
    restart: str
    job: str
    whole: bool = False
    """A restart is one of all nodes at once."""


ENGINES: Tuple[EngineVariables, ...] = (
    EngineVariables("local", "PODWRIGHT_NODE", "PODWRIGHT_RESTART", "PODWRIGHT_JOB"),
    EngineVariables("kubernetes", "JOB_COMPLETION_INDEX", "PODWRIGHT_RESTART", "PODWRIGHT_JOB"),
    EngineVariables("slurm", "SLURM_NODEID", "PODWRIGHT_RESTART", "SLURM_JOB_ID", whole=True),
    EngineVariables("openmpi", "OMPI_COMM_WORLD_RANK", "PODWRIGHT_RESTART", "PODWRIGHT_JOB"),
)
"""Open MPI has no number for nodes: with one pilot per node the rank is it. Slurm's own count of restarts is not
believed: a controller that lost its last minutes starts a job again with the count it had before."""


def find_place(environ: Mapping[str, str], leader: Optional[str]) -> NodePlace:
    """Return which node this is; the first engine whose node variable is set wins, none set means a run of one node."""
    engines = [engine for engine in ENGINES if whole_number(environ.get(engine.node, "")) is not None]
    engine = (engines or list(ENGINES))[0]
    host = environ.get("PODWRIGHT_HOST") or socket.gethostname()
    restart = _number(environ, engine.restart)
    copy = str(restart) if engine.whole else ""
    return NodePlace(
        node=_number(environ, engine.node),
        restart=restart,
        leader=environ.get("PODWRIGHT_LEADER") or leader or "127.0.0.1",
        host=host,
        job=environ.get(engine.job) or f"{host}.{os.getpid()}",
        copy=copy,
        lost=_number(environ, "PODWRIGHT_LOST"),
        join_s=_number(environ, "PODWRIGHT_JOIN_S"),
    )


def _number(environ: Mapping[str, str], name: str) -> int:
    return whole_number(environ.get(name, "")) or 0
