"""The alerts of a pod: what is looked at, how grave it is, what is likely behind it, and where to look further."""

from __future__ import annotations

from collections.abc import Iterator

from podwright.watch.alerts.alert import Alert
from podwright.watch.alerts.gpus import GPUS
from podwright.watch.alerts.hosts import CONTROL, HOSTS, SLURM
from podwright.watch.alerts.links import LINKS
from podwright.watch.alerts.runs import RUNS


def alerts_of(has_slurm: bool) -> Iterator[Alert]:
    """Yield the alerts of a pod, those of hosts first."""
    for group in (HOSTS, GPUS, LINKS, RUNS, CONTROL, SLURM if has_slurm else ()):
        yield from group
