"""The links of a pod: what its Prometheus sees of them against how many the design gives each node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import podwright
from podwright import design
from podwright.console.web.route import Visit
from podwright.launch import pods
from podwright.spec import Pod
from podwright.spec.problems import Refusal, refuse, short
from podwright.watch import FrameNode, PodFrame

LIVE_S = 15.0
"""How long an answer of the pod's Prometheus serves all who look."""
MAX_TILES = 512
MISSING = "missing"


@dataclass(frozen=True)
class NodeLinks:
    """The links of a node: the state of each that is seen, and `missing` for each that the design has beyond these."""

    host: str
    states: tuple[tuple[str, str], ...]

    @property
    def troubled(self) -> tuple[tuple[str, str], ...]:
        """Return the links that are not simply up."""
        return tuple((port, state) for port, state in self.states if state != "up")


def links_of(node: FrameNode, designed: int) -> NodeLinks:
    """Return the links of a node against how many the design gives it."""
    seen = [(port.port, port.state) for port in node.ports]
    return NodeLinks(node.host, (*seen, *[("", MISSING)] * max(0, designed - len(seen))))


def pod_named(visit: Visit, name: str) -> Pod:
    """Return a pod that is known here; another is missing."""
    if name not in pods.known(visit.desk.session.home):
        raise refuse(f"there is no pod {short(name)!r}", field="pod", exit_code=1)
    return pods.find(visit.desk.session.home, name)


def live_frame(visit: Visit, name: str) -> PodFrame:
    """Return what a pod does now, as its Prometheus says it; refuse where nobody can be asked."""
    pod = pod_named(visit, name)
    now = int(visit.desk.clock.monotonic() / LIVE_S)

    def ask() -> PodFrame | Refusal:
        try:
            return podwright.bringup_of(pod).frame()
        except Refusal as refusal:
            return refusal

    told = visit.desk.kept(("frame", name, now), ask)
    if isinstance(told, Refusal):
        raise told
    return told


def designed_links(visit: Visit, pod: Pod) -> Mapping[str, int]:
    """Return how many links into its fabrics each node has by design; those of management are not looked at."""

    def count() -> Mapping[str, int]:
        cables = design.Design.of(pod).cables_json()
        return Counter(cable["a"] for cable in cables if cable["fabric"] in ("compute", "storage"))

    return visit.desk.kept(("links", pod.name, pod.source), count)


def links_view(visit: Visit, name: str) -> dict[str, Any]:
    """Return the links of all nodes as their page draws them, or why nobody knows them."""
    try:
        frame = live_frame(visit, name)
        by_design = designed_links(visit, pod_named(visit, name))
    except Refusal as refusal:
        return {"links": (), "links_why": str(refusal.problems[0]), "links_left_out": 0}
    found = [links_of(node, by_design.get(node.host, 0)) for node in frame.nodes]
    drawn = [node for node in found if node.states]
    # Those in trouble are drawn, whatever is left out of a large pod.
    drawn.sort(key=lambda node: not node.troubled)
    return {"links": drawn[:MAX_TILES], "links_why": "", "links_left_out": max(0, len(drawn) - MAX_TILES)}
