"""Engines: the code behind a target. The tables below are all the rest of Podwright knows of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podwright.engines.base import Engine
    from podwright.spec import Pod


def _local() -> Engine:
    from podwright.engines.local import LocalEngine

    return LocalEngine()


def _local_frames() -> Engine:
    from podwright.engines.local import LocalEngine

    return LocalEngine(shared=False)


def _slurm(pod: Pod, scheduler: str | None) -> Engine:
    from podwright.engines.slurm import SlurmEngine
    from podwright.spec import SlurmScheduler

    slurm = pod.scheduler(scheduler)
    assert isinstance(slurm, SlurmScheduler)
    return SlurmEngine(pod, slurm)


def _kubernetes(pod: Pod, scheduler: str | None) -> Engine:
    from podwright.engines.kubernetes import KubernetesEngine
    from podwright.spec import KubernetesScheduler

    kubernetes = pod.scheduler(scheduler)
    assert isinstance(kubernetes, KubernetesScheduler)
    return KubernetesEngine(pod, kubernetes)


ENGINES: dict[str, Callable[[], Engine]] = {"local": _local, "local-frames": _local_frames}
"""`local-frames`: the local engine without a shared folder, which tries on a laptop how a record travels in frames."""

SCHEDULERS: dict[str, Callable[[Pod, str | None], Engine]] = {"slurm": _slurm, "kubernetes": _kubernetes}
"""The engine of a pod's scheduler, by its kind."""

__all__ = ["ENGINES", "SCHEDULERS"]
