"""Which node of the run this is: the engine's own variables, read through one table."""

from __future__ import annotations

import os
import socket
from typing import Mapping, NamedTuple, Optional, Tuple


class NodePlace(NamedTuple):
    node: int
    restart: int
    leader: str
    host: str
    job: str
    copy: str = ""
    """Tells copies of a job apart where a restart begins the whole job anew under the same id."""


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
    EngineVariables("slurm", "SLURM_NODEID", "SLURM_RESTART_COUNT", "SLURM_JOB_ID", whole=True),
    EngineVariables("openmpi", "OMPI_COMM_WORLD_RANK", "PODWRIGHT_RESTART", "PODWRIGHT_JOB"),
)
"""Open MPI has no number for nodes: with one pilot per node the rank is it."""

RANKS: Tuple[Tuple[str, str], ...] = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("PMIX_RANK", "SLURM_LOCALID"),
    ("SLURM_PROCID", "SLURM_LOCALID"),
    ("RANK", "LOCAL_RANK"),
)
"""Where a rank finds its number: MPI's own variables first, since a site may export RANK for the whole job."""


def find_place(environ: Mapping[str, str], leader: Optional[str]) -> NodePlace:
    """The first engine whose node variable is set wins; none set means a run of one node."""
    row = next((row for row in ENGINES if environ.get(row.node, "").isdigit()), ENGINES[0])
    host = environ.get("PODWRIGHT_HOST") or socket.gethostname()
    restart = _number(environ, row.restart)
    return NodePlace(
        node=_number(environ, row.node),
        restart=restart,
        leader=environ.get("PODWRIGHT_LEADER") or leader or "127.0.0.1",
        host=host,
        job=environ.get(row.job) or f"{host}.{os.getpid()}",
        copy=str(restart) if row.whole else "",
    )


def find_rank(environ: Mapping[str, str]) -> Optional[Tuple[int, int]]:
    """(rank, local rank) of this process, or None when nobody told."""
    for rank, local in RANKS:
        if environ.get(rank, "").isdigit():
            return int(environ[rank]), _number(environ, local)
    return None


def _number(environ: Mapping[str, str], name: str) -> int:
    value = environ.get(name, "")
    return int(value) if value.isdigit() else 0
