"""What a look does for runs that wait: gives back nodes that are no use alone, and resumes what may start."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from podwright.clients.kubernetes import names
from podwright.clients.kubernetes.api import JSON_PATCH, Api, ApiError
from podwright.clients.kubernetes.kinds import BY_NAME, KINDS
from podwright.clients.kubernetes.paths import path_of
from podwright.clients.kubernetes.quantities import moment
from podwright.engines.kubernetes.claim_reader import site_of
from podwright.engines.kubernetes.cluster import ClusterWatch
from podwright.engines.kubernetes.gang import give_back_patch, is_oldest, may_join, may_try_again, short_since
from podwright.engines.kubernetes.hold import CHANGED, GONE, PARALLEL, TOGETHER, release
from podwright.engines.kubernetes.outage import Patience
from podwright.engines.kubernetes.states import is_alive, is_being_made, is_suspended
from podwright.engines.kubernetes.submit import mend
from podwright.runs import RunFolder

CONFLICT = 409
LACK_S, BEGINS_S = 30.0, (15.0, 900.0)
"""Between two looks whether a run has all that it needs, and the ages of Kubernetes pods that may find that it has
not: what runs already was given it."""
HIDDEN = (403, 404)
"""What the server answers where the user may not list a kind, or the cluster does not have it."""


def _may_lack(job: Mapping[str, Any], pods: Sequence[Mapping[str, Any]], now: float) -> bool:
    """Return whether Kubernetes pods of a run begin just now, and may miss what somebody has deleted."""
    if not is_alive(job) or is_suspended(job):
        return False
    ages = [now - (moment(pod["metadata"].get("creationTimestamp")) or now) for pod in pods]
    return any(BEGINS_S[0] <= age_s <= BEGINS_S[1] for age_s in ages)


class Tending:
    """Looks after the runs of one engine, with the rights of whoever looks."""

    def __init__(self, api: Api, cluster: ClusterWatch, patience: Patience) -> None:
        self._api, self._cluster, self._patience = api, cluster, patience

    def look(self, folders: Sequence[RunFolder]) -> None:
        """Do for each run what is due; one that another client changes just now is left to it."""
        jobs = self._cluster.jobs(folders)
        pods = self._cluster.pods(folders)
        for folder in folders:
            job = jobs.get(folder.id)
            if job is not None:
                self._tend(folder, job, pods.get(folder.id, []))
        for parent, site in {folder.asked.parent: site_of(folder) for folder in folders if folder.asked.parent}.items():
            points = [job for job in jobs.values() if (job["metadata"].get("labels") or {}).get(names.JOB) == parent]
            self._let_join(site, points)

    def _tend(self, folder: RunFolder, job: Mapping[str, Any], pods: Sequence[Mapping[str, Any]]) -> None:
        site = site_of(folder)
        now = time.time()
        if _may_lack(job, pods, now) and self._cluster.is_due(f"lacks/{job['metadata']['name']}", LACK_S):
            mend(self._api, site, folder, job, is_stuck=any(map(is_being_made, pods)))
        since = short_since(job, pods)
        if may_try_again(job, now):
            release(self._api, site, job, TOGETHER)
            self._cluster.forget()
        elif since is not None and now - since >= self._patience.short_s:
            self._give_back(site, job, now)

    def _give_back(self, site: Mapping[str, Any], job: Mapping[str, Any], now: float) -> None:
        """Suspend a run that holds nodes which others wait for; the oldest of the namespace keeps what it has."""
        name = job["metadata"]["name"]
        if not self._cluster.is_due(f"together/{name}") or is_oldest(job, self._rivals(site["namespace"])):
            return
        kind = BY_NAME[site["kind"]]
        change = json.dumps(give_back_patch(kind, job, now, self._patience.again_s)).encode()
        try:
            self._api.patch(path_of(kind.name, site["namespace"], name), change, JSON_PATCH)
        except ApiError as error:
            if error.status not in (GONE, CHANGED, CONFLICT):
                raise
        self._cluster.forget()

    def _rivals(self, namespace: str) -> list[dict[str, Any]]:
        """Return all runs of a namespace, of every kind that the cluster has."""
        rivals: list[dict[str, Any]] = []
        for kind in KINDS.values():
            try:
                rivals += self._api.items(path_of(kind.name, namespace), labelSelector=f"{names.OURS},{names.RUN}")[0]
            except ApiError as error:
                if error.status not in HIDDEN:
                    raise
        return rivals

    def _let_join(self, site: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> None:
        """Resume points of a sweep as far as they may run beside those that do, whoever looks at which of them."""
        at_once = site.get("parallel")
        if not at_once:
            return
        for job in may_join(points, at_once):
            release(self._api, site, job, PARALLEL)
            self._cluster.forget()
