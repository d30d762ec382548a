"""The Kubernetes pods of this node, asked of the API: with the exporter's own account, or as the node's kubelet."""

from __future__ import annotations

import base64
import json
import os
import re
import socket
import ssl
import time
import urllib.request
from typing import Callable, Dict, NamedTuple, Optional

from ...pilot.sensors.proc import Scope
from ...pilot.system.plain_files import read_text
from .jobs import JobRecord, run_name

_TIMEOUT_S = 10.0
_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_KUBELET = "/etc/kubernetes/kubelet.conf"
_RUN_LABEL = "podwright.dev/run"


class ApiAccess(NamedTuple):
    """Where the API is, who the node is there, and by what it knows who asks."""

    server: str
    node: str
    authority: str
    token: str = ""
    certificate: str = ""
    key: str = ""

    def fetch(self) -> str:
        """Return the list of the node's Kubernetes pods; an OSError where there is no answer."""
        where = "%s/api/v1/pods?fieldSelector=spec.nodeName=%s" % (self.server, self.node)
        fields = {"Authorization": "Bearer " + self.token} if self.token else {}
        context = ssl.create_default_context(cadata=self.authority)
        if self.certificate:
            context.load_cert_chain(self.certificate, self.key)
        asked = urllib.request.Request(where, headers=fields)
        with urllib.request.urlopen(asked, timeout=_TIMEOUT_S, context=context) as answer:
            return str(answer.read().decode("utf-8", "replace"))


def access_of(scope: Scope) -> Optional[ApiAccess]:
    """Return how this host asks the API: in a container by its account, on a node as its kubelet; else not at all."""
    host, node = os.environ.get("KUBERNETES_SERVICE_HOST"), os.environ.get("NODE_NAME")
    if host and node:
        server = "https://%s:%s" % (host, os.environ.get("KUBERNETES_SERVICE_PORT", "443"))
        authority, token = (read_text("%s/%s" % (_ACCOUNT, name)).strip() for name in ("ca.crt", "token"))
        return ApiAccess(server, node, authority, token)
    return _of_kubelet(read_text(scope.path(_KUBELET)))


def _of_kubelet(text: str) -> Optional[ApiAccess]:
    """Return the kubelet's own access, as kubeadm writes it: the API shows it the pods of its own node alone."""
    found = dict(
        re.findall(r"^\s*(server|certificate-authority-data|client-certificate|client-key):\s*(\S+)", text, re.M)
    )
    if len(found) < 4:
        return None
    authority = base64.b64decode(found["certificate-authority-data"]).decode()
    node = socket.gethostname().lower()
    return ApiAccess(found["server"], node, authority, "", found["client-certificate"], found["client-key"])


class KubernetesPods:
    """The Kubernetes pods of this node; one that is not known is asked for, but not all the time."""

    def __init__(self, fetch: Callable[[], str]) -> None:
        self._fetch = fetch
        self._asked = float("-inf")
        self._jobs: Dict[str, JobRecord] = {}

    def __call__(self, uid: str) -> Optional[JobRecord]:
        if uid not in self._jobs and time.monotonic() - self._asked > _TIMEOUT_S:
            self._asked = time.monotonic()
            try:
                self._jobs = parse_pods(self._fetch())
            except (OSError, ValueError):
                return None
        return self._jobs.get(uid)


def pods_of_node(scope: Scope) -> str:
    """Return the list of this node's Kubernetes pods; an OSError outside a cluster."""
    access = access_of(scope)
    if access is None:
        raise OSError("this host is in no cluster of Kubernetes")
    return access.fetch()


def parse_pods(text: str) -> Dict[str, JobRecord]:
    """Return the job of each Kubernetes pod of a list, by its uid: the namespace stands for its user."""
    jobs = {}
    for item in json.loads(text)["items"]:
        about = item["metadata"]
        labels = about.get("labels") or {}
        place = "%s/%s" % (about["namespace"], about["name"])
        jobs[about["uid"]] = JobRecord(about["namespace"], place, run_name(labels.get(_RUN_LABEL, "")))
    return jobs
