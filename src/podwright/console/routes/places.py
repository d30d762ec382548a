"""Queues, pods and alerts: what is beside runs, as far as the doors of their bands tell it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Any

import podwright
from podwright import design, usage
from podwright.console.access.guard import FILE_POLICY
from podwright.console.routes.links import MAX_TILES, links_view, pod_named
from podwright.console.web.answers import Answer, Blob, JsonAnswer, Page
from podwright.console.web.route import Nothing, Visit
from podwright.launch import pods
from podwright.spec.problems import Refusal, refuse, short

QUEUE_S = 5.0
ALERTS_S = 15.0
"""How long an answer of a target, or of a pod's Prometheus, serves all who look."""
DRAWINGS = ("compute", "storage", "management", "racks")


@dataclass(frozen=True)
class PodNamed:
    """A pod that is known here."""

    pod: str


@dataclass(frozen=True)
class DrawingRequest:
    """A drawing of a pod's design."""

    pod: str
    drawing: str


@dataclass(frozen=True)
class PodFacts:
    """A pod as lists show it; `error` is why its file says nothing."""

    name: str
    error: str | None = None
    nodes: int = 0
    gpus: int = 0
    schedulers: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return it as an API has it."""
        return {**vars(self), "schedulers": list(self.schedulers)}


@dataclass(frozen=True)
class PodAlerts:
    """What fires on a pod, or why nobody knows."""

    pod: str
    alerts: tuple[Any, ...] = ()
    error: str = ""


def queues_now(visit: Visit) -> list[usage.TargetQueue]:
    """Return what runs and waits on each target, as it was told a moment ago at most."""
    now = int(visit.desk.clock.monotonic() / QUEUE_S)
    return visit.desk.kept(("queues", now), lambda: usage.queues(visit.desk.session))


def queue(visit: Visit, asked: Nothing) -> Answer:
    """Return what runs and waits on each target, as `queue --json` has it."""
    return JsonAnswer([queue.as_json() for queue in queues_now(visit)])


def queue_page(visit: Visit, asked: Nothing) -> Answer:
    """Show what waits and why on each target, what runs there, and what is free."""
    queues = queues_now(visit)
    waiting = sum(_tasks(queue, "waiting") for queue in queues)
    verdict = "Nothing waits." if not waiting else f"{waiting} {'jobs wait' if waiting > 1 else 'job waits'}."
    away = [queue.target for queue in queues if queue.away]
    if away:
        verdict += f" {', '.join(away)} cannot be asked."
    return Page("queue", {"title": "Queue", "queues": queues, "verdict": verdict})


def _tasks(queue: usage.TargetQueue, state: str) -> int:
    return sum(job.tasks for job in queue.jobs if job.state == state)


# pods


def _facts(visit: Visit, name: str) -> PodFacts:
    try:
        pod = pod_named(visit, name)
    except Refusal as refusal:
        return PodFacts(name, str(refusal.problems[0]))
    gpus = sum(len(group.hosts) * group.model.gpus.count for group in pod.nodes if group.model.gpus)
    schedulers = tuple(scheduler.kind for scheduler in pod.schedulers)
    return PodFacts(name, None, sum(len(group.hosts) for group in pod.nodes), gpus, schedulers)


def list_pods(visit: Visit, asked: Nothing) -> Answer:
    """Return the pods that are known here."""
    return JsonAnswer([_facts(visit, name).as_json() for name in pods.known(visit.desk.session.home)])


def pods_page(visit: Visit, asked: Nothing) -> Answer:
    """Show the pods that are known here."""
    facts = [_facts(visit, name) for name in pods.known(visit.desk.session.home)]
    return Page("pods", {"title": "Pods", "pods": facts})


def _designed(visit: Visit, name: str) -> tuple[dict[str, str], dict[str, Any]]:
    """Return the drawings of a pod's design and its document; they are made once for a file as it is."""
    pod = pod_named(visit, name)

    def make() -> tuple[dict[str, str], dict[str, Any]]:
        whole = design.Design.of(pod)
        files = whole.files()
        drawings = {path.partition("/")[0].removesuffix(".svg"): text for path, text in files.items() if ".svg" in path}
        return drawings, whole.as_json()

    return visit.desk.kept(("design", name, pod.source), make)


