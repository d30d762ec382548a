"""The pod: one cluster, its nodes, fabrics, storage, schedulers, services and costs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, Field, GetJsonSchemaHandler, PrivateAttr
from pydantic_core import CoreSchema

from podwright.spec.alerts import Alerts
from podwright.spec.bringup import Bringup
from podwright.spec.findings import Finding, problems
from podwright.spec.hardware import (
    NODES,
    STORAGE,
    ComputeFabric,
    Fabrics,
    ManagementFabric,
    NodeModel,
    StorageFabric,
    StorageKind,
    StorageModel,
)
from podwright.spec.nearest import one_of
from podwright.spec.problems import Refusal, refuse, short
from podwright.spec.provisioning import Address, Bmc, Mac
from podwright.spec.remediation import Remediation
from podwright.spec.source import decode
from podwright.spec.teams import SharedPath, Team
from podwright.spec.types import (
    Bandwidth,
    CatalogUrl,
    Count,
    Hosts,
    Image,
    Line,
    Login,
    Name,
    Number,
    Power,
    RangedPrice,
    Ratio,
    ShareUsed,
    Size,
    Strict,
    Text,
    Whole,
)
from podwright.spec.yaml_document import Document, parse

Role = Literal["compute", "management", "login", "storage"]
Service = Literal["registry", "mirror", "netboot", "monitoring", "logging", "firmware"]
# A rack as the DGX POD reference architecture has it.
RACK_POWER_W = 35_000.0

Given = TypeVar("Given", ComputeFabric, StorageFabric, ManagementFabric)


class NodeGroup(Strict):
    """Hosts that are alike."""

    hosts: Hosts = Field(description="such as dgx[001-140]")
    model: Annotated[NodeModel, NODES, BeforeValidator(NODES.resolve)] = Field(
        description="a name from the hardware library, or written out"
    )
    roles: tuple[Role, ...] = Field(default=("compute",), description="compute, management, login, storage")
    addresses: tuple[Address, ...] = Field(default=(), description="one for each host, in the order of hosts")
    macs: tuple[Mac, ...] = Field(default=(), description="hardware addresses that hosts boot from, in their order")
    bmc: Bmc | None = Field(default=None, description="the controllers that switch them on and off")


class Storage(Strict):
    """A storage system of the pod."""

    name: Name = Field(description="its name in this pod")
    kind: StorageKind = Field(description="the file system it serves")
    model: Annotated[StorageModel, STORAGE, BeforeValidator(STORAGE.resolve)] | None = Field(
        default=None, description="a name from the hardware library"
    )
    capacity_bytes: Size | None = Field(default=None, alias="capacity", description="usable space")
    bandwidth_bytes_s: Bandwidth | None = Field(
        default=None, alias="bandwidth", description="read bandwidth of the whole system"
    )
    mount: Line | None = Field(default=None, description="where nodes see it")
    server: Line | None = Field(default=None, description="the server or cluster to mount from")
    csi: Line | None = Field(default=None, description="the CSI driver that serves it to Kubernetes")
    storage_class: Line | None = Field(default=None, description="the Kubernetes storage class")


class CacheSpace(Strict):
    """Where nodes keep data that is staged for runs."""

    path: Line | None = Field(
        default=None, description="a folder on each node's disk, or on shared storage; left out: its temporary one"
    )
    size_bytes: Size | None = Field(
        default=None, alias="size", description="the most that one user's data takes there; left out: what the disk has"
    )
    claim: Line | None = Field(default=None, description="on Kubernetes: the volume claim that keeps it between runs")


class SlurmScheduler(Strict):
    """Slurm on some hosts of the pod."""

    kind: Literal["slurm"]
    name: Name = Field(default="slurm", description="its name in targets")
    hosts: Hosts | None = Field(default=None, description="the hosts it has; left out: all compute hosts")
    login: Login | None = Field(default=None, description="the host to reach it through; left out: this machine")
    ssh_config: Line | None = Field(default=None, description="an ssh configuration to use instead of the user's own")
    folder: Line | None = Field(
        default=None, description="where runs live, on a file system that login and compute hosts share"
    )
    python: Line | None = Field(default=None, description="the Python for the pilot")
    container: Literal["pyxis", "apptainer", "podman", "charliecloud", "oci"] | None = Field(
        default=None, description="how containers are started; left out: by what the cluster has"
    )


class KubernetesScheduler(Strict):
    """Kubernetes on some hosts of the pod."""

    kind: Literal["kubernetes"]
    name: Name = Field(default="kubernetes", description="its name in targets")
    hosts: Hosts | None = Field(default=None, description="the hosts it has; left out: all compute hosts")
    dialect: Literal["kubernetes", "openshift"] = Field(default="kubernetes", description="kubernetes or openshift")
    context: Line | None = Field(default=None, description="the kubeconfig context; left out: the current one")
    kubeconfig: Line | None = Field(
        default=None, description="the file that holds the context; left out: the user's own"
    )
    namespace: Line | None = Field(default=None, description="where runs go unless the workload says otherwise")
    image: Image | None = Field(default=None, description="the image of workloads that name none")
    claim: Line | None = Field(default=None, description="the volume claim that holds records and checkpoints")

    def nothing_kept(self) -> str:
        """Return that files of runs have no place to stay, in words; nothing where they have one."""
        if self.claim:
            return ""
        return (
            f"{self.name} has no claim: of the files that ranks write, results and checkpoints too, nothing is kept;"
            " `claim:` of the scheduler in the pod file names one"
        )


class _OrCount:
    """Lets a number of racks stand for racks of which nothing else is said."""

    @staticmethod
    def wrap(value: Any) -> Any:
        """Return the fields that a bare number means."""
        if isinstance(value, (dict, Racks)):
            return value
        return {"count": value}

    def __get_pydantic_json_schema__(self, core: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        return {"anyOf": [handler(core), {"type": "integer", "description": "racks there are"}]}


class Racks(Strict):
    """The racks there are, what each can take, and how they stand."""

    count: Count | None = Field(default=None, description="racks there are; left out: as many as it takes")
    rack_units: Count = Field(default=42, description="height of a rack")
    power_w: Power | None = Field(
        default=None, alias="power", description="most a rack can be fed with; left out: 35kW"
    )
    cooling_w: Power | None = Field(
        default=None, alias="cooling", description="most heat a rack can be rid of; left out: as much as its power"
    )
    switches_per_manager: Whole = Field(
        default=2, description="switches that share a cable manager of one unit; 0: there are no managers"
    )
    per_row: Count = Field(default=16, description="racks in a row")
    pitch_m: Annotated[Number, Field(gt=0)] = Field(default=0.6, description="width of a rack, in metres")
    row_m: Annotated[Number, Field(gt=0)] = Field(default=2.4, description="from row to row, in metres")

    @property
    def limit_w(self) -> float:
        """Return what a rack may draw: no more than it is fed with, and no more than its heat can be got rid of."""
        fed = self.power_w or RACK_POWER_W
        return min(fed, self.cooling_w or fed)


Percent = Annotated[Number, Field(ge=0, le=100)]


class CablePrices(Strict):
    """What one cable costs, by its kind."""

    dac: RangedPrice | None = Field(default=None, description="passive copper")
    aoc: RangedPrice | None = Field(default=None, description="active optical")
    fibre: RangedPrice | None = Field(
        default=None, description="fibre; with its share of the transceivers where those have no price"
    )
    transceiver: RangedPrice | None = Field(default=None, description="one transceiver, for one port or for two")
    cat6: RangedPrice | None = Field(default=None, description="twisted pair, for management")


class Costs(Strict):
    """What things cost here; a price that nobody knows closer is a range: `180000..210000`."""

    currency: Line = Field(default="EUR", description="such as EUR")
    node_price: RangedPrice | None = Field(default=None, description="of one node")
    power_price_kwh: RangedPrice | None = Field(default=None, description="of one kilowatt hour")
    switch_price: RangedPrice | None = Field(default=None, description="of one switch whose model has no price")
    cable_prices: CablePrices = Field(default=CablePrices(), description="of one cable, by its kind")
    gpu_hour_price: RangedPrice | None = Field(default=None, description="of one GPU hour, when the pod is rented")
    staff_year: RangedPrice | None = Field(default=None, description="of the people who run the pod, a year")
    space_m2_year: RangedPrice | None = Field(default=None, description="of a square metre of floor, a year")
    storage_tb_month: RangedPrice | None = Field(default=None, description="of a terabyte that is kept, a month")
    support_percent: Percent | None = Field(default=None, description="of what was bought, a year")
    finance_percent: Percent | None = Field(default=None, description="interest on what was bought, a year")
    other_year: dict[Line, RangedPrice] = Field(
        default={}, description="anything else, by name: {insurance: 9000}, a year"
    )
    grid_co2_kg_kwh: Annotated[Number, Field(ge=0, le=5)] | None = Field(
        default=None, description="of the grid: kilograms of CO2 for a kilowatt hour"
    )
    years: Annotated[Number, Field(gt=0)] | None = Field(
        default=None, description="over which the price of a node is spread"
    )
    pue: Ratio | None = Field(default=None, description="power of the whole building to that of the machines")
    utilization: ShareUsed | None = Field(default=None, description="share of hours that are used")


Scheduler = Annotated[SlurmScheduler | KubernetesScheduler, Field(discriminator="kind")]


class Pod(Strict):
    """One cluster, as one file says it; hardware names are resolved."""

    name: Name = Field(description="lower-case letters, digits and dashes")
    nodes: tuple[NodeGroup, ...] = Field(description="groups of hosts that are alike")
    fabrics: Fabrics = Field(default=Fabrics(), description="compute, storage and management networks")
    storage: tuple[Storage, ...] = Field(default=(), description="storage systems")
    schedulers: tuple[Scheduler, ...] = Field(default=(), description="Slurm, Kubernetes, or both on different hosts")
    services: tuple[Service, ...] = Field(
        (), description="what runs beside: registry, mirror, netboot, monitoring, ..."
    )
    cache: CacheSpace = Field(default=CacheSpace(), description="where nodes keep data that is staged for runs")
    catalog: CatalogUrl | None = Field(
        default=None, description="where catalogs of data are published: clickhouse://HOST:PORT/DATABASE"
    )
    costs: Costs = Field(default=Costs(), description="what things cost")
    teams: tuple[Team, ...] = Field(default=(), description="people who work together, and what they may use")
    alerts: Alerts = Field(default=Alerts(), description="who hears of alerts")
    remediation: Remediation | None = Field(
        default=None, description="what is done by itself with nodes that alerts are about; left out: nothing"
    )
    shared_runs: SharedPath | None = Field(
        default=None, description="a folder all users see, where runs that their owners share are published"
    )
    bringup: Bringup = Field(default=Bringup(), description="how hosts become the pod")
    title: Text | None = Field(default=None, description="a line about the pod")
    racks: Annotated[Racks, _OrCount(), BeforeValidator(_OrCount.wrap)] = Field(
        default=Racks(), description="the racks there are, or their number alone"
    )

    _path: Path = PrivateAttr(default=Path("pod.yaml"))
    _source: bytes = PrivateAttr(default=b"")

    @property
    def path(self) -> Path:
        """Return the file it was read from, absolute."""
        return self._path

    @property
    def source(self) -> bytes:
        """Return the file's bytes as given."""
        return self._source

    def refusal(self, wrong: Iterable[tuple[str, str, str | None]]) -> Refusal:
        """Return the refusal of fields that only show to be wrong in the design; each is (field, message, hint).

        The file is read once more for the places: design refuses rarely, and every pod would carry them otherwise.
        """
        file = str(self._path)
        document = Document(file)
        if self._source:
            document = parse(decode(self._source, file), file)
        findings = [Finding(tuple(filter(None, name.split("."))), message, hint) for name, message, hint in wrong]
        return Refusal(problems(findings, document))

    def team_of(self, user: str | None) -> Team | None:
        """Return the team of an account; None for one that is in none."""
        return next((team for team in self.teams if user in team.members), None)

    def hosts(self) -> list[str]:
        """Return all hosts, in the order of the file."""
        hosts: list[str] = []
        for group in self.nodes:
            hosts += group.hosts
        return hosts

    def compute_hosts(self) -> list[str]:
        """Return the hosts that workloads run on."""
        hosts: list[str] = []
        for group in self.nodes:
            if "compute" in group.roles:
                hosts += group.hosts
        return hosts

    def model_of(self, host: str) -> NodeModel:
        """Return the model of a host."""
        for group in self.nodes:
            if host in group.hosts:
                return group.model
        raise refuse(f'"{short(host)}" is not a host of the pod {self.name}')

    def scheduler(self, name: str | None = None) -> SlurmScheduler | KubernetesScheduler:
        """Return the scheduler of this name; without a name the only one there is."""
        names = [scheduler.name for scheduler in self.schedulers]
        hint = "add one to its file"
        if name is None and len(names) != 1:
            if names:
                targets = [f"{self.name}:{each}" for each in names]
                hint = f"say which: {', '.join(targets)}"
            raise refuse(f"the pod {self.name} has {len(names) or 'no'} schedulers", hint=hint)
        for scheduler in self.schedulers:
            if name in (None, scheduler.name):
                return scheduler
        if names:
            hint = one_of(str(name), "scheduler", names)
        raise refuse(f'the pod {self.name} has no scheduler "{short(str(name))}"', hint=hint)

    def scheduler_hosts(self, scheduler: SlurmScheduler | KubernetesScheduler) -> list[str]:
        """Return the hosts of a scheduler: as given, else all compute hosts."""
        if scheduler.hosts is None:
            return self.compute_hosts()
        return list(scheduler.hosts)

    def compute_fabric(self) -> ComputeFabric | None:
        """Return the compute fabric; what the file leaves out comes from the node model, if that has its kind."""
        given, default = self.fabrics.compute, self._defaults().compute
        if given is not None and default is not None and given.kind != default.kind:
            return given
        return _over(given, default)

    def storage_fabric(self) -> StorageFabric | None:
        """Return the storage fabric; what the file leaves out comes from the node model."""
        return _over(self.fabrics.storage, self._defaults().storage)

    def management_fabric(self) -> ManagementFabric | None:
        """Return the management fabric; what the file leaves out comes from the node model."""
        return _over(self.fabrics.management, self._defaults().management)

    def _defaults(self) -> Fabrics:
        return next((group.model.fabrics for group in self.nodes if "management" not in group.roles), Fabrics())


def _over(given: Given | None, default: Given | None) -> Given | None:
    """Lay what the file gives over what the library has."""
    if given is None or default is None:
        return given or default
    return default.model_copy(update={name: getattr(given, name) for name in given.model_fields_set})
