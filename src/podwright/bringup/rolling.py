"""A change that goes through a pod in batches: nodes are drained before it, and taken back after it.

What fails stops it: the batch stays drained, with the reason, and the nodes that were not reached are as before.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from podwright.spec.hostlist import fold_hosts
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.bringup.site import Site

REASON = "podwright: rolling change"
# As sinfo writes the states of nodes on which nothing runs any more.
_EMPTY = frozenset({"drained", "down", "down*", "drained*"})
Shell = Callable[[str], str]
"""Runs a line of shell where Slurm's commands are; returns what it printed, and refuses where it failed."""


def batches(hosts: Sequence[str], size: int) -> Iterator[list[str]]:
    """Yield the hosts in their order, so many at a time."""
    for start in range(0, len(hosts), size):
        yield list(hosts[start : start + size])


@dataclass(frozen=True)
class SlurmDrain:
    """Takes nodes out of Slurm and back; making this object touches nothing."""

    shell: Shell
    patience_s: float = 24 * 3600.0
    every_s: float = 5.0

    def drain(self, hosts: Sequence[str]) -> None:
        """Let no more jobs start on these nodes, and wait until those that run there have ended."""
        self._update(hosts, f"State=DRAIN Reason={shlex.quote(REASON)}")
        until_s = time.monotonic() + self.patience_s
        while busy := self._busy(hosts):
            if time.monotonic() > until_s:
                hint = "the nodes stay drained; `scontrol update NodeName=... State=RESUME` takes them back"
                raise refuse(f"jobs on {fold_hosts(busy)} did not end within {self.patience_s:.0f} s", hint=hint)
            time.sleep(self.every_s)

    def resume(self, hosts: Sequence[str]) -> None:
        """Let jobs start there again."""
        self._update(hosts, "State=RESUME")

    def _update(self, hosts: Sequence[str], change: str) -> None:
        self.shell(f"scontrol update NodeName={shlex.quote(fold_hosts(hosts))} {change}")

    def _busy(self, hosts: Sequence[str]) -> list[str]:
        said = self.shell(f"sinfo --noheader --Node --nodes={shlex.quote(fold_hosts(hosts))} --format='%N %T'")
        rows = [line.split() for line in said.splitlines()]
        return sorted({row[0] for row in rows if len(row) == 2 and row[1] not in _EMPTY})


def split(site: Site, hosts: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the hosts that no job runs on, which come first and all at once, and the nodes."""
    return [host for host in hosts if host not in site.compute], [host for host in hosts if host in site.compute]
