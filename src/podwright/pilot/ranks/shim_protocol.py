"""What a rank's shim and its pilot agree on: its number, and the order that it is given.

A module of its own, which imports almost nothing, since a shim must start quickly.
"""

from __future__ import annotations

from ..system.numbers import whole_number

TYPE_CHECKING = False
if TYPE_CHECKING:  # importing `typing` takes as long as Python's own start
    from typing import Iterable, Iterator, Mapping, Optional, Tuple

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

END = b"\0\n"
"""Ends a message and is nowhere in it: a name follows each NUL."""


def find_rank(environ: Mapping[str, str]) -> Optional[Tuple[int, int]]:
    """Return (rank, local rank) of this process, or None where nobody says."""
    for variable, local_variable in RANKS:
        rank = whole_number(environ.get(variable, ""))
        if rank is not None:
            return rank, whole_number(environ.get(local_variable, "")) or 0
    return None


def pack(rows: Iterable[Tuple[str, object]]) -> bytes:
    """Return a message; a name may come several times."""
    return "".join(f"{name}={value}\0" for name, value in rows).encode("utf-8", "surrogateescape") + b"\n"


def unpack(message: bytes) -> Iterator[Tuple[str, str]]:
    """Yield the names and values of a message."""
    for row in message[: -len(END)].decode("utf-8", "surrogateescape").split("\0"):
        name, _, value = row.partition("=")
        yield name, value
