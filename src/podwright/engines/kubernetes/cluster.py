"""What Kubernetes says of many runs at once: one list or one watch for all of them, whoever asks."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from podwright.clients.kubernetes import names
from podwright.clients.kubernetes.api import UNKNOWN, UNKNOWN_USER, Api, ApiError, Away
from podwright.clients.kubernetes.kinds import BY_NAME
from podwright.clients.kubernetes.listing import Listing
from podwright.clients.kubernetes.paths import path_of
from podwright.engines.base import Status
from podwright.engines.kubernetes.claim_reader import site_of
from podwright.engines.kubernetes.states import BEING_MADE, is_being_made, is_launcher, seen
from podwright.runs import RunFolder
from podwright.runs.events import CancelAsked

COLLECT_S = 1.0
MAX_SINGLE = 4
"""Runs that are looked at one by one, before all are looked at together."""
EVENTS_S = 5.0
NOT_CREATED = "involvedObject.kind=Job,reason=FailedCreate"
NOT_MOUNTED = "involvedObject.kind=Pod,reason=FailedMount"
"""Events that say why Kubernetes pods could not be made, and why a container of one could not."""
LACKING = re.compile(r'(configmap|secret|persistentvolumeclaim) "[^"]+" not found')
Pods = dict[str, list[dict[str, Any]]]


class ClusterWatch:
    """What was heard last of a cluster's objects, for all runs of one engine."""

    def __init__(self, api: Api) -> None:
        self._api = api
        self._listings: dict[tuple[str, str], Listing] = {}
        self._known: dict[str, Status] = {}
        self._absent: set[str] = set()
        self._due: dict[str, float] = {}
        self._events: dict[tuple[str, str], tuple[float, list[dict[str, Any]]]] = {}

    def status(self, folders: Sequence[RunFolder]) -> dict[str, Status]:
        """Return what is known of each run; a server that is away has lost none, and nothing is called gone."""
        pods = self.pods(folders)
        statuses = {folder.id: self._seen(folder, folders, pods.get(folder.id, [])) for folder in folders}
        self._known |= {run_id: status for run_id, status in statuses.items() if not status.silent}
        return statuses

    def _seen(self, folder: RunFolder, folders: Sequence[RunFolder], pods: Sequence[Mapping[str, Any]]) -> Status:
        site = site_of(folder)
        listing = self._listing(site["kind"], site["namespace"], folders)
        try:
            job = listing.read().get(folder.id)
            if job is None and not listing.away:
                job = self._really(site, folder)
        except ApiError as error:
            if error.status == UNKNOWN_USER:
                return Status("there", silent=f"{UNKNOWN}: log in to it again")
            return Status("there", f"Kubernetes does not report: {error.message}")
        except Away as error:
            return Status("there", silent=str(error))
        if listing.away:
            return Status("there", silent=listing.away)
        if job is None:
            return _missing(folder)
        maker = BY_NAME[site["kind"]].job
        events: Iterable[dict[str, Any]] = ()
        if maker and not pods:
            events = self._events_of(site["namespace"], maker.format(run=folder.id))
        status = seen(job, pods, events)
        if status.reason == BEING_MADE and (lack := self._lack_of(site["namespace"], pods)):
            status = replace(status, reason=f"waits: its container cannot be made: {lack}")
        if status.unfinished:
            return status
        return replace(status, handle=f"{site['namespace']}/{folder.asked.job_id}")

    def _really(self, site: Mapping[str, Any], folder: RunFolder) -> dict[str, Any] | None:
        """Ask for a run by name: one that was made a moment ago may not have come through a watch yet."""
        if folder.id in self._absent:
            return None
        job = self._api.find(path_of(site["kind"], site["namespace"], folder.id))
        if job is None and folder.handle:
            self._absent.add(folder.id)
        return job

    def _listing(self, kind: str, namespace: str, folders: Sequence[RunFolder]) -> Listing:
        """Return the objects of one run to a command that looks at one; whoever looks at many asks for all."""
        path = path_of(kind, namespace)
        known = self._listings.get((path, names.OURS))
        if known is not None:
            return known
        selector = names.OURS
        parents = {folder.asked.job_id for folder in folders}
        singles = [listed for listed, _ in self._listings if listed == path]
        if len(parents) == 1 and len(singles) < MAX_SINGLE:
            selector = f"{names.JOB}={parents.pop()}"
        return self._listings.setdefault((path, selector), Listing(self._api, path, selector))

    def pods(self, folders: Sequence[RunFolder]) -> Pods:
        """Return the Kubernetes pods of each run that are nodes of it, in the order of their making."""
        pods: Pods = {folder.id: [] for folder in folders}
        for namespace in {site_of(folder)["namespace"] for folder in folders}:
            listing = self._listing("Pod", namespace, folders)
            try:
                items = listing.read().values()
            except ApiError:
                continue
            for pod in sorted(items, key=lambda pod: str(pod["metadata"].get("creationTimestamp"))):
                labels = pod["metadata"].get("labels") or {}
                if labels.get(names.RUN) in pods and not is_launcher(pod):
                    pods[labels[names.RUN]].append(pod)
        return pods

    def jobs(self, folders: Sequence[RunFolder]) -> dict[str, dict[str, Any]]:
        """Return the runs' own objects as they were seen last, by name."""
        jobs: dict[str, dict[str, Any]] = {}
        for kind, namespace in {(site_of(folder)["kind"], site_of(folder)["namespace"]) for folder in folders}:
            jobs |= self._listing(kind, namespace, folders).read()
        return jobs

    def _events_of(self, namespace: str, name: str, about: str = NOT_CREATED) -> list[dict[str, Any]]:
        """Return events about objects of this name: asked once for all runs."""
        asked_at, items = self._events.get((namespace, about), (-EVENTS_S, []))
        if time.monotonic() - asked_at >= EVENTS_S:
            try:
                items, _ = self._api.items(path_of("Event", namespace), fieldSelector=about)
            except (ApiError, Away):
                items = []
            self._events[namespace, about] = (time.monotonic(), items)
        return [item for item in items if item["involvedObject"]["name"] == name]

    def _lack_of(self, namespace: str, pods: Sequence[Mapping[str, Any]]) -> str:
        """Return what containers that are being made do not find; nothing where they only take their time."""
        for pod in filter(is_being_made, pods):
            for event in self._events_of(namespace, pod["metadata"]["name"], NOT_MOUNTED):
                if match := LACKING.search(str(event.get("message", ""))):
                    return match[0]
        return ""

    def has_claim(self, namespace: str, claim: str) -> bool:
        """Return whether a claim may still be there, and what runs wrote with it."""
        try:
            return self._api.find(path_of("PersistentVolumeClaim", namespace, claim)) is not None
        except (ApiError, Away):
            return True

    def forget(self) -> None:
        """Let the next look ask anew: something was changed just now."""
        for listing in self._listings.values():
            listing.forget()

    def has_begun(self, folder: RunFolder) -> bool:
        """Return whether a pilot of the run may have written something."""
        known = self._known.get(folder.id)
        return known is None or known.state != "waiting" or any(folder.record_path.glob("n*"))

    def is_over(self, folder: RunFolder) -> bool:
        """Return whether the run was gone at the last look."""
        return self._known.get(folder.id, Status("there")).state == "gone"

    def is_due(self, what: str, every_s: float = COLLECT_S) -> bool:
        """Return whether it was done last long enough ago; if so it counts as done now."""
        now = time.monotonic()
        if now - self._due.get(what, -every_s) < every_s:
            return False
        self._due[what] = now
        return True


def _missing(folder: RunFolder) -> Status:
    if any(isinstance(event, CancelAsked) for event in folder.client_events()):
        return Status("gone", "was cancelled", "cancelled")
    if not folder.handle:
        return Status("gone", "it was never submitted", unfinished=True)
    if time.time() - folder.asked.created_at < names.KEPT_S:
        return Status("gone", "deleted by somebody else", "lost")
    return Status("gone", "Kubernetes does not know it any more")
