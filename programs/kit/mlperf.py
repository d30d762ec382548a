"""The lines of an MLPerf training log around a run: who submits what, and when each part begins and ends."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from .tell import Teller

START, END, POINT = "INTERVAL_START", "INTERVAL_END", "POINT_IN_TIME"


class Log:
    """One run's log, for the open division: our sizes and data are not those of the closed one."""

    def __init__(self, teller: Teller) -> None:
        self._teller = teller

    def point(self, key: str, value: object = None, **metadata: str | int) -> None:
        """A fact."""
        self._teller.mllog(POINT, key, value, **metadata)

    def begin(self, key: str, **metadata: str | int) -> None:
        """A part begins."""
        self._teller.mllog(START, key, None, **metadata)

    def end(self, key: str, **metadata: str | int) -> None:
        """It ends."""
        self._teller.mllog(END, key, None, **metadata)

    @contextmanager
    def part(self, name: str, **metadata: str | int) -> Iterator[None]:
        """Both; a part that ends by an error has no end in the log."""
        self.begin(f"{name}_start", **metadata)
        yield
        self.end(f"{name}_stop", **metadata)

    def submission(self, benchmark: str) -> None:
        """Who submits what; org and platform are what Podwright or the user set."""
        self.point("submission_benchmark", benchmark)
        self.point("submission_division", "open")
        self.point("submission_org", os.environ.get("MLPERF_SUBMISSION_ORG", "not stated"))
        self.point("submission_platform", os.environ.get("MLPERF_SUBMISSION_PLATFORM", "not stated"))
        self.point("submission_status", os.environ.get("MLPERF_STATUS", "research"))
        # The data lies in memory or is read for the first time: there is no cache of an earlier run to be cleared.
        self.point("cache_clear", True)

    def sizes(self, global_batch: int, train_samples: int, eval_samples: int) -> None:
        """How much there is to train on and to score on."""
        self.point("global_batch_size", global_batch)
        self.point("train_samples", train_samples)
        self.point("eval_samples", eval_samples)
