"""The heartbeat of a node: how its ranks are, for the leader, who looks for one that hangs."""

from __future__ import annotations

import os
import time
from typing import Any, Dict, List, Optional, Tuple

from ..protocol import KEY_KIND, Order
from ..system.processes import stat_fields
from .node_ranks import RankProcess, Ranks


class Pulses:
    """Tells of each rank what changed since the beat before."""

    def __init__(self, order: Order, ranks: Ranks) -> None:
        self._order, self._ranks = order, ranks
        self._cpu: Dict[int, Tuple[float, float]] = {}

    def beat(self) -> Dict[str, Any]:
        """Return the heartbeat's facts; per-rank ones only where a hang is looked for."""
        now = time.monotonic()
        if not self._ranks.running or self._order.hang_after_s is None:
            return {KEY_KIND: "beat", "silent_s": 0.0}
        running = [rank for rank in self._ranks.ranks.values() if rank.code is None]
        pulses = {str(rank.number): self._pulse_of(rank, now) for rank in running}
        return {KEY_KIND: "beat", "silent_s": round(now - self._ranks.heard, 2), "ranks": pulses}

    def _pulse_of(self, rank: RankProcess, now: float) -> List[Any]:
        """Return the fields of a RankPulse that a beat carries: silent_s, share of a core, process state, step."""
        cpu_s, state = _process(rank.child)
        then, before = self._cpu.get(rank.number, (now - 1.0, cpu_s))
        self._cpu[rank.number] = (now, cpu_s)
        share = max(cpu_s - before, 0.0) / max(now - then, 0.001)
        return [round(now - rank.heard, 2), round(share, 3), state, rank.step]


def _process(pid: Optional[int]) -> Tuple[float, str]:
    """Return (CPU seconds, state letter) of a process; of none, or of one that is gone, nothing is known."""
    try:
        fields = stat_fields(pid or 0)
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), fields[0].decode()
    except (OSError, IndexError, ValueError):
        return 0.0, "?"
