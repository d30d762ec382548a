"""What Podwright renders is what real API servers take: every golden file, looked at by those who know the kinds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from podwright.clients.kubernetes.manifest import yaml_objects
from podwright.lab.kubernetes import KubernetesLab, binaries
from scripts.make_definitions import KINDS, file_of, line_of
from tests.paths import CASES as ALL_CASES
from tests.real.clients import kubectl, until
from tests.real.labs import ON_KUBERNETES

pytestmark = ON_KUBERNETES

CASES = ALL_CASES / "kubernetes"
FILES = sorted(path for path in CASES.rglob("*.yaml") if path.name not in ("workload.yaml", "pod.yaml"))
OPENSHIFT = ("build.openshift.io", "image.openshift.io", "route.openshift.io")
"""Kinds that only OpenShift serves: its own description of them stands for it."""
NOT_SERVED = ("trainer.kubeflow.org", "kueue.x-k8s.io", "scheduling.volcano.sh")
"""Kinds of operators that the lab has not."""


def objects(*groups: str, without: bool = False) -> list[Any]:
    """Gives the objects of all golden files, of some groups or of all others, each with a name for the test."""
    found = [(path, thing) for path in FILES for thing in yaml_objects(path.read_text())]
    return [
        pytest.param(thing, id=f"{path.relative_to(CASES).with_suffix('')}-{thing['kind']}-{thing['metadata']['name']}")
        for path, thing in found
        if (group_of(thing) in groups) != without
    ]


def group_of(thing: dict[str, Any]) -> str:
    group, slash, _ = str(thing["apiVersion"]).partition("/")
    return group if slash else ""


@pytest.fixture(scope="module")
def namespaces(kubernetes_cluster: KubernetesLab) -> Iterator[KubernetesLab]:
    """The namespaces that the golden files speak of, as an administrator made them."""
    things = [param.values[0] for param in objects(*OPENSHIFT, *NOT_SERVED, without=True)]
    there = {item["metadata"]["name"] for item in kubectl(kubernetes_cluster, "get", "namespaces", admin=True)["items"]}
    names = sorted({thing["metadata"].get("namespace", "default") for thing in things} - there)
    for name in names:
        done = kubernetes_cluster.kubectl("create", "namespace", name, admin=True)
        assert done.returncode == 0, done.stderr
    for name in names:
        account = ("get", "serviceaccount", "default", f"--namespace={name}")
        until(lambda: kubernetes_cluster.kubectl(*account, admin=True).returncode == 0, f"{name} has its account")  # noqa: B023
    yield kubernetes_cluster
    kubernetes_cluster.kubectl("delete", "namespace", *names, "--wait=false", admin=True)


def test_the_api_server_takes_every_object(namespaces: KubernetesLab) -> None:
    """All at once, as `kubectl` may be given them; each answer is the object as the server would keep it."""
    given = [param.values[0] for param in objects(*OPENSHIFT, *NOT_SERVED, without=True)]
    listed = {"apiVersion": "v1", "kind": "List", "items": given}
    words = ("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "--filename=-")
    answer = kubectl(namespaces, *words, admin=True, give=json.dumps(listed))
    taken = [(one["kind"], one["metadata"]["name"]) for one in answer["items"]]
    assert taken == [(one["kind"], one["metadata"]["name"]) for one in given]
    assert "SecurityContextConstraints" in {kind for kind, _ in taken}


@pytest.mark.parametrize("kind", KINDS)
def test_the_kinds_that_come_with_our_operators_are_those_of_their_releases(
    kubernetes_cluster: KubernetesLab, kind: str
) -> None:
    """The same but for the words that explain fields, and an API server takes them."""
    text = file_of(kind).read_text()
    assert text == line_of(kind), "python -m scripts.make_definitions writes it anew"
    words = ("apply", "--server-side", "--force-conflicts", "--dry-run=server", "--validate=strict", "--filename=-")
    answer = kubectl(kubernetes_cluster, *words, admin=True, give=text)
    assert answer["spec"]["names"] == json.loads(text)["spec"]["names"]


def strict(node: Any) -> Any:
    """Gives a schema in which a field that it does not name is an error, and what stands for two types is both."""
    if isinstance(node, list):
        return [strict(one) for one in node]
    if not isinstance(node, dict):
        return node
    made = {key: strict(value) for key, value in node.items()}
    if node.get("format") == "int-or-string":
        return {"type": ["integer", "string"]}
    if isinstance(node.get("properties"), dict) and node.get("type") == "object":
        made.setdefault("additionalProperties", False)
    return made


@pytest.fixture(scope="module")
def openshift(kubernetes_cluster: KubernetesLab) -> dict[str, Any]:
    """What OpenShift publishes of its kinds, which comes with the lab's programs."""
    file = binaries.cache() / "manifests" / "openapi.json"
    schema: dict[str, Any] = strict(json.loads(file.read_text()))
    return schema


def errors(schema: dict[str, Any], thing: dict[str, Any]) -> list[str]:
    """Gives what OpenShift's description of a kind has against an object."""
    group, version = str(thing["apiVersion"]).split("/")
    name = f"com.github.openshift.api.{group.partition('.')[0]}.{version}.{thing['kind']}"
    whole = {"$ref": f"#/definitions/{name}", "definitions": schema["definitions"]}
    return [f"{error.json_path}: {error.message}" for error in jsonschema.Draft4Validator(whole).iter_errors(thing)]


@pytest.mark.parametrize("thing", objects(*OPENSHIFT))
def test_openshift_knows_every_field(openshift: dict[str, Any], thing: dict[str, Any]) -> None:
    assert errors(openshift, thing) == []
    wrong = {**thing, "spec": {**thing["spec"], "hots": "x"}}
    assert errors(openshift, wrong) == ["$.spec: Additional properties are not allowed ('hots' was unexpected)"]
