"""All nodes of a run or none: which run gives back what it holds, which may try again, and when. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from podwright.clients.kubernetes import names
from podwright.clients.kubernetes.kinds import ObjectKind
from podwright.clients.kubernetes.quantities import moment
from podwright.engines.kubernetes.hold import PARALLEL, TOGETHER, held_reason, held_reasons, pointer
from podwright.engines.kubernetes.states import is_alive, is_suspended

Object = Mapping[str, Any]
MAX_PAUSE_S = 600.0


def short_since(job: Object, pods: Sequence[Object]) -> float | None:
    """Return since when a run holds some of its nodes and finds no room for the others; None where it does not.

    What stands in one of Kueue's queues is let in as a whole.
    """
    labels = job["metadata"].get("labels") or {}
    if names.QUEUE in labels or not is_alive(job) or is_suspended(job):
        return None
    waits = [since for pod in pods if (since := _unschedulable_since(pod)) is not None]
    if not waits or len(waits) == len(pods):
        return None
    return min(waits)


def _unschedulable_since(pod: Object) -> float | None:
    for condition in pod["status"].get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition.get("reason") == "Unschedulable":
            return moment(condition.get("lastTransitionTime"))
    return None


def is_oldest(job: Object, jobs: Iterable[Object]) -> bool:
    """Return whether no other run of the namespace that wants nodes now was made before: that one never yields."""
    rivals = [other for other in jobs if is_alive(other) and not is_suspended(other)]
    return all(_age(job) <= _age(other) for other in rivals)


def _age(job: Object) -> tuple[str, str]:
    return str(job["metadata"].get("creationTimestamp")), str(job["metadata"]["name"])


def give_back_patch(kind: ObjectKind, job: Object, now: float, first_s: float) -> list[dict[str, Any]]:
    """Return the steps that suspend a run until another try; they fail where it was changed meanwhile.

    Each try waits about twice as long as the one before, and no two runs equally long.
    """
    annotations = job["metadata"].get("annotations") or {}
    times = int(annotations.get(names.HELD_TIMES, "0"))
    until = now + pause_s(str(job["metadata"]["name"]), times, first_s)
    marks = {names.HELD: TOGETHER, names.HELD_UNTIL: f"{until:.0f}", names.HELD_TIMES: str(times + 1)}
    return [
        {"op": "test", "path": "/metadata/resourceVersion", "value": job["metadata"]["resourceVersion"]},
        *({"op": "add", "path": pointer(name), "value": value} for name, value in marks.items()),
        {"op": "add", "path": kind.suspend, "value": True},
    ]


def pause_s(run_id: str, times: int, first_s: float) -> float:
    """Return how long a run waits before it tries again for the nth time."""
    share = hashlib.sha256(f"{run_id} {times}".encode()).digest()[0] / 255
    return min(first_s * 2.0**times, MAX_PAUSE_S) * (0.5 + share)


def may_try_again(job: Object, now: float) -> bool:
    """Return whether a run that gave its nodes back has waited long enough."""
    until = (job["metadata"].get("annotations") or {}).get(names.HELD_UNTIL, "0")
    return held_reason(job) == TOGETHER and now >= float(until)


def may_join(jobs: Sequence[Object], at_once: int) -> list[Object]:
    """Return the points that may start now, in the sweep's order, where so many of them may run at once.

    A point that has its place keeps it while it is made, comes after another run or gave its nodes back.
    """
    alive = [job for job in jobs if is_alive(job)]
    placed = sum(PARALLEL not in held_reasons(job) for job in alive)
    waiting = [job for job in alive if held_reason(job) == PARALLEL]
    return sorted(waiting, key=_place)[: max(0, at_once - placed)]


def _place(job: Object) -> tuple[int, str]:
    """Return what puts points in their sweep's order, `RUN-9` before `RUN-10`: they are made several at a time."""
    name = str(job["metadata"]["name"])
    return len(name), name
