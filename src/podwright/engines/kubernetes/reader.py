"""A small container that reads a claim when no container of a run is left that could: it ends by itself."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from podwright.engines.kubernetes import names
from podwright.engines.kubernetes.api import Api, ApiError
from podwright.engines.kubernetes.paths import path_of
from podwright.engines.kubernetes.plan import SITE
from podwright.engines.kubernetes.submit import lasting, share, shared_maps
from podwright.engines.kubernetes.template import BESIDE, confined
from podwright.engines.kubernetes.words import waiting_words
from podwright.runs import RunFolder
from podwright.spec.problems import refuse

START_S = 120.0
IDLE_S = 60
WAIT = f"""\
touch {names.WORK}/used
while [ $(($(date +%s) - $(stat -c %Y {names.WORK}/used))) -lt {IDLE_S} ]; do sleep 2; done
"""
USE = f'touch {names.WORK}/used; exec "$@"'


def site_of(folder: RunFolder) -> dict[str, Any]:
    """Of a point it lies in the parent's folder."""
    return _site(folder.path.parent / (folder.asked.parent or folder.id) / SITE)


@lru_cache(maxsize=4096)
def _site(path: Path) -> dict[str, Any]:
    """Written once, before anything starts."""
    loaded: dict[str, Any] = json.loads(path.read_text())
    return loaded


class Reader:
    """One for each claim; clients share it."""

    def __init__(self, api: Api, namespace: str, claim: str) -> None:
        self._api, self._namespace, self._claim = api, namespace, claim
        self._name = f"podwright-reader-{claim}"[:63].rstrip("-.")

    @property
    def _path(self) -> str:
        return path_of("Pod", self._namespace, self._name)

    def run(self, command: Sequence[str], given: bytes, timeout_s: float) -> bytes:
        words = ["/bin/sh", "-c", USE, "podwright", *command]
        return self._api.run(self._path, names.PILOT, words, given, timeout_s)

    def start(self, folder: RunFolder) -> None:
        """Made anew when the last one has ended; waits until it runs, and says why it does not."""
        deadline = time.monotonic() + START_S
        words = ""
        while time.monotonic() < deadline:
            pod = lasting(lambda: self._api.find(self._path)) or self._make(folder)
            phase = pod["status"].get("phase")
            leaves = pod["metadata"].get("deletionTimestamp")
            if phase == "Running" and not leaves:
                return
            if phase in ("Succeeded", "Failed") and not leaves:
                lasting(lambda: self._api.delete(self._path))
            words = waiting_words(pod) if phase == "Pending" else words
            time.sleep(0.2)
        raise refuse(f"the claim {self._claim} cannot be read: {words or 'its reader does not start'}", exit_code=3)

    def _make(self, folder: RunFolder) -> dict[str, Any]:
        site = site_of(folder)
        try:
            pod = lasting(lambda: self._api.apply(self._path, reader_pod(site, self._name)))
        except ApiError:
            pod = self._api.get(self._path)
        parent = folder.path.parent / (folder.asked.parent or folder.id)
        share(self._api, next(iter(shared_maps({**site, "code": []}, parent))), pod)
        return pod


def reader_pod(site: dict[str, Any], name: str) -> dict[str, Any]:
    context: dict[str, Any] = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    if site["uid"] is not None:
        context |= {"runAsUser": site["uid"], "runAsGroup": site["uid"], "fsGroup": site["uid"]}
    items = [{"key": key, "path": key} for key in site["payload"]["files"]]
    volumes = [
        {"name": "job", "configMap": {"name": site["payload"]["name"], "items": items}},
        {"name": "work", "emptyDir": {}},
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
        "securityContext": context,
        "volumes": volumes,
        "containers": [container],
    }
    labels = {"app.kubernetes.io/managed-by": names.MANAGER, "app.kubernetes.io/component": "reader"}
    metadata = {"name": name, "namespace": site["namespace"], "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
