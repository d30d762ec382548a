"""The stages of a bring-up, in their order; each is a table of steps, and a step is a function of site and host."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from podwright.bringup.plan.host import Step
from podwright.bringup.plan.site import Site
from podwright.bringup.plan.stages import (
    base,
    kubernetes,
    logs,
    mirror,
    monitoring,
    netboot,
    nvidia,
    registry,
    slurm,
    storage,
)

StepOf = Callable[[Site, str], Step | None]
"""Returns what a step gives a host; None where it gives nothing."""

STAGES: Mapping[str, Mapping[str, StepOf]] = {
    "base": {"sources": base.sources, "base": base.base, "time": base.time},
    "mirror": {"server": mirror.server, "client": mirror.client},
    "storage": {"exports": storage.exports, "mounts": storage.mounts},
    "netboot": {"server": netboot.server, "system": netboot.system},
    "registry": {"password": registry.password, "server": registry.registry},
    "nvidia": {"driver": nvidia.driver, "tools": nvidia.tools},
    "slurm": {
        "database": slurm.database,
        "accounting": slurm.accounting,
        "controller": slurm.controller,
        "backup": slurm.backup,
        "nodes": slurm.nodes,
    },
    "kubernetes": {
        "runtime": kubernetes.runtime,
        "first": kubernetes.first,
        "credentials": kubernetes.credentials,
        "managers": kubernetes.managers,
        "nodes": kubernetes.nodes,
        "addons": kubernetes.addons,
    },
    "monitoring": {"exporters": monitoring.exporters, "server": monitoring.server},
    "logging": {"server": logs.server, "sender": logs.sender},
}
