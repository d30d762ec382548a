"""The operators that runs over several nodes need, as objects of our own making: the MPI Operator and JobSet.

Their kinds come from the same releases, without the words that explain each field: `definitions` has them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from podwright.clients.kubernetes import names

if TYPE_CHECKING:
    from podwright.bringup.plan.site import Site

Object = dict[str, Any]
Rules = tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...]
LABELS = {"app.kubernetes.io/managed-by": names.MANAGER}
MPI_IMAGE = "mpioperator/mpi-operator:0.8.0"
JOBSET_IMAGE = "jobset/jobset:v0.12.0"
_RBAC = "rbac.authorization.k8s.io"
_LOOK = ("get", "list", "watch")
_CHANGE = (*_LOOK, "create", "update", "patch", "delete")


def image_of(site: Site, path: str) -> str:
    """Return an image by the name that it has in the pod's registry."""
    return f"{site.registry}/{path}" if site.has("registry") else path


@cache
def definitions() -> str:
    """Return the kinds of both operators, a line for each."""
    folder = resources.files("podwright.bringup.plan.kubernetes") / "definitions"
    kinds = sorted((file for file in folder.iterdir() if file.name.endswith(".json")), key=lambda file: file.name)
    return "".join(file.read_text("utf-8") for file in kinds)


# What each operator does to what.
_MPI_RULES: Rules = (
    ("", ("configmaps", "secrets", "services"), (*_LOOK, "create", "update", "patch")),
    ("", ("pods",), _CHANGE),
    ("", ("events",), ("create", "patch")),
    ("batch", ("jobs",), _CHANGE),
    ("kubeflow.org", ("mpijobs", "mpijobs/finalizers", "mpijobs/status"), ("*",)),
    ("scheduling.k8s.io", ("priorityclasses",), _LOOK),
    ("scheduling.volcano.sh", ("podgroups",), ("*",)),
    ("coordination.k8s.io", ("leases",), ("*",)),
)
_JOBSET_RULES: Rules = (
    ("", ("nodes",), _LOOK),
    ("", ("persistentvolumeclaims",), (*_LOOK, "create")),
    ("", ("pods",), (*_LOOK, "update", "patch", "delete")),
    ("", ("services",), _CHANGE),
    ("", ("events",), ("create", "patch", "update", "watch")),
    ("events.k8s.io", ("events",), ("create", "patch", "update", "watch")),
    (
        "admissionregistration.k8s.io",
        ("mutatingwebhookconfigurations", "validatingwebhookconfigurations"),
        (*_LOOK, "update"),
    ),
    ("batch", ("jobs",), _CHANGE),
    ("batch", ("jobs/status",), ("get", "update", "patch")),
    ("jobset.x-k8s.io", ("jobsets",), _CHANGE),
    ("jobset.x-k8s.io", ("jobsets/finalizers",), ("update",)),
    ("jobset.x-k8s.io", ("jobsets/status",), ("get", "update", "patch")),
)
# In its own namespace alone: who leads, and the certificate that it makes for itself.
_JOBSET_OWN: Rules = (
    ("coordination.k8s.io", ("leases",), _CHANGE),
    ("", ("secrets",), (*_LOOK, "update")),
)


def mpi_operator(site: Site) -> list[Object]:
    """Return the MPI Operator."""
    name = "mpi-operator"
    container = {
        "name": name,
        "image": image_of(site, MPI_IMAGE),
        "args": ["-alsologtostderr", f"--lock-namespace={name}"],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "1Gi"}},
        "securityContext": _confined(),
    }
    here = _here(name, name)
    return [*_account(here, _MPI_RULES), _deployment(here, container)]


_JOBSET, _JOBSET_PLACE = "jobset-controller-manager", "jobset-system"
# The controller looks for these by name.
_SERVICE, _CERTIFICATE = "jobset-webhook-service", "jobset-webhook-server-cert"
_PORT, _HEALTH_PORT = 9443, 8081
_SETTINGS_FOLDER, _CERTIFICATE_FOLDER = "/etc/jobset", "/tmp/k8s-webhook-server/serving-certs"
_SETTINGS = {
    "apiVersion": "config.jobset.x-k8s.io/v1alpha1",
    "kind": "Configuration",
    "leaderElection": {"leaderElect": True},
    "internalCertManagement": {"enable": True},
    "metrics": {"bindAddress": "0"},
}


