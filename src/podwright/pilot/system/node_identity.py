"""Which node of the run this is: the engine's own variables, read through one table."""

from __future__ import annotations

import os
import socket
from typing import Mapping, NamedTuple

from .numbers import whole_number


class NodeIdentity(NamedTuple):
    """One node of a run: its number, which start of it this is, and where the leader is."""

    node: int
    restart: int
    leader: str
    host: str
    job: str
    copy: str = ""
    """Tells copies of a job apart where a restart begins the whole job again under the same id."""
    lost: int = 0
    """How many copies of this node before it were lost, where the engine leaves it to the leader to judge that."""
    join_s: int = 0
    """How long this start of it waits for the other nodes at least, where the engine pauses between starts."""


ENGINES = (
    ("PODWRIGHT_NODE", "PODWRIGHT_JOB", False),
    ("JOB_COMPLETION_INDEX", "PODWRIGHT_JOB", False),
    ("SLURM_NODEID", "SLURM_JOB_ID", True),
    ("OMPI_COMM_WORLD_RANK", "PODWRIGHT_JOB", False),
)
"""Of the local engine, Kubernetes, Slurm and Open MPI: the variables of the node's number and of the job's own id, and
whether a restart is one of all nodes at once. Open MPI has no number for nodes: with one pilot per node the rank is it.
Slurm's own count of restarts is not believed: a controller that lost its last minutes starts a job again with the count
it had before."""


def identify_node(environ: Mapping[str, str]) -> NodeIdentity:
    """Return which node this is; the first engine whose node variable is set wins, none set means a run of one node."""
    engines = [row for row in ENGINES if whole_number(environ.get(row[0], "")) is not None]
    node, job, is_whole_job = (engines or ENGINES)[0]
    host = environ.get("PODWRIGHT_HOST") or socket.gethostname()
    restart = _number(environ, "PODWRIGHT_RESTART")
    return NodeIdentity(
        node=_number(environ, node),
        restart=restart,
        leader=environ.get("PODWRIGHT_LEADER") or "127.0.0.1",
        host=host,
        job=environ.get(job) or f"{host}.{os.getpid()}",
        copy=str(restart) if is_whole_job else "",
        lost=_number(environ, "PODWRIGHT_LOST"),
        join_s=_number(environ, "PODWRIGHT_JOIN_S"),
    )


def _number(environ: Mapping[str, str], name: str) -> int:
    return whole_number(environ.get(name, "")) or 0
