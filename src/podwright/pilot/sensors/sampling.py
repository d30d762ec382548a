"""The thread that samples this node's sensors into its metrics file."""

from __future__ import annotations

import threading
import time
from typing import Any, Callable, Dict

from ..protocol import KEY_EPOCH, KEY_NODE, KEY_TIME, KEY_VALUES
from ..system.journal import MAX_WAITING_SAMPLES, Journal, JsonLines
from .sampler import Sampler

END_S = 2.0
"""How long the end of a run waits for a last sample; a driver that hangs is left to the end of the process."""


class Sampling:
    """Samples every `period_s` in a thread of its own: a driver that hangs must not hold up ranks or heartbeat."""

    def __init__(self, journal: Journal, node: int, path: str, period_s: float) -> None:
        self._journal, self._node, self._period_s = journal, node, period_s
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._lines = JsonLines(path, MAX_WAITING_SAMPLES)
        self._fit: Callable[[Dict[str, float]], Dict[str, float]] = dict
        self.sampler = Sampler(journal.say, period_s)

    def open(self) -> Dict[str, Any]:
        """Find the sensors there are; return what this node offers the run."""
        self.sampler.open()
        return self.sampler.describe()

    def start(self, fit: Callable[[Dict[str, float]], Dict[str, float]]) -> None:
        """Begin to sample; `fit` makes the machine's values those of the node, see `own_share`."""
        self._fit = fit
        try:
            self._thread.start()
        except RuntimeError as error:  # no thread is to be had: the run goes on unmeasured
            self._journal.say("sensor", name="sampling", error=str(error))

    def stop(self) -> None:
        """Take the last sample and end the thread."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join(timeout=END_S)

    def _run(self) -> None:
        due = time.monotonic()
        while not self._ended.wait(max(due - time.monotonic(), 0.0)):
            self._write(self.sampler.sample(time.monotonic()))
            # After a reading that took longer than a period the next one is due now; the lost ones are not caught up.
            due = max(due + self._period_s, time.monotonic())
        self._write(self.sampler.final())
        self.sampler.close()
        self._lines.close()

    def _write(self, values: Dict[str, float]) -> None:
        values = self._fit(values)
        if not values:
            return
        at = {KEY_TIME: round(self._journal.now(), 3), KEY_NODE: self._node, KEY_EPOCH: list(self._journal.epoch)}
        self._lines.write({**at, KEY_VALUES: values})


def own_share(values: Dict[str, float], cpus: int) -> Dict[str, float]:
    """Return the values of one of several nodes on one machine: what its ranks use, not what the machine does."""
    shares = {"cpu_percent": ("cpu_percent", 1.0 / cpus), "memory_used_bytes": ("memory_bytes", 1.0)}
    own = dict(values)
    for name, (of_rank, factor) in shares.items():
        parts = [value for key, value in values.items() if key.startswith("rank.") and key.endswith("." + of_rank)]
        if name in own:
            own[name] = round(sum(parts) * factor, 3)
    return own
