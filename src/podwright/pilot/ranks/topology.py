"""Which GPU, NUMA node, cores and network cards each rank of a node gets.

Facts have one shape wherever they come from, the machine itself or the hardware library's entry in the order:
`{"numa": [{"node": 3, "cores": "48-63,176-191"}], "gpus": [{"index": 0, "numa": 3}],
"nics": [{"name": "mlx5_0", "kind": "compute", "numa": 3, "gpus": [0, 1]}]}`.
"""

from __future__ import annotations

import itertools
import os
import re
import resource
from typing import Any, Dict, Iterable, NamedTuple, Optional, Sequence, Union

from ..sensors.proc import Scope, numa_node
from ..system.plain_files import names_in, read_text

Facts = Dict[str, Any]
GpuIndex = Union[int, str]

# In the order of their bits.
_CAPABILITIES = """
    chown dac_override dac_read_search fowner fsetid kill setgid setuid setpcap linux_immutable net_bind_service
    net_broadcast net_admin net_raw ipc_lock ipc_owner sys_module sys_rawio sys_chroot sys_ptrace sys_pacct sys_admin
    sys_boot sys_nice sys_resource sys_time sys_tty_config mknod lease audit_write audit_control setfcap mac_override
    mac_admin syslog wake_alarm block_suspend audit_read perfmon bpf checkpoint_restore
"""


class RankBinding(NamedTuple):
    """Where one rank runs; `cores` is empty where it is not bound, `fabric` is every card ranks may talk through."""

    local_rank: int
    gpu: Optional[GpuIndex]
    numa: Optional[int]
    cores: list[int]
    nics: list[str]
    fabric: list[str]


# -- pure: facts in, bindings out --------------------------------------------------------------------------------------


def binding(
    facts: Optional[Facts], gpus_visible: Sequence[GpuIndex], local_ranks: int, cpus_allowed: Iterable[int]
) -> list[RankBinding]:
    """Return where each local rank runs; nothing where there are more ranks than CPUs: binding would only hurt.

    A rank gets the cores of its GPU's NUMA node, shared fairly with the other ranks of that node. Ranks whose node is
    not known, or has no CPU that is allowed, share the CPUs that no other rank's node has.
    """
    facts, allowed = facts or {}, set(cpus_allowed)
    if not 1 <= local_ranks <= len(allowed):
        return []
    gpus: list[Optional[GpuIndex]] = [None] * local_ranks
    if gpus_visible:
        gpus = [gpus_visible[rank % len(gpus_visible)] for rank in range(local_ranks)]
    nodes = {row["node"]: allowed.intersection(cpu_list(row["cores"])) for row in facts.get("numa") or []}
    homes = [_home(facts, gpu, nodes) for gpu in gpus]
    # One rank with several GPUs may drive them all, so none of their nodes is its home.
    if local_ranks == 1 and len(gpus_visible) > 1:
        homes = [None]
    cores = _shares(homes, nodes, allowed, _siblings(facts))
    bindings, fabric = [], [row["name"] for row in _compute(facts)]
    for rank, gpu in enumerate(gpus):
        home = homes[rank]
        numa = _node_around(cores[rank], nodes) if home is None else home
        bindings.append(RankBinding(rank, gpu, numa, cores[rank], _nearest(facts, gpu, numa), fabric))
    return bindings


def merged(machine: Facts, hardware: Optional[Facts]) -> Facts:
    """Return what the machine says of itself, completed by the hardware library's entry where it is silent."""
    hardware = hardware or {}
    facts = dict(machine) if machine.get("numa") else dict(hardware)
    gpus = machine.get("gpus") or []
    if gpus:
        facts["gpus"] = _gpus_with_nodes(gpus, hardware.get("gpus") or [])
    named = {row["name"]: row for row in hardware.get("nics") or []}
    facts["nics"] = [{**named.get(row["name"], {}), **_without_none(row)} for row in facts.get("nics") or []]
    return facts


