"""How long an all-reduce takes on some nodes: ring, tree, SHARP and NVLS by message size.

Every algorithm is `latency + bytes / bandwidth` with the constants that NCCL itself chooses by. NCCL needs only the
order of its choices to be right; three constants are calibrated here so that the times are right as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from math import log2
from operator import attrgetter
from typing import TYPE_CHECKING

from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.spec import NodeModel, SwitchModel

PROTOCOLS = ("LL", "LL128", "Simple")

# NCCL 2.30.7, src/graph/tuning.cc: microseconds by protocol, in the order of PROTOCOLS.
RING_BASE_US = (6.6, 14.0, 8.4)
RING_NVLINK_US = (0.6, 1.9, 3.4)
RING_NETWORK_US = (2.7, 4.0, 14.0)
TREE_BASE_US = (6.8, 14.0, 8.4)
TREE_NVLINK_US = (0.6, 1.25, 4.0)
TREE_NETWORK_US = (5.0, 8.5, 14.0)
SHARP_NVLINK_US, SHARP_NETWORK_US = 2.8, 30.0
NVLS_NVLINK_US, NVLS_NETWORK_US, NVLS_TREE_US = 25.0, 18.0, 20.9
# The same file: a step through the host's memory by its maker, three times that with Simple; a large Simple ring is
# slower than its steps ("plateau"); half of LL's bytes are flags; a tree reaches so much of a ring's wires.
INTEL_STEP_US, AMD_STEP_US, SIMPLE_STEPS = 1.0, 2.0, 3.0
SIMPLE_PLATEAU, SIMPLE_PLATEAU_VOLTA = 1.4, 1.9
LL_SHARE, TREE_SHARE = 0.5, 0.92
# The same file: how far trees fall short at medium sizes, by powers of two from 64 bytes, in the order of PROTOCOLS.
TREE_SHORTFALL = (
    (1, 1, 1, 1, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1, 1, 1, 1),
    (1, 1, 1, 1, 1, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1, 1, 1),
    (*[0.9] * 7, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9, 0.9),
)
# The same file: 24 GB/s of a 200 Gb/s port and 48 of a 400 Gb/s one.
NIC_SHARE = 0.96
# A maintainer of NCCL on SHARP: 20 GB/s of a 200 Gb/s port, and what NVLink lets through of a tree.
SHARP_NIC_SHARE = 0.8

# Calibrated on the published curve of two DGX A100 (1 MiB to 4 GiB), where NCCL's own are up to 44 % too fast.
CALIBRATED_LATENCY = 1.45
CALIBRATED_LL128_SHARE = 0.85
# Calibrated on a published curve of four nodes with eight H100 each: all steps of trees, NVLink's included.
CALIBRATED_TREE_LATENCY = 2.0
# Of two nodes a tree is another thing: it sends half of what a ring does.
FEWEST_TREE_NODES = 3

# What the model is off by at most where its constants come from (in sample), and on published curves of 2, 4 and 8
# nodes with H100 that nothing was fitted on, from these sizes on. A test computes all of them again.
RING_IN_SAMPLE_ERROR = 0.04
TREE_IN_SAMPLE_ERROR = 0.14
HELD_OUT_ERRORS = {64 << 20: 0.32, 1 << 30: 0.16}
# The most nodes of those curves: above them nothing has checked the model.
CHECKED_NODES = 8
VALIDATED = (
    "modelled; fitted on two DGX A100 (ring, 4 % off in sample) and on",
    "four H100 nodes (trees, 14 % in sample); on 2 to 8 H100 nodes that it",
    "was not fitted on 32 % off from 64 MiB, 16 % off from 1 GiB",
)

ALGORITHMS = ("ring", "tree", "sharp", "nvls")


@dataclass(frozen=True, slots=True)
class GpuFamily:
    """What NCCL computes with for a generation of GPUs: NVLink's GB/s, and the share that NVLS reaches where it is."""

    name: str
    nvlink_gb_s: float
    nvls_share: float | None = None
    before_ampere: bool = False


# Links of one GPU times GB/s of a link, as NCCL computes (tuning.cc, topo.h); NVLS efficiency from the same place.
FAMILIES = (
    GpuFamily("V100", 6 * 20.0, before_ampere=True),
    GpuFamily("A100", 12 * 20.0),
    GpuFamily("H100", 18 * 20.6, nvls_share=0.85),
    GpuFamily("H200", 18 * 20.6, nvls_share=0.85),
    GpuFamily("B200", 18 * 40.1, nvls_share=0.74),
    # NCCL knows these as B200: its constants go by the generation.
    GpuFamily("B300", 18 * 40.1, nvls_share=0.74),
    GpuFamily("GB200", 18 * 40.1, nvls_share=0.74),
    GpuFamily("GB300", 18 * 40.1, nvls_share=0.74),
)


