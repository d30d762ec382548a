"""The design of a pod: all fabrics sized, wired and placed. Pure: the same pod gives the same design."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Self, TypeVar

from podwright.design import bom, lengths, plugs, sizing, sizing_storage, wiring
from podwright.design.cliffs import cliff_notes
from podwright.design.domain_racks import feed_notes
from podwright.design.ethernet import Underlay, check_ethernet, is_ethernet, underlay
from podwright.design.floor import Floor
from podwright.design.management import Management, ManagementPlan
from podwright.design.management_tiers import SITE
from podwright.design.networks import Network
from podwright.design.racks import lay_out, rack_places
from podwright.design.requirements import Requirements, requirements_of, speed_warnings
from podwright.design.running import Electricity, electricity
from podwright.design.sockets import Sockets
from podwright.design.storage_ports import Feed, checked_ends, feeds, storage_notes
from podwright.design.topology import Topology, topology_of
from podwright.design.wiring import Cable, Switch, Wired
from podwright.spec import Pod, SwitchModel
from podwright.spec.problems import Refusal, refuse

Result = TypeVar("Result")

# What DDN calls the least for training.
NEEDED_BYTES_S = 1_000_000_000


@dataclass(frozen=True)
class Blueprint:
    """A pod designed, as all that reads a design sees it; a fabric that the pod does not have is None."""

    requirements: Requirements
    compute: sizing.ComputeSize | None
    storage: sizing_storage.StorageSize | None
    wired: dict[str, Wired]
    management: Management | None
    floor: Floor

    @classmethod
    def of(cls, pod: Pod) -> Self:
        """Design a pod, or refuse with the line of its file and the nearest thing that would work."""
        return located(pod, lambda: cls._made(pod))

    @classmethod
    def _made(cls, pod: Pod) -> Self:
        requirements = requirements_of(pod)
        compute, storage = None, None
        if requirements.compute:
            others_hold = None
            if requirements.storage:
                others_hold = sizing_storage.most_storage_nodes(requirements.storage)
            compute = sizing.size_compute(requirements.compute, others_hold)
            check_ethernet(requirements, compute)
        if requirements.storage:
            storage = sizing_storage.size_storage(requirements.storage)
        wired: dict[str, Wired] = {}
        switches: list[Switch] = []
        if requirements.compute and compute:
            wired["compute"] = wiring.wire_compute(requirements.compute, compute, requirements.hosts)
            switches += wired["compute"].switches
        if requirements.storage and storage:
            ends = checked_ends(requirements, storage)
            wired["storage"] = wiring.wire_storage(requirements.storage, storage, requirements.hosts, ends)
            switches += wired["storage"].switches
        made = cls(requirements, compute, storage, wired, *_placed(requirements, switches))
        _check_names(made)
        return made

    @property
    def pod(self) -> Pod:
        """Return the pod it was made from."""
        return self.requirements.pod

    @cached_property
    def switches(self) -> list[Switch]:
        """Return all switches, fabric by fabric."""
        own = self.management.switches if self.management else ()
        return [*chain.from_iterable(wired.switches for wired in self.wired.values()), *own]

    @cached_property
    def cables(self) -> list[Cable]:
        """Return all cables, fabric by fabric."""
        own = self.management.cables if self.management else ()
        return [*chain.from_iterable(wired.cables for wired in self.wired.values()), *own]

    @property
    def storage_cables(self) -> int:
        """Count the cables of storage systems."""
        return sum(cable.kind == "storage" for cable in self.cables)

    @property
    def networks(self) -> list[Network]:
        """Return the networks of the management fabric; none where there is no such fabric."""
        return self.management.networks if self.management else []

    @cached_property
    def sockets(self) -> Sockets:
        """Return where the ports are: their cages, and what the panels call them."""
        return Sockets(self.requirements, self.switches)

    @cached_property
    def laid(self) -> list[lengths.Laid]:
        """Return all cables with their lengths and kinds."""
        laid: list[lengths.Laid] = []
        for switch, cables in self._runs():
            if switch:
                laid += lengths.lay(cables, self.floor, self.pod.racks, switch)
        return plugs.settle(laid, self.sockets)

    @cached_property
    def cage_groups(self) -> list[plugs.CageGroup]:
        """Return the cables in groups whose cages hang together."""
        return plugs.join(self.laid, self.sockets)

    @cached_property
    def underlay(self) -> Underlay | None:
        """Return the numbers of an Ethernet compute fabric; None for another one."""
        if self.compute is None or not is_ethernet(self.requirements):
            return None
        return underlay(self.requirements, self.compute, self.wired["compute"])

    @cached_property
    def topology(self) -> Topology:
        """Return which hosts belong together."""
        return topology_of(self.pod)

    @property
    def notes(self) -> list[str]:
        """Return what a reader must know beside the tables."""
        notes = speed_warnings(self.pod)
        for fabric in self.wired:
            managers = self.requirements.subnet_managers(fabric)
            if managers:
                hosts = " and ".join(managers)
                notes.append(f"{fabric}: subnet manager (OpenSM or UFM) on {hosts}")
        management = self.management.notes if self.management else ()
        return [*notes, *storage_notes(self.requirements), *management, *feed_notes(self.floor), *self.cliffs]

    @cached_property
    def cliffs(self) -> list[str]:
        """Return what takes far fewer switches."""
        return list(cliff_notes(self.requirements, self.compute))

    @cached_property
    def fibre_modes(self) -> dict[Cable, str]:
        """Return the kind of each fibre, where it is told apart."""
        return plugs.fibre_modes(self.cage_groups, self._speeds())

    def _speeds(self) -> dict[str, float]:
        """Return the speed of the ports of each fabric that fibre goes into."""
        speeds: dict[str, float] = {}
        for switch, cables in self._runs():
            if switch is not None and cables:
                speeds[cables[0].fabric] = switch.speed_gbps or 0.0
        return speeds

    def bill(self) -> list[bom.Item]:
        """Return the bill of materials."""
        parts = plugs.parts(self.cage_groups, self.sockets, self._speeds())
        return bom.bill(self.requirements, self.switches, self.floor, parts)

    def total(self) -> tuple[float, list[str]]:
        """Return the price of what has one, and the names of what has none."""
        return bom.total(self.bill())

    def electricity(self) -> Electricity | None:
        """Return the electricity of the years that the pod stands; None where power or its price is not known."""
        return electricity(self.pod.costs, self.bill())

    def feeds(self, needed_bytes_s: int = NEEDED_BYTES_S) -> list[Feed]:
        """Return what each storage system gives a GPU."""
        cables = Counter(cable.a for cable in self.cables if cable.kind == "storage")
        return feeds(self.requirements, self.storage, cables, needed_bytes_s)

    def _runs(self) -> Iterator[tuple[SwitchModel | None, list[Cable]]]:
        """Yield the cables with the switch whose ports decide what they are made of."""
        for name, wired in self.wired.items():
            yield self.requirements.switch_of(name), wired.cables
        fabric = self.pod.management_fabric()
        if fabric is not None and self.management is not None:
            above = {switch.name for switch in self.management.switches if switch.tier != "leaf"}
            cables = self.management.cables
            yield fabric.switch, [cable for cable in cables if not {cable.a, cable.b} & above]
            yield fabric.aggregation, [cable for cable in cables if {cable.a, cable.b} & above]


def _placed(requirements: Requirements, switches: Sequence[Switch]) -> tuple[Management | None, Floor]:
    """Return the management network and where all stands.

    Each waits for the other: racks have power feeds that need management ports, and management switches need room in
    racks. More of one never takes less of the other, so that going round comes to an end.
    """
    fabric = requirements.pod.management_fabric()
    if fabric is None or fabric.switch is None:
        return None, lay_out(requirements, switches, [])
    plan, slots = ManagementPlan(requirements, fabric, switches), 1
    while (places := rack_places(requirements, [*switches, *plan.node_leaves()], plan.central(slots))) > slots:
        slots = places
    floor = lay_out(requirements, [*switches, *plan.switches(slots)], plan.central(slots))
    floor = replace(floor, slots=slots)
    return plan.made(fabric, floor), floor


def _check_names(design: Blueprint) -> None:
    """Refuse hosts and storage systems that have the name of something else in the design: a name is one device."""
    taken = {switch.name: f"a {switch.fabric} {switch.tier} switch" for switch in design.switches}
    taken |= dict.fromkeys(design.requirements.manager_models, "a fabric manager")
    taken |= dict.fromkeys(design.floor.pdus, "a power feed") | {SITE: "the site's own network"}
    for name in _storage_names(design):
        _check_name(name, taken, "storage")
        taken[name] = "a storage system"
    for host in design.pod.hosts():
        _check_name(host, taken, "nodes")


def _storage_names(design: Blueprint) -> Iterator[str]:
    """Yield what the storage ports lead to, each once."""
    names: dict[str, None] = {}
    for system in design.requirements.systems:
        names |= dict.fromkeys(system.names)
    if "storage" in design.wired:
        names |= dict.fromkeys(cable.a for cable in design.wired["storage"].cables if cable.kind == "storage")
    yield from names


def _check_name(name: str, taken: Mapping[str, str], field: str) -> None:
    if name in taken:
        raise refuse(f"{name} is the name of {taken[name]} of this design", hint="give it another name", field=field)


def located(pod: Pod, make: Callable[[], Result]) -> Result:
    """Return what is made of a pod; where that is refused, the refusal has its line in the pod's file."""
    try:
        return make()
    except Refusal as refusal:
        raise pod.refusal((problem.field, problem.message, problem.hint) for problem in refusal.problems) from None
