"""How long a client of a cluster waits for what."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Patience:
    """In seconds; a test hands in shorter ones."""

    come_back_s: float = 60.0
    """For a server that went away while a run was submitted."""
