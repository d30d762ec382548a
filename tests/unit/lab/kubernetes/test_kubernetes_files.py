"""What a Kubernetes lab writes and starts, held whole; and what it refuses."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podwright.clients.kubernetes.names import UNIT
from podwright.design.topology import UNIT_LABEL
from podwright.lab import scripts
from podwright.lab.kubernetes import binaries, configs, objects, programs, shape
from podwright.lab.kubernetes.shape import KubernetesLabShape, LabPorts
from podwright.spec import Refusal, load_pod
from tests.paths import CASES as ALL_CASES

CASES = ALL_CASES / "lab_kubernetes"
SHAPE = KubernetesLabShape(nodes=2, virtual_nodes=140)
PORTS = LabPorts(api=20001, registry=20002)
PARTS = {name: Path("/parts") / name for name in binaries.PROGRAMS}
Golden = Callable[[Path, str], None]


def lines(commands: programs.Commands) -> str:
    return "".join(f"{name}:\n  " + "\n  ".join(map(shlex.quote, line)) + "\n" for name, line in commands.items())


def test_the_machine_script(golden: Golden) -> None:
    golden(CASES / "machine.sh", scripts.machine_script(configs.node_lines(SHAPE)))
    subprocess.run(["sh", "-n", CASES / "machine.sh"], check=True)


def test_files_of_the_control_machine(golden: Golden) -> None:
    golden(CASES / "Corefile", configs.corefile())
    golden(CASES / "registry.yml", configs.registry())
    golden(CASES / "hosts.toml", configs.registry_hosts())
    golden(CASES / "jobset.yaml", configs.jobset())
    golden(CASES / "scheduler.yaml", configs.scheduler())
    golden(CASES / "pod-complete.yaml", configs.ending("spec:\n  selector: {}\n  next:\n    statusTemplate: |\n"))


def test_files_of_a_node(golden: Golden) -> None:
    golden(CASES / "n2" / "containerd.toml", configs.containerd(PORTS, "n2"))
    golden(CASES / "n2" / "kubelet.yaml", configs.kubelet("n2", "podwright-0a1b2c3d"))
    golden(CASES / "n2" / "10-lab.conflist", configs.network(SHAPE, "n2"))


def test_command_lines(golden: Golden) -> None:
    golden(CASES / "store.txt", lines(programs.store(PARTS)))
    golden(CASES / "control.txt", lines(programs.control(SHAPE, PARTS, "/env/bin/python")))
    golden(CASES / "operators.txt", lines(programs.operators(PARTS)))
    golden(CASES / "n2" / "programs.txt", lines(programs.node(SHAPE, PARTS, "n2")))


def test_no_virtual_nodes_no_player() -> None:
    assert "kwok" not in programs.control(KubernetesLabShape(virtual_nodes=0), PARTS, "python")


def test_programs_can_be_told_apart_by_the_name_the_kernel_keeps() -> None:
    names = [*programs.store(PARTS), *programs.control(SHAPE, PARTS, "python"), *programs.operators(PARTS)]
    assert len({name[:15] for name in names}) == len(names)


def test_objects(golden: Golden) -> None:
    things = [{"path": path, **thing} for path, thing in objects.first(b"authority")]
    golden(CASES / "objects.json", json.dumps(things, indent=1))
    node = objects.virtual_node("dgx007", 8, {"dgx007": "su1"})
    golden(CASES / "dgx007.json", json.dumps(node, indent=1))


def test_a_node_without_gpus_offers_none() -> None:
    assert objects.devices(0) == {}
    assert objects.node_labels("n1", 0, {"n1": "su1"}) == {"podwright.dev/unit": "su1"}


def test_units_are_labelled_as_the_engine_looks_for_them() -> None:
    assert UNIT_LABEL == UNIT


def test_containers_see_the_environment_and_keep_the_limits_of_their_node() -> None:
    default: dict[str, Any] = {"process": {"cwd": "/", "rlimits": [{"soft": 1}]}, "mounts": [{"destination": "/proc"}]}
    made = json.loads(configs.container(default))
    assert made["process"] == {"cwd": "/"}
    assert made["mounts"] == default["mounts"]
    assert made["hooks"]["createContainer"][0]["path"] == "/run/lab/bin/show"
    script = configs.show_script([Path("/work/env"), Path("/my work/python")])
    assert script.splitlines()[-2:] == ["show /work/env", "show '/my work/python'"]


def test_the_lab_is_a_pod(golden: Golden, tmp_path: Path) -> None:
    text = shape.pod_text(Path("/home/ann/labs/lab-kubernetes"), SHAPE, PORTS)
    golden(CASES / "pod.yaml", text)
    (tmp_path / "pod.yaml").write_text(text)
    pod = load_pod(tmp_path / "pod.yaml")
    assert pod.compute_hosts() == [*SHAPE.virtual_hosts(), *SHAPE.hosts()]


@pytest.mark.parametrize(
    ("wanted", "told"),
    [
        ({"nodes": 17}, "--nodes: a Kubernetes lab takes 0 to 16, not 17"),
        ({"gpus": -1}, "--gpus: a Kubernetes lab takes 0 to 16, not -1"),
        ({"virtual_nodes": 9999}, "--virtual-nodes: a Kubernetes lab takes 0 to 5000, not 9999"),
        ({"nodes": 0, "virtual_nodes": 0}, "--nodes: a lab without any node runs nothing"),
    ],
)
def test_shapes_that_are_refused(wanted: dict[str, int], told: str) -> None:
    with pytest.raises(Refusal) as caught:
        shape.check(KubernetesLabShape(**wanted))  # type: ignore[arg-type]
    assert str(caught.value) == told


def test_shape_and_ports_are_kept(tmp_path: Path) -> None:
    assert shape.read(tmp_path) is None
    shape.write(tmp_path, SHAPE, PORTS)
    assert shape.read(tmp_path) == (SHAPE, PORTS)


def test_a_lab_of_another_kind_is_not_taken_for_one(tmp_path: Path) -> None:
    (tmp_path / "lab.json").write_text('{"kind": "slurm"}')
    assert shape.read(tmp_path) is None


def test_a_broken_note_is_told_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "lab.json").write_text('{"kind": "kubernetes"}')
    with pytest.raises(Refusal, match=r"lab\.json cannot be read: 'shape'"):
        shape.read(tmp_path)


@pytest.mark.parametrize(("nodes", "words"), [(1, "1 node of 8 GPUs"), (2, "2 nodes of 8 GPUs")])
def test_words(nodes: int, words: str) -> None:
    assert KubernetesLabShape(nodes=nodes, virtual_nodes=0).words() == words
    assert KubernetesLabShape(nodes=nodes, virtual_nodes=140).words() == f"{words}, 140 virtual"