def show_pod(visit: Visit, asked: PodNamed) -> Answer:
    """Return a pod's design, as `design --json` has it."""
    return JsonAnswer(_designed(visit, asked.pod)[1])


def pod_page(visit: Visit, asked: PodNamed) -> Answer:
    """Show a pod: its nodes as they are now, its fabrics as they are drawn."""
    facts = _facts(visit, asked.pod)
    drawings: dict[str, str] = {}
    why = ""
    if facts.error is None:
        try:
            drawings, _ = _designed(visit, asked.pod)
        except Refusal as refusal:
            why = str(refusal.problems[0])
    queues = [queue for queue in queues_now(visit) if queue.target.partition(":")[0] == asked.pod]
    listed = chain.from_iterable(queue.nodes for queue in queues)
    nodes = {node.node: node for node in listed}
    states = Counter(node.state for node in nodes.values())
    view = {
        "title": asked.pod,
        "pod": facts,
        "queues": queues,
        "nodes": list(nodes.values())[:MAX_TILES],
        "left_out": max(0, len(nodes) - MAX_TILES),
        "states": states,
        "drawings": [name for name in DRAWINGS if name in drawings],
        "why": why,
        "hosts": pod_named(visit, asked.pod).hosts()[:MAX_TILES] if facts.error is None else (),
        **links_view(visit, asked.pod),
    }
    return Page("pod", view)


def drawing(visit: Visit, asked: DrawingRequest) -> Answer:
    """Return a drawing of a pod's design as SVG."""
    drawings, _ = _designed(visit, asked.pod)
    if asked.drawing not in drawings:
        raise refuse(f"there is no drawing {short(asked.drawing)!r}", field="drawing", exit_code=1)
    headers = {"Content-Security-Policy": FILE_POLICY}
    return Blob(drawings[asked.drawing].encode(), "image/svg+xml", headers=headers)


# alerts


def _alerts(visit: Visit) -> list[PodAlerts]:
    now = int(visit.desk.clock.monotonic() / ALERTS_S)
    names = pods.known(visit.desk.session.home)
    return visit.desk.kept(("alerts", now), lambda: [_alerts_of(visit, name) for name in names])


def _alerts_of(visit: Visit, name: str) -> PodAlerts:
    ask: Callable[[], Any] = lambda: podwright.bringup_of(pod_named(visit, name)).alerts()  # noqa: E731
    try:
        return PodAlerts(name, tuple(ask().alerts))
    except Refusal as refusal:
        return PodAlerts(name, error=str(refusal.problems[0]))


def alerts_of(visit: Visit, name: str) -> tuple[Any, ...]:
    """Return what fires on a pod, as far as anybody knows."""
    return next((pod.alerts for pod in _alerts(visit) if pod.pod == name), ())


def alerts(visit: Visit, asked: Nothing) -> Answer:
    """Return what fires on all pods, as `alerts --json` has it of each."""
    found = _alerts(visit)
    firing = chain.from_iterable(pod.alerts for pod in found)
    return JsonAnswer([alert.as_json() for alert in firing])


def alerts_page(visit: Visit, asked: Nothing) -> Answer:
    """Show what fires, since when, what is likely behind it and where to look."""
    found = _alerts(visit)
    firing = sum(len(pod.alerts) for pod in found)
    silent = [pod.pod for pod in found if pod.error]
    verdict = "Nothing fires." if not firing else f"{firing} {'alerts fire' if firing > 1 else 'alert fires'}."
    if silent:
        verdict += f" Of {', '.join(silent)} nobody knows."
    return Page("alerts", {"title": "Alerts", "pods": found, "verdict": verdict})
