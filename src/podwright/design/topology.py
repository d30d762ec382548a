"""Which nodes belong together: the one topology that Slurm, Kubernetes and placement are given.

A scalable unit is one leaf of the tree: its rails are many switches that all see the same nodes. Units that share
spines on every rail are a group. Hosts that are not on the compute fabric stand in a unit of their own: Slurm starts
no job of several nodes on a host that its tree does not have.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from podwright.design.domains import domain_name
from podwright.design.requirements import fabric_hosts, requirements_of
from podwright.design.sizing import ComputeParameters, size_compute, slot_of
from podwright.spec.hostlist import fold_hosts
from podwright.spec.problems import Refusal

if TYPE_CHECKING:
    from podwright.spec import Pod

DOMAIN = "podwright.dev"
UNIT_LABEL = f"{DOMAIN}/unit"
RACK_LABEL = "topology.kubernetes.io/rack"
# What Topograph writes and KAI, Kueue and others read, from the node upward.
DOMAIN_LABEL = f"{DOMAIN}/nvlink-domain"
ACCELERATOR_LABEL = "network.topology.nvidia.com/accelerator"
TIER_LABELS = tuple(f"network.topology.nvidia.com/{tier}" for tier in ("leaf", "spine", "core"))
OUTSIDE = "outside"


@dataclass(frozen=True, slots=True)
class ScalableUnit:
    """Hosts that are one hop apart; `group` counts from 1 and is None outside the fabric."""

    name: str
    hosts: tuple[str, ...]
    group: int | None


@dataclass(frozen=True, slots=True)
class Block:
    """Hosts whose GPUs NVLink joins to one machine."""

    name: str
    hosts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Topology:
    """The hosts of a pod or of a scheduler, each in one unit: those on the fabric in its order, then the others.

    `blocks` are the NVLink domains; none where each node is one by itself.
    """

    units: tuple[ScalableUnit, ...]
    blocks: tuple[Block, ...] = ()

    def part(self, hosts: Collection[str]) -> Topology:
        """Return what these hosts have of it; units and groups keep their names."""
        chosen = set(hosts)
        units = []
        for unit in self.units:
            present = tuple(host for host in unit.hosts if host in chosen)
            if present:
                units.append(replace(unit, hosts=present))
        return Topology(tuple(units), tuple(_parts(self.blocks, chosen)))

    @property
    def is_blocks(self) -> bool:
        """Return whether each host is in an NVLink domain."""
        hosts = sum(len(unit.hosts) for unit in self.units)
        return bool(self.blocks) and sum(len(block.hosts) for block in self.blocks) == hosts

    def unit_names(self) -> dict[str, str]:
        """Return the name of each host's unit."""
        names: dict[str, str] = {}
        for unit in self.units:
            names |= dict.fromkeys(unit.hosts, unit.name)
        return names


@dataclass(frozen=True, slots=True)
class TreeSwitch:
    """A switch of Slurm's tree, above hosts or above other switches."""

    name: str
    hosts: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()


def unit_size(pod: Pod) -> int | None:
    """Return the nodes of a scalable unit; None where the pod has no compute fabric that says so."""
    compute = _compute(pod)
    if compute is not None:
        return compute.unit
    fabric = pod.compute_fabric()
    return fabric.scalable_unit if fabric else None


