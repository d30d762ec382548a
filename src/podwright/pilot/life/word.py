"""What a pilot says to the exporter of its host, where there is one: how far its run is, for Prometheus."""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from typing import Callable, Dict, Optional

from ..ranks.node_ranks import Ranks
from ..system.plain_files import write_whole

WORDS = "/run/podwright/words"
"""Made by the exporter, for everybody to write to; each file is believed of its owner's runs alone."""
_PERIOD_S = 5.0


class RunWord:
    """A small file that says which step each rank is at, written again while the run goes on."""

    def __init__(
        self, run: str, node: int, ranks: Ranks, folder: str = WORDS, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ranks, self._run, self._clock = ranks, run, clock
        self._path = os.path.join(folder, "%s.%d.json" % (run, node))
        self._is_asked = os.path.isdir(folder)
        self._due = 0.0
        self.checkpoint_at: Optional[float] = None

    def beat(self) -> None:
        """Write the word, once in a while; nobody waits for it, and what hinders it is not the run's affair."""
        now = self._clock()
        if not self._is_asked or now < self._due:
            return
        self._due = now + _PERIOD_S
        steps: Dict[str, float] = {}
        told: Dict[str, float] = {}
        for number, rank in sorted(self._ranks.ranks.items(), reverse=True):
            if rank.code is None and rank.step is not None:
                steps[str(number)] = rank.step
            told = rank.time or told  # the lowest rank speaks for all
        word = {"run": self._run, "steps": steps, "checkpoint_at": self.checkpoint_at, "time": told}
        with suppress(OSError):
            write_whole(self._path, json.dumps(word).encode())

    def close(self) -> None:
        """Take the word back."""
        if self._is_asked:
            with suppress(OSError):
                os.unlink(self._path)