def jobset(site: Site) -> list[Object]:
    """Return JobSet's controller, which also answers the API server; its certificate it makes itself."""
    here = _here(_JOBSET, _JOBSET_PLACE)
    own_role = {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": here, "rules": _rules(_JOBSET_OWN)}
    settings = {"config.yaml": json.dumps(_SETTINGS, indent=1)}
    ports = [{"port": 443, "targetPort": _PORT}]
    return [
        *_account(here, _JOBSET_RULES),
        own_role,
        _binding("Role", here, here),
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": here, "data": settings},
        {"apiVersion": "v1", "kind": "Secret", "metadata": _here(_CERTIFICATE, _JOBSET_PLACE)},
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": _here(_SERVICE, _JOBSET_PLACE),
            "spec": {"selector": {"app": _JOBSET}, "ports": ports},
        },
        _deployment(here, _jobset_container(site), _jobset_volumes()),
        _webhooks("Mutating", "mutate", ("CREATE",)),
        _webhooks("Validating", "validate", ("CREATE", "UPDATE")),
    ]


def _jobset_container(site: Site) -> Object:
    mounts = {"settings": _SETTINGS_FOLDER, "certificate": _CERTIFICATE_FOLDER}
    return {
        "name": "manager",
        "image": image_of(site, JOBSET_IMAGE),
        "args": [f"--config={_SETTINGS_FOLDER}/config.yaml"],
        "ports": [{"name": "webhook", "containerPort": _PORT}],
        "livenessProbe": {"httpGet": {"path": "/healthz", "port": _HEALTH_PORT}, "initialDelaySeconds": 15},
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": _HEALTH_PORT}, "initialDelaySeconds": 5},
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "4Gi"}},
        "volumeMounts": [{"name": name, "mountPath": path, "readOnly": True} for name, path in mounts.items()],
        "securityContext": _confined(),
    }


def _jobset_volumes() -> list[Object]:
    return [
        {"name": "settings", "configMap": {"name": _JOBSET}},
        {"name": "certificate", "secret": {"secretName": _CERTIFICATE}},
    ]


def _webhooks(kind: str, action: str, operations: Sequence[str]) -> Object:
    """Return what the API server asks JobSet about: its own kind, and the Kubernetes pods of job sets alone."""
    member = {"matchExpressions": [{"key": "jobset.sigs.k8s.io/jobset-name", "operator": "Exists"}]}
    about_sets = _webhook(action, ("jobset.x-k8s.io", "v1alpha2", "jobset"), operations)
    about_pods = {**_webhook(action, ("", "v1", "pod"), ("CREATE",)), "objectSelector": member}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": f"{kind}WebhookConfiguration",
        "metadata": {"name": f"jobset-{kind.lower()}-webhook-configuration", "labels": LABELS},
        "webhooks": [about_sets, about_pods],
    }


def _webhook(action: str, asked: tuple[str, str, str], operations: Sequence[str]) -> Object:
    group, version, kind = asked
    path = f"/{action}-{group.replace('.', '-')}-{version}-{kind}"
    rule = {
        "apiGroups": [group],
        "apiVersions": [version],
        "operations": list(operations),
        "resources": [f"{kind}s"],
    }
    return {
        "name": f"{action[0]}{kind}.kb.io",
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "failurePolicy": "Fail",
        "clientConfig": {"service": {"name": _SERVICE, "namespace": _JOBSET_PLACE, "path": path}},
        "rules": [rule],
    }


def _here(name: str, namespace: str) -> Object:
    return {"name": name, "namespace": namespace, "labels": {**LABELS, "app": name}}


def _account(here: Mapping[str, Any], rules: Rules) -> list[Object]:
    """Return an operator's namespace, and its account with its rights in the whole cluster."""
    wide = {"name": here["name"], "labels": LABELS}
    return [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": here["namespace"], "labels": LABELS}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": dict(here)},
        {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": wide, "rules": _rules(rules)},
        _binding("ClusterRole", wide, here),
    ]


def _rules(rules: Rules) -> list[Object]:
    return [{"apiGroups": [group], "resources": list(kinds), "verbs": list(verbs)} for group, kinds, verbs in rules]


def _binding(role: str, metadata: Mapping[str, Any], account: Mapping[str, Any]) -> Object:
    """Return what gives an account the role of its own name."""
    name = account["name"]
    return {
        "apiVersion": f"{_RBAC}/v1",
        "kind": f"{role}Binding",
        "metadata": dict(metadata),
        "roleRef": {"apiGroup": _RBAC, "kind": role, "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": account["namespace"]}],
    }


def _deployment(metadata: Mapping[str, Any], container: Object, volumes: Sequence[Object] = ()) -> Object:
    app = {"app": metadata["name"]}
    spec: Object = {
        "serviceAccountName": metadata["name"],
        "securityContext": {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
        "tolerations": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}],
        "containers": [container],
    }
    if volumes:
        spec["volumes"] = list(volumes)
    template = {"metadata": {"labels": app}, "spec": spec}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": dict(metadata),
        "spec": {"replicas": 1, "selector": {"matchLabels": app}, "template": template},
    }


def _confined() -> Object:
    return {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": True}
