"""A client that is killed as soon as it has the answer to a request of its submission.

python -m tests.contract.killed HOME WORKLOAD TARGET REQUEST
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from podwright import launch, spec
from podwright.runs import Home
from tests.contract.sites import kubernetes_session


class Counter:
    """Counts the answers since the run's folder is there, and ends this process at one of them."""

    def __init__(self, home: Home, last: int) -> None:
        self._home, self._last = home, last
        self._before = self._begun()
        self._count = 0

    def _begun(self) -> int:
        return len(list(self._home.runs.glob("*/client.jsonl")))

    def __call__(self, method: str, path: str) -> None:
        self._count += self._begun() > self._before
        if self._count == self._last:
            os.kill(os.getpid(), signal.SIGKILL)


def main(folder: str, workload: str, target: str, last: str) -> None:
    home = Home.open(Path(folder))
    session = kubernetes_session(home, Counter(home, int(last)))
    launch.start(session, spec.load_workload(Path(workload)), target)


if __name__ == "__main__":
    main(*sys.argv[1:])
