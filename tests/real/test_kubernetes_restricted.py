"""What Podwright renders, in a namespace that enforces Pod Security `restricted`: taken, or left with a reason."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from podwright.lab.kubernetes import KubernetesLab
from tests.real.clients import until
from tests.real.labs import ON_KUBERNETES
from tests.real.test_kubernetes_objects import CASES, FILES, yaml_objects

pytestmark = ON_KUBERNETES
NAMESPACE = "strictest"
ORTHOGONAL = ("serviceAccountName", "priorityClassName", "runtimeClassName")
"""Names of objects that this cluster has not, which says nothing of what a container may."""
_RDMA = "RDMA needs IPC_LOCK: `pod grant --rdma` makes a namespace that lets it, elsewhere a run goes without"
REASONS = {
    "addons-rdma-shared-device-plugin": "hands out a node's devices, in kube-system: it is given the node's folders",
    "dgx-100-pretrain-2222": _RDMA,
    "dgx1-16x1-biggan-k3x9-Worker": _RDMA,
    "dgx1-2x8-openshift-biggan-p1p1-Worker": _RDMA,
    "openshift-podwright-gpu-test": "on OpenShift, whose constraints of the account let it have IPC_LOCK",
}


def templates(node: Any, name: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what makes Kubernetes pods of an object: what has containers, with the last name on the way."""
    if isinstance(node, list):
        for one in node:
            yield from templates(one, name)
    if not isinstance(node, dict):
        return
    if isinstance(node.get("spec"), dict) and "containers" in node["spec"]:
        yield name, node
        return
    for key, value in node.items():
        yield from templates(value, name if key in ("template", "spec") else key)


def rendered() -> dict[str, dict[str, Any]]:
    """Return all Kubernetes pods of all golden files, as they would be made in the namespace."""
    made = {}
    for path in FILES:
        for thing in yaml_objects(path.read_text()):
            for part, template in templates(thing):
                case = str(path.relative_to(CASES)).partition("/")[0]
                name = "-".join(word for word in (case, thing["metadata"]["name"], part) if word)
                kept = {key: value for key, value in template["spec"].items() if key not in ORTHOGONAL}
                # A patch of a TrainJob's runtime leaves the image to it.
                containers = [{"image": "registry.example/x:1", **one} for one in kept["containers"]]
                spec = {"restartPolicy": "Never", **kept, "containers": containers}
                made[name] = {
                    "apiVersion": "v1",
                    "kind": "Pod",
                    "metadata": {"name": name.lower(), "namespace": NAMESPACE},
                    "spec": spec,
                }
    return made


@pytest.fixture(scope="module")
def strictest(kubernetes_cluster: KubernetesLab) -> Iterator[KubernetesLab]:
    lab = kubernetes_cluster
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    space = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": labels}}
    done = lab.kubectl("apply", "--filename=-", admin=True, give=json.dumps(space))
    assert done.returncode == 0, done.stderr
    account = ("get", "serviceaccount", "default", f"--namespace={NAMESPACE}")
    until(lambda: lab.kubectl(*account, admin=True).returncode == 0, "the namespace has its account")
    yield lab
    lab.kubectl("delete", "namespace", NAMESPACE, "--wait=false", admin=True)


def forbidden(lab: KubernetesLab, things: Mapping[str, dict[str, Any]]) -> dict[str, str]:
    """Return what the API server has against each thing."""
    listed = {"apiVersion": "v1", "kind": "List", "items": list(things.values())}
    words = ("create", "--dry-run=server", "--filename=-", "--output=name")
    done = lab.kubectl(*words, admin=True, give=json.dumps(listed))
    taken = {line.removeprefix("pod/") for line in done.stdout.split()}
    left = [name for name in things if name.lower() not in taken]
    return {name: next(line for line in done.stderr.splitlines() if f'"{name.lower()}"' in line) for name in left}


def test_every_container_of_ours_is_let_or_has_its_reason(strictest: KubernetesLab) -> None:
    things = rendered()
    said = forbidden(strictest, things)
    assert said.keys() == REASONS.keys(), said
    for name, why in said.items():
        assert 'violates PodSecurity "restricted' in why, (name, why)
    assert len(things) > 15


def test_a_container_that_asks_for_more_is_refused_by_name(strictest: KubernetesLab) -> None:
    """So that the test above says something."""
    things = {name: thing for name, thing in rendered().items() if name not in REASONS}
    for thing in things.values():
        thing["spec"]["hostNetwork"] = True
    assert forbidden(strictest, things).keys() == things.keys()
