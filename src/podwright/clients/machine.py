"""What this machine has, by its own files."""

from __future__ import annotations

from pathlib import Path

from podwright.pilot.protocol import whole_number


def count_gpus() -> int:
    """Return how many NVIDIA GPUs this machine has, by their device files."""
    names = [path.name.removeprefix("nvidia") for path in Path("/dev").glob("nvidia*")]
    return len([name for name in names if whole_number(name) is not None])
