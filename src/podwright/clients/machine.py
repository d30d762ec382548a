"""What this machine has, by its own files."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from podwright.pilot.protocol import whole_number


def count_gpus() -> int:
    """Return how many NVIDIA GPUs this machine has, by their device files."""
    names = [path.name.removeprefix("nvidia") for path in Path("/dev").glob("nvidia*")]
    return len([name for name in names if whole_number(name) is not None])


def visible_gpus() -> tuple[str, ...]:
    """Return the GPUs that programs started here see, as CUDA_VISIBLE_DEVICES names them."""
    named = os.environ.get("CUDA_VISIBLE_DEVICES")
    if named is None:
        return tuple(map(str, range(count_gpus())))
    # CUDA counts up to the first name that it cannot use; an empty list hides them all.
    return tuple(name.strip() for name in named.split(",") if name.strip() not in ("", "-1"))


MEMORY_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
"""Of a container that this process runs in; a machine itself has neither, or one that says nothing."""


def memory_bytes() -> int:
    """Return how much memory there is: the machine's, or less where a container has less."""
    sizes = [os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")]
    for path in MEMORY_LIMITS:
        with suppress(OSError):
            limit = whole_number(Path(path).read_text().strip())
            if limit is not None:
                sizes.append(limit)
    return min(sizes)
