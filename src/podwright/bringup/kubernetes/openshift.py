"""What OpenShift has of its own: who may lock memory, and how images are made there."""

from __future__ import annotations

from typing import Any

from podwright.clients.kubernetes import names
from podwright.clients.kubernetes.names import ACCOUNT

Object = dict[str, Any]
CONSTRAINTS = "podwright-rdma"
LABELS = {"app.kubernetes.io/managed-by": names.MANAGER}


def grant_objects(namespace: str) -> list[Object]:
    """Return what lets runs of this namespace use RDMA, for an administrator."""
    return [constraints(), account(namespace), *binding(namespace)]


def constraints() -> Object:
    """Return `restricted-v2` as it is, with IPC_LOCK as the one thing that is added."""
    return {
        "apiVersion": "security.openshift.io/v1",
        "kind": "SecurityContextConstraints",
        "metadata": {"name": CONSTRAINTS, "labels": LABELS},
        "allowHostDirVolumePlugin": False,
        "allowHostIPC": False,
        "allowHostNetwork": False,
        "allowHostPID": False,
        "allowHostPorts": False,
        "allowPrivilegeEscalation": False,
        "allowPrivilegedContainer": False,
        "allowedCapabilities": ["NET_BIND_SERVICE", "IPC_LOCK"],
        "defaultAddCapabilities": [],
        "requiredDropCapabilities": ["ALL"],
        "readOnlyRootFilesystem": False,
        "fsGroup": {"type": "MustRunAs"},
        "runAsUser": {"type": "MustRunAsRange"},
        "seLinuxContext": {"type": "MustRunAs"},
        "supplementalGroups": {"type": "RunAsAny"},
        "seccompProfiles": ["runtime/default"],
        "users": [],
        "groups": [],
        "priority": None,
        "volumes": [
            "configMap",
            "csi",
            "downwardAPI",
            "emptyDir",
            "ephemeral",
            "persistentVolumeClaim",
            "projected",
            "secret",
        ],
    }


def account(namespace: str) -> Object:
    metadata = {"name": ACCOUNT, "namespace": namespace, "labels": LABELS}
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata, "automountServiceAccountToken": False}


def binding(namespace: str) -> list[Object]:
    group = "rbac.authorization.k8s.io"
    metadata = {"name": f"use-{CONSTRAINTS}", "namespace": namespace, "labels": LABELS}
    rule = {
        "apiGroups": ["security.openshift.io"],
        "resources": ["securitycontextconstraints"],
        "resourceNames": [CONSTRAINTS],
        "verbs": ["use"],
    }
    role = {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]}
    bound = {
        "apiVersion": f"{group}/v1",
        "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": group, "kind": "Role", "name": metadata["name"]},
        "subjects": [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": namespace}],
    }
    return [role, bound]


def build_objects(name: str, namespace: str, source: Object, tag: str = "latest") -> list[Object]:
    """Return an image stream, and how OpenShift makes its image from one of the sources below."""
    metadata = {"name": name, "namespace": namespace, "labels": LABELS}
    stream = {
        "apiVersion": "image.openshift.io/v1",
        "kind": "ImageStream",
        "metadata": metadata,
        "spec": {"lookupPolicy": {"local": True}},
    }
    build = {
        "apiVersion": "build.openshift.io/v1",
        "kind": "BuildConfig",
        "metadata": metadata,
        "spec": {
            "source": source,
            "strategy": {"type": "Docker", "dockerStrategy": {}},
            "output": {"to": {"kind": "ImageStreamTag", "name": f"{name}:{tag}"}},
            "runPolicy": "Serial",
            "successfulBuildsHistoryLimit": 3,
            "failedBuildsHistoryLimit": 3,
        },
    }
    return [stream, build]


def git_source(uri: str, ref: str | None = None, folder: str | None = None) -> Object:
    """Return files of a git repository as the source of a build."""
    git = {"uri": uri}
    if ref:
        git["ref"] = ref
    source: Object = {"type": "Git", "git": git}
    if folder:
        source["contextDir"] = folder
    return source


def binary_source() -> Object:
    """Return what the client sends when it starts the build as its source."""
    return {"type": "Binary", "binary": {}}


def inline_source(containerfile: str) -> Object:
    return {"type": "Dockerfile", "dockerfile": containerfile}


def gpu_test(image: str, namespace: str, resources: dict[str, str | int]) -> Object:
    """Return a Kubernetes pod that shows what it sees of GPUs and RDMA devices, as an ordinary run would."""
    from podwright.clients.kubernetes.confinement import confined

    look = "id; nvidia-smi -L; ls -l /dev/infiniband 2>/dev/null; ulimit -l"
    rdma = any(name.startswith("rdma/") for name in resources)
    container = {
        "name": "test",
        "image": image,
        "command": ["/bin/sh", "-c", look],
        "resources": {"limits": dict(resources)},
        "securityContext": confined(["IPC_LOCK"] if rdma else []),
    }
    spec = {
        "restartPolicy": "Never",
        "activeDeadlineSeconds": 600,
        "automountServiceAccountToken": False,
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [container],
    }
    metadata = {"name": "podwright-gpu-test", "namespace": namespace, "labels": LABELS}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
