"""The hardware that a pod is made of: nodes, switches, storage systems, and the fabrics that join them.

A fact that nobody has published, or that we have not found, is left out: design and binding say so instead of guessing.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from podwright.spec.hardware_library import HardwareKind
from podwright.spec.nearest import one_of
from podwright.spec.problems import refuse, short
from podwright.spec.types import (
    Bandwidth,
    Count,
    Flag,
    Line,
    Number,
    Power,
    RangedPrice,
    Ratio,
    Size,
    Speed,
    Strict,
    Text,
    Whole,
)

Connector = Literal["rj45", "sfp28", "qsfp28", "qsfp56", "qsfp112", "qsfp-dd", "osfp", "mpo"]
Positive = Annotated[Number, Field(gt=0)]
StorageKind = Literal[
    "nfs", "spectrum-scale", "lustre", "netapp", "flashblade", "powerscale", "weka", "vast", "beegfs", "ceph", "bind"
]


class PortMode(Strict):
    """Another way to use the cages of a switch: more ports, each slower."""

    ports: Count = Field(description="ports of all cages")
    speed_gbps: Speed = Field(alias="speed", description="speed of each")


class SwitchModel(Strict):
    """A switch."""

    name: Line | None = Field(default=None, description="its name in the hardware library")
    title: Text | None = Field(default=None, description="what people call it")
    kind: Literal["infiniband", "ethernet"] | None = Field(default=None, description="infiniband or ethernet")
    ports: Count = Field(description="ports for nodes and other switches")
    speed_gbps: Speed | None = Field(default=None, alias="speed", description="speed of a port")
    connector: Connector | None = Field(default=None, description="what plugs into a cage of its ports")
    cage_ports: Count = Field(default=1, description="ports of one cage; 2: the panel counts them 1/1, 1/2, 2/1, ...")
    modes: tuple[PortMode, ...] = Field(default=(), description="slower ports that its cages split into, by speed")
    uplink_ports: Whole = Field(default=0, description="further ports, for other switches only")
    uplink_speed_gbps: Speed | None = Field(default=None, alias="uplink_speed", description="speed of an uplink port")
    management_port: Flag = Field(
        default=True, description="has a port for management and can run a subnet manager; false: managed from outside"
    )
    rack_units: Count | None = Field(default=None, description="height")
    power_w: Power | None = Field(default=None, alias="power", description="most it draws")
    weight_kg: Positive | None = Field(default=None, description="weight, in kilograms")
    copper_m: Number | None = Field(default=None, description="longest copper cable of its ports, in metres")
    active_m: Number | None = Field(default=None, description="longest active optical cable of its ports, in metres")
    price: RangedPrice | None = Field(default=None, description="of one, in the pod's currency")
    source: Text | None = Field(default=None, description="where these facts come from")


SWITCHES = HardwareKind("switches", "switch", SwitchModel)


class StorageModel(Strict):
    """A storage system as its maker sells it: one building block."""

    name: Line | None = Field(default=None, description="its name in the hardware library")
    title: Text | None = Field(default=None, description="what people call it")
    kind: StorageKind = Field(description="the file system it serves")
    capacity_bytes: Size | None = Field(default=None, alias="capacity", description="usable space of one block")
    read_bytes_s: Bandwidth | None = Field(default=None, alias="read", description="read bandwidth of one block")
    write_bytes_s: Bandwidth | None = Field(default=None, alias="write", description="write bandwidth of one block")
    rack_units: Count | None = Field(default=None, description="height of one block")
    power_w: Power | None = Field(default=None, alias="power", description="most one block draws")
    weight_kg: Positive | None = Field(default=None, description="weight of one block, in kilograms")
    controllers: Count = Field(default=1, description="controllers of one block, each with a port for management")
    price: RangedPrice | None = Field(default=None, description="of one block, in the pod's currency")
    blocks_per_nodes: tuple[Count, Count] | None = Field(
        default=None, description="a published pairing: so many blocks for so many nodes"
    )
    source: Text | None = Field(default=None, description="where these facts come from")


STORAGE = HardwareKind("storage", "storage model", StorageModel)


class ComputeFabric(Strict):
    """The network between GPUs."""

    kind: Literal["infiniband", "ethernet"] = Field("infiniband", description="infiniband, or ethernet with RoCE")
    switch: Annotated[SwitchModel, SWITCHES, BeforeValidator(SWITCHES.resolve)] | None = Field(
        default=None, description="a library name, or {ports: 64}"
    )
    layout: Literal["rail", "classic", "single"] = Field(
        "rail", description="rail: one leaf per NIC and unit; classic: leaves filled in order; single: one switch"
    )
    rails: Count | None = Field(default=None, description="planes of the fabric; divides the compute ports of a node")
    scalable_unit: Count | None = Field(default=None, description="nodes that are added at once")
    oversubscription: Ratio = Field(default=1, description="down-links to up-links of a leaf")
    taper: Ratio = Field(default=1, description="down-links to up-links of a spine")
    pods_planned: Count = Field(default=1, description="pods that will share the core switches")
    nodes_planned: Count | None = Field(default=None, description="size spines and cores for so many nodes")
    reserved_slots: Whole = Field(default=0, description="node slots kept free for the fabric manager")
    sharp: Flag = Field(default=False, description="switches add up all-reduces themselves (SHARP)")
    manager_cables: Whole = Field(default=4, description="cables of the fabric managers, in the reserved slots")
    planes: Count = Field(default=1, description="Ethernet: fabrics side by side that every port is split over")
    network: Line = Field(default="172.16.0.0/12", description="Ethernet: IPv4 network of its addresses")
    first_asn: Count = Field(default=4200000000, description="Ethernet: first autonomous system number of its switches")


class StorageFabric(Strict):
    """The network between nodes and storage."""

    switch: Annotated[SwitchModel, SWITCHES, BeforeValidator(SWITCHES.resolve)] | None = Field(
        default=None, description="a library name, or {ports: 64}"
    )
    layout: Literal["tree", "single"] = Field("tree", description="tree: leaves and spines; single: one switch")
    scalable_unit: Count | None = Field(default=None, description="nodes that are added at once")
    node_ports: Count | None = Field(default=None, description="storage ports of a node")
    ports_per_unit: Count | None = Field(default=None, description="ports of the storage system for each unit")


class ManagementFabric(Strict):
    """The network for set-up, logins and baseboard controllers."""

    switch: Annotated[SwitchModel, SWITCHES, BeforeValidator(SWITCHES.resolve)] | None = Field(
        default=None, description="a library name, or {ports: 48}"
    )
    aggregation: Annotated[SwitchModel, SWITCHES, BeforeValidator(SWITCHES.resolve)] | None = Field(
        default=None, description="the switch above: joins the others, and takes node ports faster than 10 Gb/s"
    )
    network: Line = Field(default="10.0.0.0/8", description="private IPv4 network that all addresses come from")
    first_vlan: Count = Field(default=101, description="number of the first VLAN")


class Fabrics(Strict):
    """The networks of a pod; what is left out comes from the node model's library entry."""

    compute: ComputeFabric | None = Field(default=None, description="between GPUs")
    storage: StorageFabric | None = Field(default=None, description="between nodes and storage")
    management: ManagementFabric | None = Field(
        default=None, description="for set-up, logins and baseboard controllers"
    )


