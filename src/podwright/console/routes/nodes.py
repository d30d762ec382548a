"""Nodes of a pod: what its Prometheus sees of them against the design, drift, runs that they took part in, failures."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import Any

import podwright
from podwright import design, launch, usage
from podwright.console.routes.links import designed_links, links_of, live_frame, pod_named
from podwright.console.routes.places import PodNamed, alerts_of, queues_now
from podwright.console.web import rows
from podwright.console.web.answers import Answer, JsonAnswer, Page
from podwright.console.web.route import Visit
from podwright.spec import Pod
from podwright.spec.problems import Refusal, refuse, short

FAILURES_S, STATUS_S = 60.0, 60.0
"""How long an answer of the index, and of a host itself, serves all who look."""
MAX_RUNS = 30


@dataclass(frozen=True)
class NodeNamed:
    """A node of a pod."""

    pod: str
    node: str


@dataclass(frozen=True)
class NodeRequest:
    """A node's page; `ask`: the host itself is asked whether it is as planned, which takes a while."""

    pod: str
    node: str
    ask: bool = False


def pod_live(visit: Visit, asked: PodNamed) -> Answer:
    """Return what a pod does now, as `top POD --json` has it."""
    return JsonAnswer(live_frame(visit, asked.pod).as_json())


def _known(visit: Visit, asked: NodeNamed | NodeRequest) -> Pod:
    pod = pod_named(visit, asked.pod)
    if asked.node not in pod.hosts():
        raise refuse(f"{pod.name} has no node {short(asked.node)!r}", field="node", exit_code=1)
    return pod


def _lemon(visit: Visit, pod: Pod, host: str) -> usage.LemonNode | None:
    now = int(visit.desk.clock.monotonic() / FAILURES_S)
    nodes = visit.desk.kept(("lemons", pod.name, now), lambda: usage.lemon_nodes(visit.desk.session, pod))
    return next((node for node in nodes if node.host == host), None)


def _cables(pod: Pod, host: str) -> list[dict[str, Any]]:
    return [cable for cable in design.Design.of(pod).cables_json() if host in (cable["a"], cable["b"])]


def show_node(visit: Visit, asked: NodeNamed) -> Answer:
    """Return a node's cables by design, the runs it took part in, and its share of the last failures."""
    pod = _known(visit, asked)
    records = launch.runs_on_host(visit.desk.session, asked.pod, asked.node, MAX_RUNS)
    lemon = _lemon(visit, pod, asked.node)
    document = {
        "pod": asked.pod,
        "host": asked.node,
        "cables": _cables(pod, asked.node),
        "runs": [record.as_json() for record in records],
        "failures": lemon.as_json() if lemon else None,
    }
    return JsonAnswer(document)


def node_status(visit: Visit, asked: NodeNamed) -> Answer:
    """Ask a host whether it is as planned, and return this as `pod status --limit HOST --json` has it."""
    return JsonAnswer(_status(visit, _known(visit, asked), asked.node).as_json())


def _status(visit: Visit, pod: Pod, host: str) -> Any:
    now = int(visit.desk.clock.monotonic() / STATUS_S)
    visit.note("look at a host", "asked", pod=pod.name, host=host)
    return visit.desk.kept(("status", pod.name, host, now), lambda: podwright.bringup_of(pod).status(host))


def node_page(visit: Visit, asked: NodeRequest) -> Answer:
    """Show a node: how it is now, its links against the design, drift where it was asked, its runs and failures."""
    pod = _known(visit, asked)
    group = next(group for group in pod.nodes if asked.node in group.hosts)
    session = visit.desk.session
    records = launch.runs_on_host(session, asked.pod, asked.node, MAX_RUNS)
    listed = chain.from_iterable(queue.nodes for queue in queues_now(visit))
    view: dict[str, Any] = {
        "title": asked.node,
        "asked": asked,
        "group": group,
        "queue": next((node for node in listed if node.node == asked.node), None),
        "now": None,
        "why": "",
        "links": (),
        "alerts": [alert for alert in alerts_of(visit, asked.pod) if alert.host == asked.node],
        "runs": [(record, rows.look_of(record), rows.outcome(record)) for record in records],
        "failed": sum(record.state in ("failed", "lost") for record in records),
        "lemon": _lemon(visit, pod, asked.node),
        "status": None,
        "status_why": "",
    }
    try:
        view["cables"] = _cables(pod, asked.node)
    except Refusal:
        view["cables"] = []
    try:
        frame = live_frame(visit, asked.pod)
        view["now"] = next((node for node in frame.nodes if node.host == asked.node), None)
    except Refusal as refusal:
        view["why"] = str(refusal.problems[0])
    if view["now"] is not None:
        view["links"] = links_of(view["now"], designed_links(visit, pod).get(asked.node, 0)).states
    if asked.ask and visit.identity is not None and visit.identity.may("steer"):
        view |= _asked_status(visit, pod, asked.node)
    return Page("node", view)


def _asked_status(visit: Visit, pod: Pod, host: str) -> dict[str, Any]:
    try:
        return {"status": _status(visit, pod, host).hosts.get(host)}
    except Refusal as refusal:
        return {"status_why": str(refusal.problems[0])}
