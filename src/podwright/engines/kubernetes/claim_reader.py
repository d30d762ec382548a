"""A small container that reads a claim when no container of a run is left that could: it ends by itself."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import NoneType
from typing import Any

from podwright.clients.kubernetes import names
from podwright.clients.kubernetes.api import NOT_BEGUN, Api, ApiError, Away
from podwright.clients.kubernetes.confinement import confined
from podwright.clients.kubernetes.kinds import BY_NAME
from podwright.clients.kubernetes.paths import path_of
from podwright.engines.kubernetes.pod_template import BESIDE, gone_tolerations
from podwright.engines.kubernetes.states import waiting_words
from podwright.engines.kubernetes.submit import share, shared_maps
from podwright.engines.site import SiteLost, Types, read_site
from podwright.runs import RunFolder
from podwright.spec.problems import refuse, short

IDLE_S = 60
MAX_REPLACED = 3
"""Readers that are tried for one command."""
WAIT = f"""\
touch {names.WORK}/used
while [ $(($(date +%s) - $(stat -c %Y {names.WORK}/used))) -lt {IDLE_S} ]; do sleep 2; done
"""
TYPES: Types = {"namespace": str, "kind": str, "claim": (str, NoneType), "payload": dict, "code": list}
USE = f'touch {names.WORK}/used; exec "$@"'


def site_of(folder: RunFolder) -> dict[str, Any]:
    """Return what later clients need of a run."""
    return _site(folder.job_path)


@lru_cache(maxsize=4096)
def _site(path: Path) -> dict[str, Any]:
    site = read_site(path, TYPES)
    if site["kind"] not in BY_NAME:
        raise SiteLost(path, f"there is no kind {short(site['kind'])}")
    return site


class Reader:
    """One for each claim; clients share it. It is a Job, so that Kubernetes itself clears it away."""

    def __init__(self, api: Api, namespace: str, claim: str) -> None:
        self._api, self._namespace, self._claim = api, namespace, claim
        self._name = f"podwright-reader-{claim}"[:63].rstrip("-.")
        self._pod: Mapping[str, Any] | None = None
        self._avoided: set[str] = set()

    def run(self, folder: RunFolder, command: Sequence[str], given: bytes, timeout_s: float, start_s: float) -> bytes:
        """Run a command in the reader that was there a moment ago, else in one that is looked for or made.

        One whose node is gone is still called ready for a while: where nothing can be begun in it, another one is made.
        """
        marked = ["/bin/sh", "-c", USE, "podwright", *command]
        for _ in range(MAX_REPLACED):
            self._pod = self._pod or self._start(folder, start_s)
            path = path_of("Pod", self._namespace, self._pod["metadata"]["name"])
            try:
                return self._api.run(path, names.PILOT, marked, given, timeout_s)
            except (ApiError, Away) as error:
                lost, self._pod = self._pod, None
                if not self._is_out_of_reach(error):
                    raise
                self._replace(lost)
        raise refuse(f"the claim {self._claim} cannot be read: its reader cannot be reached", exit_code=3)

    def _is_out_of_reach(self, error: ApiError | Away) -> bool:
        """Return whether a reader, and not the server, could not be reached."""
        if isinstance(error, ApiError):
            return error.reason == NOT_BEGUN
        return not self._api.silence.is_on

    def _replace(self, pod: Mapping[str, Any]) -> None:
        """Remove a reader, and let the next one go elsewhere: the scheduler does not know yet that its node is gone."""
        self._avoided.add(str(pod["spec"].get("nodeName")))
        self._api.delete(path_of("Job", self._namespace, self._name))

    def _start(self, folder: RunFolder, start_s: float) -> Mapping[str, Any]:
        """Find the reader, or make it anew when it has ended or its node is gone; wait until it runs, or say why not.

        What is not ready yet is found further on by the next look.
        """
        deadline = time.monotonic() + start_s
        path, reason = path_of("Job", self._namespace, self._name), "its reader does not start"
        while time.monotonic() < deadline:
            job = self._api.find(path) or self._make(folder, path)
            pods = [pod for pod in self._pods() if _is_of(pod, job)]
            for pod in pods:
                if is_ready(pod):
                    return pod
                reason = waiting_words(pod) or reason
            if (_has_ended(job) or any(map(_is_cut_off, pods))) and not job["metadata"].get("deletionTimestamp"):
                self._api.delete(path)
            time.sleep(0.2)
        raise refuse(f"the claim {self._claim} cannot be read: {reason}", exit_code=3)

    def _pods(self) -> list[dict[str, Any]]:
        selector = f"batch.kubernetes.io/job-name={self._name}"
        return self._api.items(path_of("Pod", self._namespace), labelSelector=selector)[0]

    def _make(self, folder: RunFolder, path: str) -> dict[str, Any]:
        site = site_of(folder)
        job = self._api.apply(path, reader_job(site, self._name, sorted(self._avoided)))
        share(self._api, next(iter(shared_maps({**site, "code": []}, folder.job_path))), job, lambda ask: ask())
        return job


def _has_ended(job: Mapping[str, Any]) -> bool:
    conditions = job.get("status", {}).get("conditions", [])
    return any(condition["type"] in ("Complete", "Failed") for condition in conditions)


def is_ready(pod: Mapping[str, Any]) -> bool:
    """Return whether a command can be run in it: on a node that is gone it is still called running, but not ready."""
    conditions = pod["status"].get("conditions") or []
    ready = any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
    return ready and not pod["metadata"].get("deletionTimestamp")


def _is_of(pod: Mapping[str, Any], job: Mapping[str, Any]) -> bool:
    """Return whether a Kubernetes pod is this reader's: an earlier one's may stay for as long as its node is gone."""
    return any(owner["uid"] == job["metadata"].get("uid") for owner in pod["metadata"].get("ownerReferences") or [])


def _is_cut_off(pod: Mapping[str, Any]) -> bool:
    """Return whether it ran and is not ready any more, or is taken from a node that cannot say that it is gone."""
    return bool(pod["metadata"].get("deletionTimestamp")) or pod["status"].get("phase") == "Running"


def _elsewhere(nodes: Sequence[str]) -> dict[str, Any]:
    """Return the wish not to go to these nodes; where there is no other, one of them must do."""
    rule = {"key": "kubernetes.io/hostname", "operator": "NotIn", "values": list(nodes)}
    wish = {"weight": 100, "preference": {"matchExpressions": [rule]}}
    return {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [wish]}}


def reader_job(site: dict[str, Any], name: str, avoided: Sequence[str] = ()) -> dict[str, Any]:
    """Return the Job of a reader, as small as it can be; it had better not go to the nodes that are avoided."""
    context: dict[str, Any] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    if site["uid"] is not None:
        context |= {"runAsUser": site["uid"], "runAsGroup": site["uid"], "fsGroup": site["uid"]}
    items = [{"key": key, "path": key} for key in site["payload"]["files"]]
    volumes = [
        {"name": "job", "configMap": {"name": site["payload"]["name"], "items": items}},
        {"name": "work", "emptyDir": {"sizeLimit": "1Gi"}},
        {"name": "claim", "persistentVolumeClaim": {"claimName": site["claim"]}},
    ]
    places = {"job": names.JOB_FOLDER, "work": names.WORK, "claim": names.CLAIM}
    container = {
        "name": names.PILOT,
        "image": site["image"],
        "command": ["/bin/sh", "-c", WAIT],
        "resources": {"limits": {**BESIDE, "memory": "256Mi"}},
        "securityContext": confined([]),
        "volumeMounts": [{"name": volume, "mountPath": path} for volume, path in places.items()],
    }
    spec = {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": 3600,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 1,
        "tolerations": gone_tolerations(),
        "securityContext": context,
        "volumes": volumes,
        "containers": [container],
    }
    if avoided:
        spec["affinity"] = _elsewhere(avoided)
    labels = {"app.kubernetes.io/managed-by": names.MANAGER, "app.kubernetes.io/component": "reader"}
    metadata = {"name": name, "namespace": site["namespace"], "labels": labels}
    template = {"metadata": {"labels": labels}, "spec": spec}
    job = {"backoffLimit": 0, "ttlSecondsAfterFinished": IDLE_S, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": job}
