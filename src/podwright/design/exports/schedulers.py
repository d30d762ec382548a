"""The topology as schedulers take it: Slurm's topology.conf and topology.yaml, and labels of Kubernetes nodes.

A scalable unit is one leaf of Slurm's tree: its rails are many switches that all see the same nodes. Units that share
spines on every rail are a branch of their own where the rails are split into groups.
"""

from __future__ import annotations

from collections.abc import Iterator

from podwright.design.plan import Design
from podwright.design.topology import unit_name
from podwright.spec.hostlist import fold_hosts

LABEL = "podwright.dev"


def branches(design: Design) -> list[tuple[str, list[str], str]]:
    """Gives Slurm's switches, lowest first: a name, its hosts or switches, and which of the two."""
    units = [(unit_name(number), hosts) for number, hosts in enumerate(_units(design, "slurm"), 1)]
    rows = [(name, hosts, "nodes") for name, hosts in units if hosts]
    groups = list(_groups(design, [name for name, hosts in units if hosts]))
    if len(groups) > 1:
        rows += [(name, members, "switches") for name, members in groups]
    top = [name for name, _ in groups] if len(groups) > 1 else [name for name, _, _ in rows]
    return [*rows, ("core" if len(groups) > 1 else "spine", top, "switches")] if len(top) > 1 else rows


def topology_conf(design: Design) -> str:
    """Gives Slurm's topology.conf."""
    words = {"nodes": "Nodes", "switches": "Switches"}
    lines = [f"SwitchName={name} {words[kind]}={fold_hosts(members)}" for name, members, kind in branches(design)]
    return "\n".join([f"# {design.pod.name}: a switch for each scalable unit", *lines]) + "\n"


def topology_yaml(design: Design) -> str:
    """Gives Slurm's topology.yaml, which newer releases read first."""
    words = {"nodes": "nodes", "switches": "children"}
    lines = ["---", "- topology: default", "  cluster_default: true", "  tree:", "    switches:"]
    for name, members, kind in branches(design):
        lines += [f"      - switch: {name}", f"        {words[kind]}: {fold_hosts(members)}"]
    return "\n".join(lines) + "\n"


def node_labels(design: Design) -> str:
    """Gives the labels of Kubernetes nodes, for `kubectl apply --server-side -f`."""
    places = design.floor.places
    documents = []
    for number, hosts in enumerate(_units(design, "kubernetes"), 1):
        for host in hosts:
            labels = {"pod": design.pod.name, "unit": unit_name(number), "rack": places[host].rack}
            told = "".join(f'    {LABEL}/{name}: "{value}"\n' for name, value in labels.items())
            documents.append(f"apiVersion: v1\nkind: Node\nmetadata:\n  name: {host}\n  labels:\n{told}")
    return "---\n".join(documents)


def _units(design: Design, kind: str) -> list[list[str]]:
    """Gives the units with the hosts that such a scheduler has; all hosts where the pod names none."""
    own = [host for one in design.pod.schedulers if one.kind == kind for host in design.pod.scheduler_hosts(one)]
    kept = set(own or design.asked.hosts)
    return [[host for host in hosts if host in kept] for hosts in design.units]


def _groups(design: Design, units: list[str]) -> Iterator[tuple[str, list[str]]]:
    size = design.compute
    width = size.plane_leaves if size is not None and size.groups > 1 and size.leaf != size.units else len(units)
    for number, first in enumerate(range(0, len(units), max(width, 1)), 1):
        yield f"group{number}", units[first : first + width]
