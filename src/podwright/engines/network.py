"""What the collectives libraries are told of a pod's compute fabric: variables for NCCL and UCX."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from podwright.engines.base import Request
    from podwright.spec import NodeModel, Pod

NEAR, FAR = "PXB", "PHB"
"""How far apart GPU and NIC may be for GPUDirect: below the same PCIe switches where each NIC has GPUs of its own."""


def network_env(request: Request, pod: Pod, model: NodeModel) -> dict[str, str]:
    """Return variables that let GPUs of several nodes talk; what the workload sets itself is left to it.

    Only what the pod file and the hardware library say is said: a guess would be worse than what NCCL finds by itself.
    Nodes that differ must find out each for itself.
    """
    workload = request.workload
    models = [group.model for group in pod.nodes if "compute" in group.roles]
    if workload.nodes == 1 or workload.resources.gpus == 0 or any(other != model for other in models):
        return {}
    variables = {**_rdma(pod, model), **_sockets(model)}
    return {name: value for name, value in variables.items() if name not in workload.env}


def _rdma(pod: Pod, model: NodeModel) -> dict[str, str]:
    """Return variables that name the compute ports alone: traffic of ranks must not wander to the storage fabric."""
    fabric = pod.compute_fabric()
    ports = [nic for nic in model.nics if nic.kind == "compute" and nic.name]
    if fabric is None or fabric.switch is None or fabric.switch.kind is None or not ports:
        return {}
    names = [nic.name or "" for nic in ports]
    variables = {
        "NCCL_IB_HCA": "=" + ",".join(names),
        "NCCL_NET_GDR_LEVEL": NEAR if all(nic.gpus for nic in ports) else FAR,
        "UCX_NET_DEVICES": ",".join(f"{name}:1" for name in names),
    }
    if fabric.sharp:
        variables["NCCL_COLLNET_ENABLE"] = "1"
    return variables


def _sockets(model: NodeModel) -> dict[str, str]:
    """Return the ordinary network over which NCCL finds its peers before it turns to RDMA.

    An RDMA device is no name for one.
    """
    names = [nic.name for nic in model.nics if nic.kind == "management" and nic.name]
    for name in names:
        if not re.fullmatch(r"mlx\d+_\d+", name):
            return {"NCCL_SOCKET_IFNAME": f"={name}"}
    return {}
