"""What the local engine writes for a run: whole files, and refusals to the letter."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podwright import spec
from podwright.engines.base import Request, check_abilities
from podwright.engines.local import LocalEngine
from podwright.pilot.protocol import read_order
from tests.fixtures.facts import local_facts
from tests.fixtures.inputs import inputs
from tests.paths import CASES

FOLDER = CASES / "engines" / "local"
CASES = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())
FACTS = {"python": "/usr/bin/python3", "path": '"$PATH"', "gpus": 0, "cpus": 2, "mpirun": False, "missing_data": []}


def rendered(name: str) -> dict[str, str]:
    case = json.loads((FOLDER / name / "facts.json").read_text())
    asked = {"code": None, "data": {}, "shared": True, **case["request"]}
    engine = LocalEngine(asked.pop("shared"))
    workload = spec.load_workload(FOLDER / name / "workload.yaml")
    points = tuple(dict(point) for point in spec.points(workload) or [{}])
    asked["data"] = inputs(asked["data"])
    request = Request(workload=workload, pod=None, points=points, **asked)
    check_abilities(engine, request)
    return engine.render(engine.plan(request, local_facts(case["target"])))


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, golden: Callable[[Path, str], None]) -> None:
    expected = FOLDER / name / "expected"
    files = rendered(name)
    for path, text in files.items():
        golden(expected / path, text)
    there = {str(path.relative_to(expected)) for path in expected.rglob("*") if path.is_file()}
    assert there == set(files)


@pytest.mark.parametrize("name", CASES)
def test_what_is_rendered_can_be_read(name: str, tmp_path: Path) -> None:
    for path, text in rendered(name).items():
        file = tmp_path / Path(path).name
        file.write_text(text)
        if path.endswith("order.json"):
            assert read_order(str(file)).text() == text
        else:
            subprocess.run(["/bin/sh", "-n", str(file)], check=True)


def refusal(tmp_path: Path, text: str, engine: LocalEngine | None = None, **facts: Any) -> str:
    path = tmp_path / "workload.yaml"
    path.write_text(f"name: toy\ncommand: train\n{text}\n")
    engine, workload = engine or LocalEngine(), spec.load_workload(path)
    points = tuple(dict(point) for point in spec.points(workload) or [{}])
    request = Request("toy-2222", workload, None, points, None, workload.inputs())
    with pytest.raises(spec.Refusal) as caught:
        checked(engine, request, {**FACTS, **facts})
    assert caught.value.exit_code == 2
    return str(caught.value).replace(str(tmp_path), "DIR")


def checked(engine: LocalEngine, request: Request, facts: dict[str, Any]) -> None:
    check_abilities(engine, request)
    engine.plan(request, local_facts(facts))


TOO_MUCH = "hint: run it on a pod with --on, or try it here all the same with --set local.oversubscribe=true"
REFUSALS = {
    "gpus": (
        "resources: {gpus: 4}",
        "DIR/workload.yaml:3:19: resources.gpus: 4 GPUs are asked for and this machine has 1\n\n"
        "hint: run it on a pod with --on, or try it here with --set resources.gpus=0",
    ),
    "gpus of several nodes": (
        "resources: {gpus: 1}\nnodes: 2",
        "DIR/workload.yaml:3:19: resources.gpus: 2 x 1 GPUs are asked for and this machine has 1\n\n"
        "hint: run it on a pod with --on, or try it here with --set resources.gpus=0",
    ),
    "more nodes than the machine carries": (
        "nodes: 9",
        f"DIR/workload.yaml:3:8: nodes: 9 nodes are asked for; this machine has 2 CPUs and carries 8\n\n{TOO_MUCH}",
    ),
    "more memory than the machine has": (
        "nodes: 3\nresources: {memory: 3GiB}",
        "DIR/workload.yaml:4:21: resources.memory: 9 GiB are asked for, by 3 nodes; this machine has 8 GiB\n\n"
        + TOO_MUCH,
    ),
    "mpi without mpirun": (
        "launcher: mpi",
        "DIR/workload.yaml:3:11: launcher: mpirun is not on this machine\n\n"
        "hint: apt-get install openmpi-bin, or load your site's MPI module",
    ),
    "data that is not there": (
        "data: {frames: /no/such/folder}",
        "DIR/workload.yaml:3:16: data.frames: /no/such/folder is not on this machine\n\n"
        "hint: an absolute path must be there already",
    ),
    "mig": (
        "resources: {gpus: 1, mig: 1g.10gb}",
        "DIR/workload.yaml:3:27: resources.mig: the local engine gives whole GPUs, not slices",
    ),
    "all that this machine lacks at once": (
        "resources: {gpus: 4}\nlauncher: mpi",
        "DIR/workload.yaml:3:19: resources.gpus: 4 GPUs are asked for and this machine has 1\n"
        "DIR/workload.yaml:4:11: launcher: mpirun is not on this machine\n\n"
        "hint: run it on a pod with --on, or try it here with --set resources.gpus=0\n"
        "hint: apt-get install openmpi-bin, or load your site's MPI module",
    ),
}


@pytest.mark.parametrize(("text", "words"), REFUSALS.values(), ids=REFUSALS.keys())
def test_refusal(tmp_path: Path, text: str, words: str) -> None:
    assert refusal(tmp_path, text, gpus=1, missing_data=["/no/such/folder"] if "frames" in text else []) == words


@pytest.mark.parametrize("nodes", [8, 9])
def test_a_machine_carries_more_where_it_is_asked_to(tmp_path: Path, nodes: int) -> None:
    path = tmp_path / "workload.yaml"
    path.write_text(f"name: toy\ncommand: train\nnodes: {nodes}\nlocal: {{oversubscribe: {str(nodes > 8).lower()}}}\n")
    request = Request("toy-2222", spec.load_workload(path), None, ({},), None, {})
    assert LocalEngine().plan(request, local_facts(FACTS)).parts[0].order.nodes == nodes


def test_retries_over_nodes_that_share_nothing_are_refused(tmp_path: Path) -> None:
    words = refusal(tmp_path, "nodes: 2\nretries: 1", LocalEngine(shared=False))
    assert words == (
        "DIR/workload.yaml:4:10: retries: retries over several nodes need a checkpoint folder that all of them share"
    )


def test_an_image_with_a_bare_runtime_is_no_trouble(tmp_path: Path) -> None:
    path = tmp_path / "workload.yaml"
    path.write_text("name: toy\ncommand: train\nimage: registry.example/train:1\nruntime: bare\n")
    request = Request("toy-2222", spec.load_workload(path), None, ({},), None, {})
    check_abilities(LocalEngine(), request)
    assert LocalEngine().plan(request, local_facts(FACTS)).parts[0].run_id == "toy-2222"
