"""How long a client of a cluster waits for what."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Patience:
    """In seconds; a test hands in shorter ones."""

    come_back_s: float = 60.0
    """For a server that went away while a run was submitted."""
    short_s: float = 60.0
    """For the rest of a run's nodes, before those that it has are given back."""
    again_s: float = 30.0
    """Before it tries again, the first time."""