@dataclass(frozen=True, slots=True)
class Wires:
    """What a node offers to a collective: its GPUs, its ports to the compute fabric, its step through the host."""

    family: GpuFamily
    gpus: int
    nics: int
    nic_gb_s: float
    step_us: float = INTEL_STEP_US

    @property
    def network_gb_s(self) -> float:
        """Return the bandwidth of all compute ports together."""
        return self.nics * self.nic_gb_s


@dataclass(frozen=True, slots=True)
class CollectiveJob:
    """Whole nodes that reduce together; `share` is the part of the ports' bandwidth that the fabric lets through."""

    nodes: int
    wires: Wires
    share: float = 1.0
    in_network: bool = False

    @property
    def ranks(self) -> int:
        """Return the number of ranks, one for each GPU."""
        return self.nodes * self.wires.gpus

    @property
    def network_gb_s(self) -> float:
        """Return what a node's ports give to this job."""
        return self.wires.network_gb_s * self.share

    @property
    def ring_gb_s(self) -> float:
        """Return the narrowest place of a ring: NVLink inside one node, else the smaller of NVLink and network."""
        nvlink = self.wires.family.nvlink_gb_s
        if self.nodes == 1:
            return nvlink
        return min(nvlink, self.network_gb_s)

    @property
    def bus_factor(self) -> float:
        """Return the ratio of bus bandwidth to algorithm bandwidth, as NCCL tests print both."""
        return 2 * (self.ranks - 1) / self.ranks


@dataclass(frozen=True, slots=True)
class Estimate:
    """The time of one all-reduce."""

    algorithm: str
    protocol: str
    size_bytes: int
    time_s: float
    bus_gb_s: float


def wires_of(model: NodeModel, switch: SwitchModel | None = None) -> Wires:
    """Return what a node model offers on such a switch, or refuse one whose GPUs or ports we have no constants for."""
    gpus = model.gpus
    name = model.title or model.name or "this node model"
    if gpus is None:
        raise refuse(f"{name} has no GPUs", hint="predict needs nodes with GPUs")
    families = [family for family in FAMILIES if gpus.model.upper().startswith(family.name)]
    if not families:
        known = ", ".join(family.name for family in FAMILIES)
        raise refuse(f"there are no constants for the GPU {gpus.model}", hint=f"known are {known}")
    ports = [nic.speed_gbps for nic in model.nics if nic.kind == "compute"]
    slowest_gbps = min(ports, default=0.0)
    if switch is not None and switch.speed_gbps is not None:
        slowest_gbps = min(slowest_gbps, switch.speed_gbps)
    slowest_gb_s = slowest_gbps / 8 * NIC_SHARE
    step_us = INTEL_STEP_US
    if model.cpu and "amd" in model.cpu.lower():
        step_us = AMD_STEP_US
    return Wires(families[0], gpus.count, len(ports), slowest_gb_s, step_us)


def available(job: CollectiveJob) -> list[str]:
    """Return the algorithms that this job can use: SHARP needs switches that reduce, NVLS needs GPUs that multicast."""
    can = {
        "ring": job.ranks > 1,
        "tree": job.nodes > 1,
        "sharp": job.nodes > 1 and job.in_network,
        "nvls": job.wires.family.nvls_share is not None and job.wires.gpus > 1,
    }
    return [name for name in ALGORITHMS if can[name]]


def estimate(job: CollectiveJob, algorithm: str, size_bytes: int) -> Estimate:
    """Return the time of an all-reduce of this size, with the protocol that is fastest."""
    return min(_ESTIMATES[algorithm](job, size_bytes), key=attrgetter("time_s"))


def chosen(job: CollectiveJob, size_bytes: int) -> Estimate:
    """Return what NCCL chooses by itself: the fastest; SHARP needs a plugin and is left out.

    Of two nodes a tree sends half of what a ring does and reads above wire speed, which proves nothing about the wires:
    there the ring is taken, as a test should with `NCCL_ALGO=Ring`. Three nodes are never faster than these two: the
    constants of trees come from four.
    """
    names = [name for name in available(job) if name != "sharp" and not (name == "tree" and job.nodes == 2)]
    fastest = min((estimate(job, name, size_bytes) for name in names), key=attrgetter("time_s"))
    if job.nodes != FEWEST_TREE_NODES:
        return fastest
    least_s = chosen(replace(job, nodes=2), size_bytes).time_s
    if fastest.time_s >= least_s:
        return fastest
    bus_gb_s = size_bytes / least_s / 1e9 * job.bus_factor
    return replace(fastest, time_s=least_s, bus_gb_s=bus_gb_s)


def needs_network(job: CollectiveJob) -> None:
    """Refuse several nodes without ports between them."""
    if job.nodes > 1 and not job.network_gb_s:
        raise refuse("the node model has no compute ports", hint="give it `nics:` of kind compute")


def _estimate(
    job: CollectiveJob, algorithm: str, protocol: str, size_bytes: int, cost: tuple[float, float]
) -> Estimate:
    """Put latency (microseconds) and algorithm bandwidth (GB/s) together."""
    latency_us, gb_s = cost
    time_s = latency_us * 1e-6 + size_bytes / (gb_s * 1e9)
    return Estimate(algorithm, protocol, size_bytes, time_s, size_bytes / time_s / 1e9 * job.bus_factor)


