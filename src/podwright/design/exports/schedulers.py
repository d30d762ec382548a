"""The topology as files of schedulers: Slurm's topology.conf and topology.yaml, and labels of Kubernetes nodes."""

from __future__ import annotations

from podwright.design.plan import Blueprint
from podwright.design.topology import Topology, block_conf, block_yaml, node_labels, topology_conf, topology_yaml


def scheduler_files(design: Blueprint) -> dict[str, str]:
    """Return the files by their paths."""
    slurm = _topology(design, "slurm")
    files = {
        "slurm/topology.conf": f"# {design.pod.name}: a switch for each scalable unit\n{topology_conf(slurm)}",
        "slurm/topology.yaml": topology_yaml(slurm),
        "kubernetes/node-labels.yaml": _labels_yaml(design),
    }
    if slurm.is_blocks:
        head = f"# {design.pod.name}: a block for each NVLink domain, for topology/block of Slurm 23.11 and later\n"
        files["slurm/block/topology.conf"] = f"{head}{block_conf(slurm)}"
        files["slurm/block/topology.yaml"] = block_yaml(slurm)
    return files


def _topology(design: Blueprint, kind: str) -> Topology:
    """Return the hosts that such schedulers have; all compute hosts where the pod names none."""
    hosts: list[str] = []
    for scheduler in design.pod.schedulers:
        if scheduler.kind == kind:
            hosts += design.pod.scheduler_hosts(scheduler)
    return design.topology.part(hosts or design.pod.compute_hosts())


def _labels_yaml(design: Blueprint) -> str:
    """Return the nodes with their labels, for `kubectl apply --server-side -f`."""
    racks = {name: place.rack for name, place in design.floor.places.items()}
    documents = []
    for host, labels in node_labels(_topology(design, "kubernetes"), design.pod.name, racks).items():
        lines = "".join(f'    {label}: "{value}"\n' for label, value in labels.items())
        documents.append(f"apiVersion: v1\nkind: Node\nmetadata:\n  name: {host}\n  labels:\n{lines}")
    return "---\n".join(documents)
