"""A pod in many sizes: what each takes, so that a dear one is seen before it is bought."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from podwright.design.cliffs import CHEAPER, switches_of
from podwright.design.csv_text import write_csv
from podwright.design.plan import Blueprint, located
from podwright.design.requirements import fabric_hosts, requirements_of
from podwright.spec.problems import Refusal, refuse

if TYPE_CHECKING:
    from podwright.spec import Pod

# A longer range is sampled: so many sizes evenly, and both sides of each size at which switches jump.
MOST_SIZES = 24
MOST_NODES = 20_000
FIELDS = ("nodes", "switches", "cables", "power_w", "price_per_gpu", "refused")
_RANGE = re.compile(r"nodes=(\d{1,6})\.\.(\d{1,6})")


@dataclass(frozen=True, slots=True)
class PodSize:
    """What a pod of so many nodes takes; None where that is not known, and why it is refused where it is."""

    nodes: int
    switches: int | None = None
    cables: int | None = None
    power_w: int | None = None
    price_per_gpu: float | None = None
    refused: str | None = None

    @property
    def switches_per_node(self) -> float | None:
        """Return what the curve shows."""
        return None if self.switches is None else self.switches / self.nodes


@dataclass(frozen=True, slots=True)
class Sweep:
    """The sizes of a pod, smallest first."""

    name: str
    currency: str
    sizes: tuple[PodSize, ...]

    @classmethod
    def of(cls, pod: Pod, text: str) -> Sweep:
        """Design a pod in the sizes of `nodes=A..B`, or refuse another text."""
        first, last = _range(text)
        sizes = tuple(_size(pod, nodes) for nodes in _chosen(pod, first, last))
        return cls(pod.name, pod.costs.currency, sizes)

    def as_json(self) -> dict[str, Any]:
        """Return the document of `design --sweep`."""
        rows = [dict(zip(FIELDS, attrgetter(*FIELDS)(size), strict=True)) for size in self.sizes]
        return {"sweep": rows, "currency": self.currency}

    def files(self) -> dict[str, str]:
        """Return the table and the curve."""
        from podwright import theme
        from podwright.design.exports.sweep_drawing import sweep_svg

        rows = map(attrgetter(*FIELDS), self.sizes)
        points = [(size.nodes, size.switches) for size in self.sizes if size.switches is not None]
        return {
            "sweep.csv": write_csv(FIELDS, rows),
            "sweep.svg": sweep_svg(self.name, points, theme.asset("tokens.css")),
        }


def _range(text: str) -> tuple[int, int]:
    match = _RANGE.fullmatch(text)
    first, last = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= first <= last <= MOST_NODES:
        raise refuse(
            f"{text} is no range of sizes",
            hint=f"write it like `--sweep nodes=128..300`, up to {MOST_NODES:,} nodes",
            field="--sweep",
        )
    return first, last


def _chosen(pod: Pod, first: int, last: int) -> list[int]:
    """Return all sizes of a short range, of a long one some, with both sides of each jump."""
    if last - first < MOST_SIZES:
        return list(range(first, last + 1))
    step = (last - first) / (MOST_SIZES - 1)
    chosen = {first + round(step * number) for number in range(MOST_SIZES)}
    requirements = requirements_of(_of_size(pod, first))
    before = switches_of(requirements, first)
    for nodes in range(first + 1, last + 1):
        switches = switches_of(requirements, nodes)
        if before and switches and before / (nodes - 1) <= CHEAPER * switches / nodes:
            chosen |= {nodes - 1, nodes}
        before = switches
    return sorted(chosen)


def _size(pod: Pod, nodes: int) -> PodSize:
    try:
        sized = _of_size(pod, nodes)
        design = located(sized, lambda: Blueprint.of(sized))
    except Refusal as refusal:
        return PodSize(nodes, refused=refusal.problems[0].message)
    models = (design.requirements.models[host].gpus for host in design.requirements.hosts)
    gpus = sum(model.count for model in models if model)
    bought, _ = design.total()
    price = round(bought / gpus, 2) if gpus and bought else None
    power = round(design.floor.power_w) or None
    return PodSize(nodes, len(design.switches), len(design.cables), power, price)


def _of_size(pod: Pod, nodes: int) -> Pod:
    """Return a pod with so many nodes on its fabrics: its last group of them grows or shrinks, then those before it."""
    on_fabric = set(fabric_hosts(pod))
    groups = list(pod.nodes)
    indexes = [number for number, group in enumerate(groups) if on_fabric.intersection(group.hosts)]
    if not indexes:
        raise refuse("no node of the pod is on a fabric", hint="sizes are of nodes with compute ports", field="nodes")
    left = nodes
    for number in indexes:
        hosts = groups[number].hosts[:left]
        left -= len(hosts)
        if number == indexes[-1]:
            hosts = (*hosts, *_more(pod.hosts(), left))
        groups[number] = groups[number].model_copy(update={"hosts": hosts})
    kept = [group for group in groups if group.hosts]
    fabrics, compute = pod.fabrics, pod.fabrics.compute
    if compute is not None and compute.nodes_planned is not None and compute.nodes_planned < nodes:
        fabrics = fabrics.model_copy(update={"compute": compute.model_copy(update={"nodes_planned": None})})
    sized = pod.model_copy(update={"nodes": tuple(kept), "fabrics": fabrics})
    return sized


def _more(taken: Iterable[str], count: int) -> list[str]:
    """Return names for nodes that the pod does not have yet."""
    known = set(taken)
    names: list[str] = []
    number = 0
    while len(names) < count:
        number += 1
        name = f"node{number:05d}"
        if name not in known:
            names.append(name)
    return names
