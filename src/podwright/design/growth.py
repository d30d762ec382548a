"""What it takes to make a larger pod of a pod that stands: cables that are added, and cables that must be moved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from podwright.design.plan import Blueprint
from podwright.design.wiring import Cable
from podwright.spec import ComputeFabric, Pod
from podwright.spec.problems import Refusal, refuse

End = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Growth:
    """Cables that come, cables whose other end changes, and cables that go; switches that come and go."""

    old: Blueprint
    new: Blueprint
    added: list[Cable]
    moved: list[tuple[Cable, Cable]]
    removed: list[Cable]
    switches_added: list[str]
    switches_removed: list[str]

    @property
    def disturbs(self) -> int:
        """Return how many cables in use somebody must touch."""
        return len(self.moved) + len(self.removed)

    def as_json(self) -> dict[str, Any]:
        """Return the key `growth` of the document with `--grow-from`."""
        return {
            "added": [cable._asdict() for cable in self.added],
            "moved": [{"from": old._asdict(), "to": new._asdict()} for old, new in self.moved],
            "removed": [cable._asdict() for cable in self.removed],
            "switches_added": self.switches_added,
            "switches_removed": self.switches_removed,
        }


def grow(old: Blueprint, new: Blueprint) -> Growth:
    """Compare two designs cable by cable; a cable that keeps one of its ends has moved."""
    before, after = _ends(old.cables), _ends(new.cables)
    gone = [cable for ends, cable in before.items() if ends not in after]
    fresh = {ends: cable for ends, cable in after.items() if ends not in before}
    by_end: dict[End, tuple[End, End]] = {}
    for ends in fresh:
        by_end |= dict.fromkeys(ends, ends)
    moved: list[tuple[Cable, Cable]] = []
    removed: list[Cable] = []
    for cable in gone:
        partner = next((by_end[end] for end in ends_of(cable) if by_end.get(end) in fresh), None)
        if partner is None:
            removed.append(cable)
        else:
            moved.append((cable, fresh.pop(partner)))
    names = {switch.name for switch in old.switches}, {switch.name for switch in new.switches}
    return Growth(
        old,
        new,
        added=list(fresh.values()),
        moved=moved,
        removed=removed,
        switches_added=[switch.name for switch in new.switches if switch.name not in names[0]],
        switches_removed=[switch.name for switch in old.switches if switch.name not in names[1]],
    )


def allowed_growth(old: Blueprint, new: Blueprint, allow_moves: bool) -> Growth:
    """Return the growth of a pod; refuse another pod, and moves of cables in use that were not allowed."""
    check_pods(old, new)
    growth = grow(old, new)
    if growth.disturbs and not allow_moves:
        raise refuse_moves(growth)
    return growth


def check_pods(old: Blueprint, new: Blueprint) -> None:
    """Refuse what is no growth: another pod, or one with fewer nodes."""
    before, after = old.requirements, new.requirements
    gone = [host for host in before.hosts if host not in after.models]
    if gone and len(gone) < len(before.hosts) and len(after.hosts) < len(before.hosts):
        raise refuse(
            f"the pod shrinks from {len(before.hosts)} to {len(after.hosts)} nodes",
            hint="growth adds nodes; give the smaller pod as the old one",
            field="nodes",
        )
    other = [host for host in before.hosts if host in after.models and after.models[host] != before.models[host]]
    what = [f"{host} of the old one is not in it" for host in gone[:1]]
    what += [f"{host} is of another model" for host in other[:1]]
    if what:
        raise refuse(
            f"this is another pod: {what[0]}",
            hint="the hosts of the old pod keep their names and models in the new one",
            field="nodes",
        )


def refuse_moves(growth: Growth) -> Refusal:
    """Return the refusal of a growth that would touch cables in use."""
    first = (*(a for a, _ in growth.moved), *growth.removed)[0]
    nodes = len(growth.old.requirements.hosts), len(growth.new.requirements.hosts)
    hint = f"`nodes_planned: {nodes[1]}` in the old file would have moved none; `--allow-moves` lists them"
    if _planned(growth.old.pod, nodes[1], growth.new):
        hint = "the files differ in more than their nodes; `--allow-moves` lists what that moves"
    return refuse(
        f"growing from {nodes[0]} to {nodes[1]} nodes moves {growth.disturbs:,} cables that are in use, "
        f"the first at {first.a} port {first.a_port}",
        hint=hint,
        field="fabrics.compute.nodes_planned",
    )


def _planned(old: Pod, nodes: int, new: Blueprint) -> int:
    """Return how many cables would have been touched, had the old pod been planned for so many nodes."""
    given = old.fabrics.compute or ComputeFabric.model_validate({})
    planned = given.model_copy(update={"nodes_planned": nodes})
    fabrics = old.fabrics.model_copy(update={"compute": planned})
    try:
        return grow(Blueprint.of(old.model_copy(update={"fabrics": fabrics})), new).disturbs
    except Refusal:
        return 1


def ends_of(cable: Cable) -> tuple[End, End]:
    """Return both ends of a cable: fabric, device and port."""
    return (cable.fabric, cable.a, cable.a_port), (cable.fabric, cable.b, cable.b_port)


def _ends(cables: list[Cable]) -> dict[tuple[End, End], Cable]:
    return {ends_of(cable): cable for cable in cables}
