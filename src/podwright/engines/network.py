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
    """Gives variables that let GPUs of several nodes talk; what the workload sets itself is left to it.

    Only what the pod file and the hardware library say is said: a guess would be worse than what NCCL finds by itself.
    Nodes that differ must find out each for itself.
    """
    workload = request.workload
    models = [group.model for group in pod.nodes if "compute" in group.roles]
    if workload.nodes == 1 or workload.resources.gpus == 0 or any(one != model for one in models):
        return {}
    found = {**_rdma(pod, model), **_sockets(model)}
    return {name: value for name, value in found.items() if name not in workload.env}


def _rdma(pod: Pod, model: NodeModel) -> dict[str, str]:
    """The compute ports alone: traffic between ranks must not wander to the storage fabric."""
    fabric = pod.compute_fabric()
    ports = [nic for nic in model.nics if nic.kind == "compute" and nic.name]
    if fabric is None or fabric.switch is None or fabric.switch.kind is None or not ports:
        return {}
    names = [nic.name or "" for nic in ports]
    return {
        "NCCL_IB_HCA": "=" + ",".join(names),
        "NCCL_NET_GDR_LEVEL": NEAR if all(nic.gpus for nic in ports) else FAR,
        "UCX_NET_DEVICES": ",".join(f"{name}:1" for name in names),
        **({"NCCL_COLLNET_ENABLE": "1"} if fabric.sharp else {}),
    }


def _sockets(model: NodeModel) -> dict[str, str]:
    """NCCL finds its peers over an ordinary network before it turns to RDMA; an RDMA device is no name for one."""
    names = [nic.name for nic in model.nics if nic.kind == "management" and nic.name]
    name = next((name for name in names if not re.fullmatch(r"mlx\d+_\d+", name)), None)
    return {"NCCL_SOCKET_IFNAME": f"={name}"} if name else {}
