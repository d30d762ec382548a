"""The exporter on clusters that others made: a DaemonSet, since no bring-up of ours puts a unit on their nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from podwright import telemetry

EXPORTER, PORT, PORT_NAME = "podwright-exporter", 9835, "metrics"
IMAGE = "python:3.12-slim"
"""Any image with Python 3.8 or newer does: the program itself comes from a ConfigMap."""
_LABELS = {"app.kubernetes.io/name": EXPORTER}
_GPU_NODES = {"nvidia.com/gpu.present": "true"}
_WORDS = (
    *("python3", "/program/exporters.py", "gpu", "--host=$(NODE_NAME)", f"--listen=$(HOST_IP):{PORT}"),
    *("--certificate=/keys/tls.crt", "--key=/keys/tls.key", "--token=/keys/token"),
    "--kernel-log=/host/log/kern.log",
)


def exporter_objects(namespace: str, secret: str) -> Iterator[dict[str, Any]]:
    """Yield what runs the exporter on every node with GPUs; the secret has `tls.crt` and `tls.key` too."""
    about = {"name": EXPORTER, "namespace": namespace, "labels": _LABELS}
    cluster_wide = {"name": EXPORTER, "labels": _LABELS}
    yield {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": about}
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}
    yield {"apiVersion": _RIGHTS, "kind": "ClusterRole", "metadata": cluster_wide, "rules": [rule]}
    yield {
        "apiVersion": _RIGHTS,
        "kind": "ClusterRoleBinding",
        "metadata": cluster_wide,
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": EXPORTER},
        "subjects": [{"kind": "ServiceAccount", "name": EXPORTER, "namespace": namespace}],
    }
    program = {"exporters.py": telemetry.host_program()}
    yield {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": program}
    yield {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": about, "spec": _daemon_set(secret)}
    ports = [{"name": PORT_NAME, "port": PORT}]
    service = {"clusterIP": "None", "selector": _LABELS, "ports": ports}
    yield {"apiVersion": "v1", "kind": "Service", "metadata": about, "spec": service}


_RIGHTS = "rbac.authorization.k8s.io/v1"


def _daemon_set(secret: str) -> dict[str, Any]:
    return {
        "selector": {"matchLabels": _LABELS},
        "template": {"metadata": {"labels": _LABELS}, "spec": _node_spec(secret)},
    }


def _node_spec(secret: str) -> dict[str, Any]:
    """Return one node's: it sees the host's processes, as GPUs name their holders by process, and changes nothing."""
    mounts = (
        ("program", "/program", {"configMap": {"name": EXPORTER}}, True),
        ("keys", "/keys", {"secret": {"secretName": secret}}, True),
        ("log", "/host/log", {"hostPath": {"path": "/var/log", "type": "Directory"}}, True),
        ("words", "/run/podwright", {"hostPath": {"path": "/run/podwright", "type": "DirectoryOrCreate"}}, False),
    )
    container = {
        "name": "exporter",
        "image": IMAGE,
        "command": list(_WORDS),
        "env": [
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            {"name": "HOST_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.hostIP"}}},
            {"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"},
            {"name": "NVIDIA_DRIVER_CAPABILITIES", "value": "utility"},
        ],
        "ports": [{"name": PORT_NAME, "containerPort": PORT}],
        "resources": {"requests": {"cpu": "20m", "memory": "48Mi"}, "limits": {"memory": "192Mi"}},
        "securityContext": {
            "readOnlyRootFilesystem": True,
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"], "add": ["SYS_PTRACE", "DAC_READ_SEARCH"]},
        },
        "volumeMounts": [{"name": name, "mountPath": path, "readOnly": ro} for name, path, _, ro in mounts],
    }
    return {
        "serviceAccountName": EXPORTER,
        "hostPID": True,
        "hostNetwork": True,
        "runtimeClassName": "nvidia",
        "nodeSelector": _GPU_NODES,
        "tolerations": [{"operator": "Exists"}],
        "containers": [container],
        "volumes": [{"name": name, **source} for name, _, source, _ in mounts],
    }