def _gpus_with_nodes(gpus: Sequence[Facts], of_hardware: Sequence[Facts]) -> list[Facts]:
    """Fill in the NUMA nodes that the machine does not name.

    GPUs are matched by number only where both count the same: a job that was given some of the GPUs numbers them again.
    """
    nodes = {row["index"]: row.get("numa") for row in of_hardware}
    if len(nodes) != len(gpus):
        return [dict(row) for row in gpus]
    filled = []
    for row in gpus:
        numa = nodes.get(row["index"]) if row["numa"] is None else row["numa"]
        filled.append({**row, "numa": numa})
    return filled


def _without_none(row: Facts) -> Facts:
    return {name: value for name, value in row.items() if value is not None}


def nic_env(binding: RankBinding, rdma: bool) -> dict[str, str]:
    """Return the variables that keep a rank's traffic on the right cards.

    NCCL picks the nearest card itself and wants to know all of them, so that it leaves those for storage alone; UCX
    takes what it is given. `=` makes NCCL compare whole names: `mlx5_1` is also the start of `mlx5_10`.
    """
    if not rdma or not binding.nics:
        return {}
    return {
        "NCCL_IB_HCA": "=" + ",".join(binding.fabric),
        "UCX_NET_DEVICES": ",".join(name + ":1" for name in binding.nics),
    }


def cpu_list(text: str) -> list[int]:
    """Return the numbers in `0-3,8`."""
    cpus: list[int] = []
    for span in text.strip().split(","):
        if span:
            first, _, last = span.partition("-")
            cpus += range(int(first), int(last or first) + 1)
    return cpus


def _shares(
    homes: Sequence[Optional[int]], nodes: dict[int, set[int]], allowed: set[int], siblings: dict[int, int]
) -> dict[int, list[int]]:
    """Return the CPUs of each rank."""
    ranks_of: dict[Optional[int], list[int]] = {}
    for rank, home in enumerate(homes):
        ranks_of.setdefault(home, []).append(rank)
    used: set[int] = set()
    node_of: dict[int, int] = {}
    for node, cpus in nodes.items():
        node_of.update(dict.fromkeys(cpus, node))
        if node in ranks_of:
            used |= cpus
    shares = {}
    for home, ranks in ranks_of.items():
        cpus = nodes[home] if home is not None else allowed - used or allowed
        for rank, share in zip(ranks, _split(cpus, len(ranks), siblings, node_of)):
            shares[rank] = share
    return shares


