"""Slots for runs side by side on one machine: each has CPUs and GPUs of its own. Pure."""

from __future__ import annotations

from typing import List, NamedTuple, Optional, Sequence, Set


class MachineShare(NamedTuple):
    """What one slot has; no GPUs are named where all runs may see all of them."""

    number: int
    cpus: List[int]
    gpus: List[str]

    def gpus_of_node(self, node: int, nodes: int) -> Optional[str]:
        """Return what one node of the run in this slot sees, as CUDA_VISIBLE_DEVICES says it."""
        if not self.gpus:
            return None
        each = len(self.gpus) // nodes
        return ",".join(self.gpus[node * each : (node + 1) * each])


def shares_of(count: int, cpus: Sequence[int], gpus: Sequence[str], gpus_each: int) -> List[MachineShare]:
    """Deal CPUs out evenly, neighbours together, and to each slot as many GPUs as a run asks for.

    A single slot has all there is: whoever starts a run alone shares this machine out himself.
    """
    if count == 1:
        return [MachineShare(0, list(cpus), list(gpus[:gpus_each]))]
    bounds = [len(cpus) * slot // count for slot in range(count + 1)]
    return [
        MachineShare(
            slot,
            list(cpus[bounds[slot] : bounds[slot + 1]]) or list(cpus),
            list(gpus[slot * gpus_each : (slot + 1) * gpus_each]),
        )
        for slot in range(count)
    ]


def first_free(shares: Sequence[MachineShare], taken: Set[int]) -> Optional[MachineShare]:
    """Return a slot that nothing runs in, or None."""
    return next((share for share in shares if share.number not in taken), None)
