"""The half of `predict` that asks what is left of a pod when devices are lost."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from podwright import design, launch
from podwright.cli.terminal import output
from podwright.spec.hostlist import expand_hosts, fold_hosts

if TYPE_CHECKING:
    from podwright.design import Loss
    from podwright.spec import Pod

WORDS = {"bmc": "controllers"}


def print_loss(pod: Pod, names: str, as_json: bool) -> None:
    """Print what is left of a pod without some devices, and the runs at work that feel it."""
    loss = design.Design.of(pod).lose(expand_hosts(names))
    runs = _runs(pod.name, loss.hosts)
    if as_json:
        return output.print_json(loss.as_json(runs))
    return print("\n".join(_lines(loss, runs)))


def _runs(pod: str, hosts: set[str]) -> list[str]:
    """Return the runs at work on these hosts of a pod."""
    with launch.Session.open() as session:
        records = [run.record() for run in launch.open_runs(session, pod)]
    return [record.id for record in records if hosts.intersection(record.hosts)]


def _lines(loss: Loss, runs: list[str]) -> Iterator[str]:
    yield from output.aligned("lost", fold_hosts(loss.lost), sys.stdout)
    cut_off = [f"{WORDS.get(name, name)}: {fold_hosts(devices)}" for name, devices in loss.cut_off.items() if devices]
    yield from output.aligned("cut off", "\n".join(cut_off) or "nothing", sys.stdout)
    left = [f"{name}: {share * 100:.1f} % on the node that has least" for name, share in loss.bandwidth_left.items()]
    yield from output.aligned("left", "\n".join(left), sys.stdout)
    yield from output.aligned("runs", ", ".join(runs) or "none at work on them", sys.stdout)