class Gpus(Strict):
    """The GPUs of a node, which are all alike."""

    model: Line = Field(description="such as A100-SXM4-40GB")
    count: Count = Field(description="how many")
    memory_bytes: Size | None = Field(default=None, alias="memory", description="memory of one")
    numa: tuple[Whole, ...] = Field(default=(), description="the NUMA node of each, in the order of their numbers")


class Nic(Strict):
    """A port to a network."""

    name: Line | None = Field(default=None, description="the device as the system names it, such as mlx5_0")
    kind: Literal["compute", "storage", "management"] = Field(description="the fabric it belongs to")
    speed_gbps: Speed = Field(alias="speed", description="such as 200Gb/s")
    numa: Whole | None = Field(default=None, description="the NUMA node it belongs to")
    gpus: tuple[Whole, ...] = Field(default=(), description="the GPUs that are nearest to it")
    panel: Line | None = Field(default=None, description="what the panel calls the port, such as OSFP4P2")
    cage: Line | None = Field(default=None, description="the cage that it shares with another port, such as OSFP4")
    connector: Connector | None = Field(default=None, description="what plugs into it")


class NumaNode(Strict):
    """Cores and memory that are near each other."""

    node: Whole = Field(description="its number")
    cores: Line = Field(description="its logical CPUs, such as 48-63,176-191")


