"""The objects of a run, whole, for each kind of cluster; and what every release of Kubernetes says of them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import kubernetes_validate
import pytest

from podwright import spec
from podwright.engines.base import Request
from podwright.engines.kubernetes import KubernetesEngine
from podwright.engines.kubernetes.manifest import yaml_objects, yaml_text
from podwright.engines.kubernetes.scripts import SCRIPTS

FOLDER = Path(__file__).parents[3] / "cases" / "kubernetes"
CASES = sorted(path.parent.name for path in FOLDER.glob("*/workload.yaml"))
RELEASES = [f"1.{minor}" for minor in range(28, int(kubernetes_validate.latest_version().split(".")[1]) + 1)]


@cache
def rendered(name: str) -> dict[str, str]:
    case = json.loads((FOLDER / name / "facts.json").read_text())
    workload, pod = spec.load_workload(FOLDER / name / "workload.yaml"), spec.load_pod(FOLDER / name / "pod.yaml")
    scheduler = pod.scheduler()
    assert isinstance(scheduler, spec.KubernetesScheduler)
    points = tuple(dict(point) for point in spec.points(workload) or [{}])
    request = Request(case["run_id"], workload, pod, points, case.get("code"), case.get("data", {"frames": "frames"}))
    engine = KubernetesEngine(pod, scheduler)
    return engine.render(engine.plan(request, case["facts"]))


OF_ENGINE = ("bind", "code", "command", "engine", "env", "folder", "hardware", "mpi", "scratch", "shared")
"""What of an order the engine decides; the rest is the workload's, and the same on every engine."""


def of_engine(path: str, text: str) -> str:
    """An order stands once, and only with what the engine decides."""
    if path.endswith("order.json"):
        order = json.loads(text)
        return json.dumps({key: order[key] for key in OF_ENGINE}, indent=2) + "\n"
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


@pytest.fixture
def schemas_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release's definitions are several megabytes, and the validator reads them for every object."""
    monkeypatch.setattr(kubernetes_validate.utils, "schema_contents", cache(kubernetes_validate.utils.schema_contents))


@pytest.mark.usefixtures("schemas_read_once")
@pytest.mark.parametrize("release", RELEASES)
def test_every_object_is_what_this_release_takes(release: str) -> None:
    """What a release does not know by itself (an MPIJob) has a schema of its own maker."""
    checked = 0
    for name in CASES:
        for path, text in rendered(name).items():
            for one in yaml_objects(text) if path.endswith(".yaml") else []:
                if one["kind"] != "MPIJob":
                    kubernetes_validate.validate(one, release, strict=True)
                    checked += 1
    assert checked > 3 * len(CASES)
