"""The stages of a bring-up, in their order; each is a table of steps, and a step is a function of site and host."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from podwright.bringup.plan.host import Step
from podwright.bringup.plan.site import Site
from podwright.bringup.plan.stages import (
    base,
    controllers,
    firewall,
    kubernetes,
    logs,
    mirror,
    monitoring,
    netboot,
    node_access,
    nvidia,
    registry,
    remedy,
    slurm,
    storage,
)

StepOf = Callable[[Site, str], Step | None]
"""Returns what a step gives a host; None where it gives nothing."""

STAGES: Mapping[str, Mapping[str, StepOf]] = {
    "base": {
        "sources": base.sources,
        "base": base.base,
        "firewall": firewall.firewall,
        "time": base.time,
        "python": base.python,
    },
    "mirror": {"server": mirror.server, "client": mirror.client},
    "storage": {"exports": storage.exports, "mounts": storage.mounts, "people": storage.people},
    "netboot": {"server": netboot.server, "system": netboot.system},
    "registry": {"password": registry.password, "server": registry.registry, "images": registry.images},
    "nvidia": {"headers": nvidia.headers, "driver": nvidia.driver, "tools": nvidia.tools},
    "slurm": {
        "database": slurm.database,
        "accounting": slurm.accounting,
        "controller": slurm.controller,
        "backup": slurm.backup,
        "nodes": slurm.nodes,
        "way_in": node_access.way_in,
    },
    "kubernetes": {
        "runtime": kubernetes.runtime,
        "first": kubernetes.first,
        "credentials": kubernetes.credentials,
        "managers": kubernetes.managers,
        "nodes": kubernetes.nodes,
        "addons": kubernetes.addons,
    },
    "monitoring": {
        "exporters": monitoring.exporters,
        "keys": monitoring.keys,
        "controllers": controllers.controllers,
        "remedy": remedy.remedy,
        "server": monitoring.server,
    },
    "logging": {"server": logs.server, "sender": logs.sender},
}
