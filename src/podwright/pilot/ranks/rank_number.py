"""Which rank a process is, as whoever started it says.

A module of its own since a rank's shim needs it and must start quickly.
"""

from __future__ import annotations

from ..system.numbers import whole_number

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing `typing` takes as long as Python's own start
    from typing import Mapping, Optional, Tuple

OWN_RANK = ("PODWRIGHT_RANK", "PODWRIGHT_LOCAL_RANK")
"""Of a process that the pilot itself started; taken out of what its command sees."""

RANKS = (
    OWN_RANK,
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK"),
    ("PMIX_RANK", "SLURM_LOCALID"),
    ("SLURM_PROCID", "SLURM_LOCALID"),
    ("RANK", "LOCAL_RANK"),
)
"""Where a rank finds its number: MPI's variables before torchrun's, since a site may export RANK for the whole job."""


def find_rank(environ: Mapping[str, str]) -> Optional[Tuple[int, int]]:
    """Return (rank, local rank) of this process, or None when nobody told."""
    for variable, local_variable in RANKS:
        rank = whole_number(environ.get(variable, ""))
        if rank is not None:
            return rank, whole_number(environ.get(local_variable, "")) or 0
    return None