def topology_of(pod: Pod) -> Topology:
    """Return the topology of all hosts of a pod, as its fabric is cabled."""
    hosts, fabric = fabric_hosts(pod), pod.compute_fabric()
    reserved = fabric.reserved_slots if fabric else 0
    size = unit_size(pod) or len(hosts) + reserved
    per_group = _units_per_group(pod)
    members: dict[int, list[str]] = {}
    for node, host in enumerate(hosts):
        members.setdefault(slot_of(node, size, reserved) // size, []).append(host)
    units = [ScalableUnit(f"su{i + 1}", tuple(part), i // per_group + 1) for i, part in members.items()]
    on_fabric = set(hosts)
    outside = tuple(host for host in pod.hosts() if host not in on_fabric)
    if outside:
        units.append(ScalableUnit(OUTSIDE, outside, None))
    return Topology(tuple(units), tuple(_blocks(pod, hosts, size)))


def _blocks(pod: Pod, hosts: Sequence[str], unit: int) -> Iterator[Block]:
    """Yield the NVLink domains of hosts in their order; a slot that is kept free keeps its place in one."""
    domain = pod.model_of(hosts[0]).nvlink_domain if hosts else None
    if domain is None:
        return
    fabric, members = pod.compute_fabric(), defaultdict(list)
    reserved = fabric.reserved_slots if fabric else 0
    for node, host in enumerate(hosts):
        members[slot_of(node, unit, reserved) // domain.nodes].append(host)
    for number, part in members.items():
        yield Block(domain_name(number), tuple(part))


def _parts(blocks: Iterable[Block], chosen: Collection[str]) -> Iterator[Block]:
    for block in blocks:
        present = tuple(host for host in block.hosts if host in chosen)
        if present:
            yield Block(block.name, present)


def tree_switches(topology: Topology) -> list[TreeSwitch]:
    """Return Slurm's switches, lowest first; the last one is above all hosts.

    Hosts outside the fabric hang on the topmost switch: a job may span them and hosts on the fabric.
    """
    leaves = [TreeSwitch(unit.name, hosts=unit.hosts) for unit in topology.units]
    groups: dict[str, list[str]] = {}
    for unit in topology.units:
        branch = unit.name if unit.group is None else f"group{unit.group}"
        groups.setdefault(branch, []).append(unit.name)
    branches = [TreeSwitch(name, switches=tuple(units)) for name, units in groups.items() if name != OUTSIDE]
    if len(branches) > 1:
        return [*leaves, *branches, TreeSwitch("core", switches=tuple(groups))]
    if len(leaves) > 1:
        return [*leaves, TreeSwitch("spine", switches=tuple(leaf.name for leaf in leaves))]
    return leaves


def topology_conf(topology: Topology) -> str:
    """Return Slurm's topology.conf."""
    lines = []
    for switch in tree_switches(topology):
        below = f"Nodes={fold_hosts(switch.hosts)}" if switch.hosts else f"Switches={fold_hosts(switch.switches)}"
        lines.append(f"SwitchName={switch.name} {below}\n")
    return "".join(lines)


def block_conf(topology: Topology) -> str:
    """Return Slurm's topology.conf for its plug-in `topology/block`: a job that fits an NVLink domain gets one."""
    lines = [f"BlockName={block.name} Nodes={fold_hosts(block.hosts)}\n" for block in topology.blocks]
    return "".join([*lines, f"BlockSizes={_block_size(topology)}\n"])


def block_yaml(topology: Topology) -> str:
    """Return the same as topology.yaml."""
    lines = ["---", "- topology: default", "  cluster_default: true", "  block:"]
    lines += ["    block_sizes:", f"      - {_block_size(topology)}", "    blocks:"]
    for block in topology.blocks:
        lines += [f"      - block: {block.name}", f"        nodes: {fold_hosts(block.hosts)}"]
    return "\n".join(lines) + "\n"


def _block_size(topology: Topology) -> int:
    """Return the base size: Slurm takes none that a block has fewer nodes than."""
    return min(len(block.hosts) for block in topology.blocks)


def topology_yaml(topology: Topology) -> str:
    """Return Slurm's topology.yaml, which newer releases read first."""
    lines = ["---", "- topology: default", "  cluster_default: true", "  tree:", "    switches:"]
    for switch in tree_switches(topology):
        below = f"nodes: {fold_hosts(switch.hosts)}" if switch.hosts else f"children: {fold_hosts(switch.switches)}"
        lines += [f"      - switch: {switch.name}", f"        {below}"]
    return "\n".join(lines) + "\n"


def node_labels(topology: Topology, pod: str, racks: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the labels of Kubernetes nodes by host: ours, and those that schedulers of others read.

    A cluster may span pods, so that what others compare carries the name of the pod.
    """
    domains: dict[str, str] = {}
    for block in topology.blocks:
        domains |= dict.fromkeys(block.hosts, block.name)
    labels: dict[str, dict[str, str]] = {}
    for host, switches in _switches_above(topology).items():
        labels[host] = {
            f"{DOMAIN}/pod": pod,
            UNIT_LABEL: switches[0],
            f"{DOMAIN}/rack": racks[host],
            RACK_LABEL: f"{pod}-{racks[host]}",
            **{label: f"{pod}-{switch}" for label, switch in zip(TIER_LABELS, switches, strict=False)},
        }
        if host in domains:
            labels[host] |= {DOMAIN_LABEL: domains[host], ACCELERATOR_LABEL: f"{pod}-{domains[host]}"}
    return labels


def _switches_above(topology: Topology) -> dict[str, list[str]]:
    """Return for each host the switches of Slurm's tree above it, lowest first."""
    tree = tree_switches(topology)
    above: dict[str, str] = {}
    for switch in tree:
        above |= dict.fromkeys(switch.switches, switch.name)
    chains: dict[str, list[str]] = {}
    for switch in tree:
        chain = [switch.name]
        while chain[-1] in above:
            chain.append(above[chain[-1]])
        chains |= dict.fromkeys(switch.hosts, chain)
    return chains


def _compute(pod: Pod) -> ComputeParameters | None:
    """Return what the compute fabric is sized from; None where the pod has no such fabric, or its design is refused.

    A pod that cannot be designed still has nodes that jobs are placed on: the unit that its file names holds for them.
    """
    try:
        return requirements_of(pod).compute
    except Refusal:
        return None


def _units_per_group(pod: Pod) -> int:
    """Return how many units share spines on every rail; all of them where the rails are not split into groups."""
    everything = max(len(pod.hosts()), 1)
    compute = _compute(pod)
    if compute is None:
        return everything
    try:
        size = size_compute(compute)
    except Refusal:
        return everything
    # In a classic layout a unit's ports may lie on leaves of two groups, so that no group holds whole units.
    if size.groups < 1 or compute.layout == "classic":
        return everything
    return size.plane_leaves
