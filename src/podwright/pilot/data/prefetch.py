"""Brings the data of a run into a cache that all its nodes share, while the run waits for them."""

from __future__ import annotations

import os
import queue
import signal
import sys
from contextlib import suppress
from typing import List, Optional

from ..protocol import EXIT_FAILED, EXIT_STOPPED, read_order
from ..system.paths import cache_folder
from .cache import Cache
from .manifest import must_verify, read_inputs
from .staging import Counts, Stager, StagingIdentity

STOPPED = "stopped"


def main(argv: List[str]) -> int:
    """Bring all that is missing; return an exit code. The run itself brings what this leaves."""
    order, job = read_order(argv[0]), os.path.dirname(os.path.abspath(argv[0]))
    outcome: "queue.SimpleQueue[Optional[str]]" = queue.SimpleQueue()
    # Not under the name of the run: its own pilots may begin while this one ends.
    identity = StagingIdentity(f"{order.run}.prefetch", 0, 1, "prefetch")
    cache = Cache(cache_folder(order, job), (order.cache or {}).get("bytes"), verify=must_verify(order.data))
    stager = Stager(identity, lambda: read_inputs(job, order.data), cache, b"", os.environ, outcome.put)
    signal.signal(signal.SIGTERM, lambda *_: outcome.put(STOPPED))
    stager.start()
    stager.stage([])
    reason = _await(outcome)
    stager.close()
    print(f"podwright: {_sentence(stager.counts, reason)}", file=sys.stderr)
    if reason == STOPPED:
        return EXIT_STOPPED
    return 0 if reason is None else EXIT_FAILED


def _await(outcome: "queue.SimpleQueue[Optional[str]]") -> Optional[str]:
    """Wait for the outcome; look up now and then, since a signal just before a wait does not end it."""
    while True:
        with suppress(queue.Empty):
            return outcome.get(timeout=1.0)


def _sentence(counts: Counts, reason: Optional[str]) -> str:
    fields = counts.fields()
    text = f"{fields['bytes']} of {fields['of']} bytes are in the cache, {fields['from_source']} from the source"
    return f"{reason}; {text}" if reason else text
