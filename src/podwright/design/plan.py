"""The design of a pod: all fabrics sized, wired and placed. Pure: the same pod gives the same design."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

from podwright.design import bom, lengths, sizing, wiring
from podwright.design.management import Management, design_management
from podwright.design.racks import Floor, lay_out
from podwright.design.requirements import Requirements, requirements_of
from podwright.design.systems import storage_ends
from podwright.design.topology import Topology, topology_of
from podwright.design.wiring import Cable, Switch, Wired
from podwright.spec import Pod, SwitchModel
from podwright.spec.problems import Refusal

Made = TypeVar("Made")

# What DDN calls the least for training.
NEEDED_BYTES_S = 1_000_000_000


@dataclass(frozen=True)
class Design:
    """A pod designed; a fabric that the pod does not have is None."""

    requirements: Requirements
    compute: sizing.ComputeSize | None
    storage: sizing.StorageSize | None
    wired: dict[str, Wired]
    management: Management | None

    @property
    def pod(self) -> Pod:
        """Return the pod it was made from."""
        return self.requirements.pod

    @cached_property
    def switches(self) -> list[Switch]:
        """Return all switches, fabric by fabric."""
        found = [switch for one in self.wired.values() for switch in one.switches]
        return found + (self.management.switches if self.management else [])

    @cached_property
    def cables(self) -> list[Cable]:
        """Return all cables, fabric by fabric."""
        found = [cable for one in self.wired.values() for cable in one.cables]
        return found + (self.management.cables if self.management else [])

    @cached_property
    def floor(self) -> Floor:
        """Return where everything stands."""
        central = self.management.central if self.management else []
        return _placed(self.pod, lambda: lay_out(self.requirements, self.switches, central))

    @cached_property
    def laid(self) -> list[lengths.Laid]:
        """Return all cables with their lengths and kinds."""
        floor, racks = self.floor, self.pod.racks
        return [one for switch, cables in self._runs() if switch for one in lengths.lay(cables, floor, racks, switch)]

    @cached_property
    def topology(self) -> Topology:
        """Return which hosts belong together."""
        return topology_of(self.pod)

    def bill(self) -> list[bom.Item]:
        """Return the bill of materials."""
        return bom.bill(self.requirements, self.switches, self.laid, len(self.floor.racks))

    def feeds(self, needed_bytes_s: int = NEEDED_BYTES_S) -> list[bom.Feed]:
        """Return what each storage system gives a GPU."""
        return bom.feeds(self.requirements, needed_bytes_s)

    def _runs(self) -> Iterator[tuple[SwitchModel | None, list[Cable]]]:
        """Yield the cables with the switch whose ports decide what they are made of."""
        yield self.requirements.compute_switch, self.wired["compute"].cables if "compute" in self.wired else []
        yield self.requirements.storage_switch, self.wired["storage"].cables if "storage" in self.wired else []
        fabric = self.pod.management_fabric()
        if fabric is not None and self.management is not None:
            above = {switch.name for switch in self.management.switches if switch.tier == "aggregation"}
            yield fabric.switch, [cable for cable in self.management.cables if cable.b not in above]
            yield fabric.aggregation, [cable for cable in self.management.cables if cable.b in above]


def design_pod(pod: Pod) -> Design:
    """Design a pod, or refuse with the line of its file and the nearest thing that would work."""
    return _placed(pod, lambda: _design(pod))


def _design(pod: Pod) -> Design:
    requirements = requirements_of(pod)
    compute = sizing.size_compute(requirements.compute) if requirements.compute else None
    storage = sizing.size_storage(requirements.storage) if requirements.storage else None
    wired = {}
    if requirements.compute and compute:
        wired["compute"] = wiring.wire_compute(requirements.compute, compute, requirements.hosts)
    if requirements.storage and storage:
        ends = storage_ends(requirements.systems, storage.ports, requirements.storage.ports_per_unit)
        wired["storage"] = wiring.wire_storage(requirements.storage, storage, requirements.hosts, ends)
    switches = [switch for one in wired.values() for switch in one.switches]
    return Design(requirements, compute, storage, wired, design_management(requirements, switches))


def _placed(pod: Pod, make: Callable[[], Made]) -> Made:
    """Give what was wrong its place in the pod's file."""
    try:
        return make()
    except Refusal as refusal:
        raise pod.refusal((one.field, one.message, one.hint) for one in refusal.problems) from None
