"""The objects of a run, whole, for each kind of cluster; and what every release of Kubernetes says of them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from podwright import spec
from podwright.clients.kubernetes.manifest import yaml_objects, yaml_text
from podwright.engines.base import Request
from podwright.engines.kubernetes import KubernetesEngine
from podwright.engines.kubernetes.facts import facts_from_json
from podwright.engines.kubernetes.scripts import SCRIPTS
from podwright.engines.staged import StagedData
from tests.fixtures.inputs import inputs
from tests.paths import CASES
from tests.unit.engines.kubernetes.releases import RELEASES, validate

FOLDER = CASES / "kubernetes"
CASES = sorted(path.parent.name for path in FOLDER.glob("*/workload.yaml"))

KUBERNETES = "of Kubernetes"
FIELDS: dict[str, Any] = {
    # sigs.k8s.io/jobset v0.11, config/components/crd/bases
    "JobSet": {
        "ttlSecondsAfterFinished": int,
        "network": {"enableDNSHostnames": bool, "subdomain": str, "publishNotReadyAddresses": bool},
        "failurePolicy": {"maxRestarts": int},
        "replicatedJobs": {"name": str, "replicas": int, "template": KUBERNETES},
    },
    # volcano-sh/apis, pkg/apis/scheduling/v1beta1/types.go
    "PodGroup": {"minMember": int},
    # kubeflow/trainer v2.3, pkg/apis/trainer/v1alpha1/trainjob_types.go
    "TrainJob": {
        "runtimeRef": {"name": str},
        "trainer": {
            **{"image": str, "command": KUBERNETES, "env": KUBERNETES},
            **{"numNodes": int, "numProcPerNode": int, "resourcesPerNode": KUBERNETES},
        },
        "runtimePatches": {
            "manager": str,
            "trainingRuntimeSpec": {
                "template": {
                    "spec": {
                        "replicatedJobs": {
                            "name": str,
                            "template": {"spec": {"template": {"metadata": KUBERNETES, "spec": KUBERNETES}}},
                        }
                    }
                }
            },
        },
    },
}
"""What the objects of other makers may hold, by their own definitions, as far as a run uses them."""


def strangers(made: Any, known: Any, path: str = "spec") -> Iterator[str]:
    """Fields that are not in the definition, or are of another type."""
    if known == KUBERNETES:
        return
    if isinstance(known, type):
        if not isinstance(made, known):
            yield path
        return
    for row in made if isinstance(made, list) else [made]:
        for name, value in row.items():
            yield from strangers(value, known[name], f"{path}.{name}") if name in known else [f"{path}.{name}"]


def job_of_set(made: dict[str, Any]) -> list[dict[str, Any]]:
    template = made["spec"]["replicatedJobs"][0]["template"]
    return [{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "inner"}, **template}]


def pod_of_training(made: dict[str, Any]) -> list[dict[str, Any]]:
    """The Kubernetes pod that a training runtime with nothing in it becomes."""
    trainer = made["spec"]["trainer"]
    patch = made["spec"]["runtimePatches"][0]["trainingRuntimeSpec"]["template"]["spec"]["replicatedJobs"][0]
    template = patch["template"]["spec"]["template"]
    container = template["spec"]["containers"][0]
    container = {**container, **{name: trainer[name] for name in ("image", "command", "env")}}
    container["resources"] = trainer["resourcesPerNode"]
    metadata = {"name": "inner", **template["metadata"]}
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": metadata,
            "spec": {**template["spec"], "containers": [container]},
        }
    ]


WITHIN: dict[str, Callable[[dict[str, Any]], list[dict[str, Any]]]] = {
    "MPIJob": lambda made: [],
    "PodGroup": lambda made: [],
    "JobSet": job_of_set,
    "TrainJob": pod_of_training,
}


def staged(case: dict[str, Any]) -> dict[str, StagedData]:
    return {
        name: StagedData(given["manifest"].encode(), {}, given["size_bytes"], tuple(given.get("paths", ())))
        for name, given in case.items()
    }


@cache
def rendered(name: str) -> dict[str, str]:
    case = json.loads((FOLDER / name / "facts.json").read_text())
    workload, pod = spec.load_workload(FOLDER / name / "workload.yaml"), spec.load_pod(FOLDER / name / "pod.yaml")
    scheduler = pod.scheduler()
    assert isinstance(scheduler, spec.KubernetesScheduler)
    points = tuple(dict(point) for point in spec.points(workload) or [{}])
    data = inputs(case.get("data", {"frames": "frames"}))
    request = Request(
        case["run_id"], workload, pod, points, case.get("code"), data, staged=staged(case.get("staged", {}))
    )
    engine = KubernetesEngine(pod, scheduler)
    return engine.render(engine.plan(request, facts_from_json(case["facts"])))


OF_ENGINE = ("bind", "code", "command", "engine", "env", "folder", "hardware", "mpi", "scratch", "shared")
OF_DATA = ("data", "cache")
"""What of an order the engine decides; the rest is the workload's, and the same on every engine."""


def of_engine(path: str, text: str) -> str:
    """An order stands once, and only with what the engine decides."""
    if path.endswith("order.json"):
        order = json.loads(text)
        own = [*OF_ENGINE, *(OF_DATA if order["data"] else ())]
        return json.dumps({key: order[key] for key in own}, indent=2) + "\n"
    objects = yaml_objects(text) if path.endswith(".yaml") else []
    if not objects:
        return text
    order = objects[0]["data"].pop("order.json")
    assert order == rendered_order(path)
    return yaml_text(objects)


def rendered_order(path: str) -> str:
    run_id = path.split("/")[0]
    return next(files[one] for files in map(rendered, CASES) for one in files if one == f"{run_id}/job/order.json")


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, golden: Callable[[Path, str], None]) -> None:
    """The scripts are the same for every run, and are held once."""
    files = {path: of_engine(path, text) for path, text in rendered(name).items() if not path.endswith(".sh")}
    expected = FOLDER / name / "expected"
    for path, text in files.items():
        golden(expected / path, text)
    assert {str(path.relative_to(expected)) for path in expected.rglob("*") if path.is_file()} == set(files)


def test_scripts(golden: Callable[[Path, str], None]) -> None:
    for name, text in SCRIPTS.items():
        golden(FOLDER / "scripts" / name, text)
    assert {path.name for path in (FOLDER / "scripts").iterdir()} == set(SCRIPTS)


@pytest.mark.parametrize("shell", ["dash", "bash"])
@pytest.mark.parametrize("name", SCRIPTS)
def test_a_shell_can_read_it(name: str, shell: str) -> None:
    subprocess.run([shell, "-n"], input=SCRIPTS[name], text=True, check=True)


@pytest.mark.parametrize("release", RELEASES)
def test_every_object_is_what_this_release_takes(release: str) -> None:
    """What a release does not know by itself has a schema of its own maker; what is inside of it is Kubernetes'."""
    checked = 0
    for name in CASES:
        for path, text in rendered(name).items():
            for one in yaml_objects(text) if path.endswith(".yaml") else []:
                for known in WITHIN.get(one["kind"], lambda made: [made])(one):
                    validate(known, release)
                    checked += 1
    assert checked > 3 * len(CASES)


@pytest.mark.parametrize("kind", FIELDS)
def test_a_kind_of_another_maker_has_only_its_own_fields(kind: str) -> None:
    found = [
        one
        for name in CASES
        for path, text in rendered(name).items()
        if path.endswith(".yaml")
        for one in yaml_objects(text)
        if one["kind"] == kind
    ]
    assert found
    for one in found:
        assert list(strangers(one["spec"], FIELDS[kind])) == []