def _split(cpus: set[int], count: int, siblings: dict[int, int], node_of: dict[int, int]) -> list[list[int]]:
    """Share out whole cores; single CPUs where there are fewer cores than parts, all to each where fewer CPUs."""
    cores: dict[int, list[int]] = {}
    for cpu in sorted(cpus):
        cores.setdefault(siblings.get(cpu, cpu), []).append(cpu)
    # By node first, so that a share does not spread over two nodes where it need not.
    units = [cores[core] for core in sorted(cores, key=lambda core: (node_of.get(core, -1), core))]
    if len(units) < count:
        units = [[cpu] for cpu in itertools.chain(*units)]
    if len(units) < count:
        return [sorted(cpus)] * count
    bounds = [len(units) * share // count for share in range(count + 1)]
    return [sorted(itertools.chain(*units[bounds[share] : bounds[share + 1]])) for share in range(count)]


def _siblings(facts: Facts) -> dict[int, int]:
    """Return each CPU's core, named by its first CPU.

    The hardware library does not list siblings; there two ranges of one length are the two threads of the same cores.
    """
    groups = [cpu_list(text) for text in facts.get("siblings") or []]
    if not groups:
        for row in facts.get("numa") or []:
            ranges = [cpu_list(span) for span in row["cores"].split(",")]
            if len(ranges) == 2 and len(ranges[0]) == len(ranges[1]):
                groups += [list(pair) for pair in zip(*ranges)]
    cores: dict[int, int] = {}
    for group in groups:
        cores.update(dict.fromkeys(group, min(group)))
    return cores


def _home(facts: Facts, gpu: Optional[GpuIndex], nodes: dict[int, set[int]]) -> Optional[int]:
    """Return the node of a rank's GPU, where it is known and has a CPU that is allowed."""
    node = _node_of(facts, gpu)
    return None if node is None or not nodes.get(node) else node


def _node_of(facts: Facts, gpu: Optional[GpuIndex]) -> Optional[int]:
    for row in facts.get("gpus") or []:
        if row["index"] == gpu:
            node: Optional[int] = row.get("numa")
            return node
    return None


def _node_around(cores: list[int], nodes: dict[int, set[int]]) -> Optional[int]:
    return next((node for node, cpus in nodes.items() if cores and cpus.issuperset(cores)), None)


def _compute(facts: Facts) -> list[Facts]:
    return [row for row in facts.get("nics") or [] if row.get("kind", "compute") == "compute"]


def _nearest(facts: Facts, gpu: Optional[GpuIndex], numa: Optional[int]) -> list[str]:
    cards = _compute(facts)
    near = [row for row in cards if gpu is not None and gpu in (row.get("gpus") or [])]
    near = near or [row for row in cards if numa is not None and row.get("numa") == numa]
    return [row["name"] for row in near or cards]


# -- what the machine says -------------------------------------------------------------------------------------------


def discover(root: str = "/", gpus: Sequence[Facts] = ()) -> Facts:
    """Return the facts of this machine; `gpus` are those of the sampler's description, with their PCI addresses."""
    scope = Scope(root)
    nodes_in, cpu_folder = scope.path("/sys/devices/system/node"), scope.path("/sys/devices/system/cpu")
    nodes = sorted(int(name[4:]) for name in names_in(nodes_in) if re.match(r"node\d+$", name))
    threads = {
        read_text("%s/%s/topology/thread_siblings_list" % (cpu_folder, name)).strip() for name in names_in(cpu_folder)
    }
    devices, cards = scope.path("/sys/bus/pci/devices"), scope.path("/sys/class/infiniband")
    return {
        "numa": [{"node": node, "cores": read_text("%s/node%d/cpulist" % (nodes_in, node)).strip()} for node in nodes],
        "siblings": sorted(threads - {""}),
        "gpus": [{"index": gpu["index"], "numa": numa_node("%s/%s" % (devices, gpu["pci"]))} for gpu in gpus],
        "nics": [{"name": name, "numa": numa_node("%s/%s/device" % (cards, name))} for name in sorted(names_in(cards))],
    }


def bind_ranks(hardware: Optional[Facts], gpus: Sequence[Facts], local_ranks: int, rdma: bool) -> list[Facts]:
    """Return where this node's ranks run, each with the variables it adds to its rank's environment."""
    facts = merged(discover(gpus=gpus), hardware)
    rows = []
    for rank in binding(facts, [gpu["index"] for gpu in gpus], local_ranks, os.sched_getaffinity(0)):
        row = {"cores": rank.cores, "gpu": rank.gpu, "numa": rank.numa, "nics": rank.nics}
        rows.append({**row, "env": nic_env(rank, rdma)})
    return rows


def rdma_report(root: str = "/") -> dict[str, Any]:
    """Return what decides whether RDMA can pin memory here: the lock limit (-1: none) and the capabilities held."""
    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[0]
    match = re.search(r"^CapEff:\s*([0-9a-f]+)", read_text(Scope(root).path("/proc/self/status")), re.MULTILINE)
    bits = int(match.group(1), 16) if match else 0
    capabilities = ["CAP_" + name.upper() for bit, name in enumerate(_CAPABILITIES.split()) if bits >> bit & 1]
    return {"memlock_bytes": -1 if limit == resource.RLIM_INFINITY else limit, "capabilities": capabilities}