def _ring(job: CollectiveJob, size_bytes: int) -> Iterable[Estimate]:
    """Estimate a ring: every rank passes every part on twice; the steps between nodes cost the network's latency."""
    between = 2 * (job.nodes - 1)
    inside = 2 * (job.ranks - 1) - between
    for number, protocol in enumerate(PROTOCOLS):
        step_us = RING_NVLINK_US[number]
        if job.nodes > 1:
            step_us = max(step_us, _step_us(job, protocol))
        latency_us = RING_BASE_US[number] + inside * step_us + between * RING_NETWORK_US[number]
        gb_s = job.ring_gb_s / job.bus_factor * _share(protocol)
        yield _estimate(job, "ring", protocol, size_bytes, (latency_us * _slower(job, protocol), gb_s))


def _tree(job: CollectiveJob, size_bytes: int) -> Iterable[Estimate]:
    """Estimate a tree, up and down again: a chain inside a node, between nodes as many steps as the tree is high."""
    inside, between = job.wires.gpus - 1, log2(job.nodes)
    for number, protocol in enumerate(PROTOCOLS):
        steps_us = inside * TREE_NVLINK_US[number] + between * TREE_NETWORK_US[number]
        latency_us = (TREE_BASE_US[number] + 2 * steps_us) * _slower_tree(job, protocol)
        gb_s = TREE_SHARE * job.ring_gb_s / 2 * _share(protocol) * _shortfall(number, size_bytes)
        yield _estimate(job, "tree", protocol, size_bytes, (latency_us, gb_s))


def _sharp(job: CollectiveJob, size_bytes: int) -> Iterable[Estimate]:
    """Estimate SHARP: the switches add up in the same steps for any number of nodes; inside a node a chain, or NVLS."""
    network = job.network_gb_s / NIC_SHARE * SHARP_NIC_SHARE
    if job.wires.family.nvls_share is not None:
        cost = NVLS_NVLINK_US + NVLS_NETWORK_US, min(network, _nvls_gb_s(job))
    else:
        latency_us = 2 * (job.wires.gpus - 1) * SHARP_NVLINK_US + SHARP_NETWORK_US
        cost = latency_us, min(network, TREE_SHARE * job.wires.family.nvlink_gb_s / 2)
    yield _estimate(job, "sharp", "Simple", size_bytes, cost)


def _nvls(job: CollectiveJob, size_bytes: int) -> Iterable[Estimate]:
    """Estimate NVLS: NVLink's switches add up inside a node; between nodes there is a tree."""
    latency_us, gb_s = NVLS_NVLINK_US, _nvls_gb_s(job)
    if job.nodes > 1:
        latency_us += 2 * log2(job.nodes) * NVLS_TREE_US
        if job.nodes >= FEWEST_TREE_NODES:
            latency_us *= CALIBRATED_TREE_LATENCY
        gb_s = min(gb_s, TREE_SHARE * job.network_gb_s / 2)
    yield _estimate(job, "nvls", "Simple", size_bytes, (latency_us, gb_s))


def _nvls_gb_s(job: CollectiveJob) -> float:
    wires = job.wires
    return wires.family.nvlink_gb_s * (wires.family.nvls_share or 0.0) * (wires.gpus - 1) / wires.gpus


def _step_us(job: CollectiveJob, protocol: str) -> float:
    if protocol == "Simple":
        return job.wires.step_us * SIMPLE_STEPS
    return job.wires.step_us


def _share(protocol: str) -> float:
    """Return the part of the wires that carries data and not flags."""
    return {"LL": LL_SHARE, "LL128": CALIBRATED_LL128_SHARE}.get(protocol, 1.0)


def _slower(job: CollectiveJob, protocol: str) -> float:
    """Return how much slower steps between nodes are than NCCL's table; for Simple NCCL says so itself."""
    if job.nodes == 1:
        return 1.0
    if protocol != "Simple":
        return CALIBRATED_LATENCY
    return SIMPLE_PLATEAU_VOLTA if job.wires.family.before_ampere else SIMPLE_PLATEAU


def _slower_tree(job: CollectiveJob, protocol: str) -> float:
    """Return the same for the steps of a tree."""
    if job.nodes >= FEWEST_TREE_NODES:
        return CALIBRATED_TREE_LATENCY
    return _slower(job, protocol)


def _shortfall(number: int, size_bytes: int) -> float:
    table = TREE_SHORTFALL[number]
    place = int(log2(max(size_bytes, 64) / 64))
    if place >= len(table):
        return 1.0
    return table[place]


_ESTIMATES: dict[str, Callable[[CollectiveJob, int], Iterable[Estimate]]] = {
    "ring": _ring,
    "tree": _tree,
    "sharp": _sharp,
    "nvls": _nvls,
}