class NvlinkDomain(Strict):
    """A rack that is one machine for its GPUs: NVLink joins those of all its nodes, and it is bought whole."""

    nodes: Count = Field(description="nodes of a rack")
    switches: Count = Field(description="trays with NVLink switches in a rack, one unit each")
    power_shelves: Count = Field(description="power shelves of a rack, one unit each, which feed all that is in it")
    shelf_power_w: Power | None = Field(default=None, alias="shelf_power", description="most that one shelf gives")
    cooling: Literal["air", "liquid"] = Field(default="air", description="what takes the heat of its GPUs away")


class NodeModel(Strict):
    """A server."""

    name: Line | None = Field(default=None, description="its name in the hardware library")
    title: Text | None = Field(default=None, description="what people call it")
    gpus: Gpus | None = Field(default=None, description="its GPUs")
    nics: tuple[Nic, ...] = Field(default=(), description="its ports")
    cpu: Line | None = Field(default=None, description="its processor")
    sockets: Count | None = Field(default=None, description="processors")
    cores: Count | None = Field(default=None, description="cores of all processors")
    threads: Count | None = Field(default=None, description="logical CPUs of all processors")
    numa: tuple[NumaNode, ...] = Field(default=(), description="its NUMA nodes")
    memory_bytes: Size | None = Field(default=None, alias="memory", description="main memory")
    power_w: Power | None = Field(default=None, alias="power", description="most it draws")
    heat_btu_h: Positive | None = Field(
        default=None, description="heat it gives off, in BTU/h; left out: that of its power"
    )
    rack_units: Count | None = Field(default=None, description="height")
    weight_kg: Positive | None = Field(default=None, description="weight, in kilograms")
    nvlink_domain: NvlinkDomain | None = Field(
        default=None,
        description="the rack that it is a tray of; its power and weight are then its share of the whole rack's",
    )
    price: RangedPrice | None = Field(default=None, description="of one, in the pod's currency")
    fabrics: Fabrics = Field(default=Fabrics(), description="what its maker's reference design uses")
    source: Text | None = Field(default=None, description="where these facts come from")

    def hardware(self) -> dict[str, Any]:
        """Return what binding needs, as JSON values: NUMA nodes, and where GPUs and NICs belong."""
        gpus: list[dict[str, int]] = []
        if self.gpus:
            gpus = [{"index": index, "numa": numa} for index, numa in enumerate(self.gpus.numa)]
        return {
            "numa": [{"node": node.node, "cores": node.cores} for node in self.numa],
            "gpus": gpus,
            "nics": [
                {"name": nic.name, "kind": nic.kind, "numa": nic.numa, "gpus": list(nic.gpus)}
                for nic in self.nics
                if nic.name is not None
            ],
        }


NODES = HardwareKind("nodes", "node model", NodeModel)
_KINDS = {kind.folder: kind for kind in (NODES, SWITCHES, STORAGE)}


def library(kind: str) -> dict[str, Any]:
    """Return all entries of a kind (`nodes`, `switches`, `storage`) by name."""
    if kind not in _KINDS:
        raise refuse(f'"{short(kind)}" is not a kind of hardware', hint=one_of(kind, "kind", _KINDS))
    return _KINDS[kind].entries()


def node_model(name: str) -> NodeModel:
    """Return the node model of this name."""
    model: NodeModel = NODES.find(name)
    return model
