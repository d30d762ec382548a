"""What OpenShift has of its own: who may lock memory, and how images are made there."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from podwright.clients.kubernetes import names
from podwright.clients.kubernetes.manifest import read_manifest

Object = dict[str, Any]
LABELS = {"app.kubernetes.io/managed-by": names.MANAGER}


def grant_objects(namespace: str) -> list[Object]:
    """Return what lets runs of this namespace use RDMA, for an administrator.

    It is `restricted-v2` as it is, with IPC_LOCK as the one thing that is added, and an account that may use it.
    """
    objects = read_manifest(files("podwright.bringup.kubernetes") / "openshift-rdma.yaml")
    for item in objects:
        if "namespace" in item["metadata"]:
            item["metadata"]["namespace"] = namespace
        for subject in item.get("subjects", ()):
            subject["namespace"] = namespace
    return objects


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
