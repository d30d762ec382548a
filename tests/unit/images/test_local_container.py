"""How the local engine starts a container: whole files, and refusals to the letter."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from podwright import launch, spec
from podwright.engines.base import Job, Request
from podwright.engines.local import LocalEngine
from podwright.runs import Home
from tests.fixtures.facts import local_facts
from tests.fixtures.fake_engine import FakeEngine
from tests.fixtures.inputs import inputs
from tests.paths import CASES

FOLDER = CASES / "images" / "local"
CASES = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())
MACHINE = {"python": "/usr/bin/python3", "path": '"$PATH"', "gpus": 8, "cpus": 2, "mpirun": False, "missing_data": []}
FACTS = json.loads((FOLDER / "two-nodes" / "facts.json").read_text())


def request_of(file: Path) -> Request:
    workload = spec.load_workload(file)
    return Request("toy-2222", workload, None, ({},), None, inputs(workload.data))


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, golden: Callable[[Path, str], None], tmp_path: Path) -> None:
    facts = {**MACHINE, **json.loads((FOLDER / name / "facts.json").read_text())}
    files = LocalEngine().render(LocalEngine().plan(request_of(FOLDER / name / "workload.yaml"), local_facts(facts)))
    assert {Path(path).name for path in files} == {"order.json", "node.sh", "inside.sh", "start.sh"}
    golden(FOLDER / name / "expected" / "node.sh", files["toy-2222/job/node.sh"])
    file = tmp_path / "node.sh"
    file.write_text(files["toy-2222/job/node.sh"])
    subprocess.run(["/bin/sh", "-n", str(file)], check=True)


def refusal(folder: Path, text: str, **facts: Any) -> str:
    file = folder / "workload.yaml"
    file.write_text(f"name: toy\ncommand: train\n{text}\n")
    with pytest.raises(spec.Refusal) as caught:
        LocalEngine().plan(request_of(file), local_facts({**MACHINE, **FACTS, **facts}))
    return re.sub(r"^\S+workload.yaml(:\d+:\d+)?: ", "", str(caught.value))


IMAGE = "image: registry.example/train:1"


def test_without_podman(tmp_path: Path) -> None:
    assert refusal(tmp_path, IMAGE, podman=False, image=None) == (
        "runtime: containers on this machine need podman, which is not there\n\n"
        "hint: apt-get install podman runc, or set `runtime: bare` to run without the image"
    )


def test_without_the_image(tmp_path: Path) -> None:
    assert refusal(tmp_path, IMAGE, image=None) == (
        "image: registry.example/train:1 is not on this machine\n\nhint: podman pull registry.example/train:1"
    )
    assert refusal(tmp_path, "build: {base: localhost/base}", image=None) == (
        "build: its image is not built yet\n\nhint: podwright image build workload.yaml"
    )


def test_gpus_that_podman_does_not_know(tmp_path: Path) -> None:
    assert refusal(tmp_path, f"{IMAGE}\nresources: {{gpus: 1}}").startswith(
        "resources.gpus: podman does not know the GPUs of this machine\n\nhint: nvidia-ctk cdi generate"
    )


def test_a_path_that_podman_would_split(tmp_path: Path) -> None:
    words = (
        "checkpoint: a path with `:` cannot be mounted into a container\n\nhint: give it another name, or a link to it"
    )
    assert refusal(tmp_path, f'{IMAGE}\ncheckpoint: "/a:b"') == words


def test_mpirun_is_the_images_own_affair(tmp_path: Path) -> None:
    file = tmp_path / "workload.yaml"
    file.write_text(f"name: toy\ncommand: train\nlauncher: mpi\n{IMAGE}\n")
    assert LocalEngine().plan(request_of(file), local_facts({**MACHINE, **FACTS})).parts


class Imaged(FakeEngine):
    """Found this under the image's name."""

    def __init__(self, image: dict[str, Any] | None) -> None:
        super().__init__()
        self._image = image

    def plan(self, request: Request, facts: None) -> Job:
        return replace(super().plan(request, facts), image=self._image)


def test_the_record_names_the_image_that_was_found(tmp_path: Path) -> None:
    """Also where the engine found nothing out: then the name alone, with the digest that it may hold."""
    file = tmp_path / "workload.yaml"
    file.write_text(f"name: toy\ncommand: train\n{IMAGE}@sha256:55\n")
    asked = []
    for image in (FACTS["image"], None):
        session = launch.Session(Home.open(tmp_path / "home"), engines={"local": lambda image=image: Imaged(image)})
        asked.append(launch.start(session, spec.load_workload(file)).folder.asked.image)
    assert asked == [FACTS["image"], {"name": "registry.example/train:1", "digest": "sha256:55"}]
