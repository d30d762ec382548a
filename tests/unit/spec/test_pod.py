"""The pod as the rest of the project sees it."""

from __future__ import annotations

from pathlib import Path

import pytest

from podwright import spec
from tests.paths import CASES

FILE = CASES / "spec" / "pod-everything" / "pod.yaml"


@pytest.fixture
def pod() -> spec.Pod:
    return spec.load_pod(FILE)


def write(folder: Path, *lines: str) -> Path:
    path = folder / "pod.yaml"
    path.write_text("\n".join(["name: small", *lines, ""]))
    return path


def test_hosts(pod: spec.Pod) -> None:
    assert len(pod.hosts()) == 143
    assert (pod.hosts()[0], pod.hosts()[-1]) == ("dgx001", "mgmt3")
    assert len(pod.compute_hosts()) == 140
    assert pod.model_of("dgx017").name == "dgx-a100"
    with pytest.raises(spec.Refusal, match='"dgx141" is not a host of the pod adas'):
        pod.model_of("dgx141")


def test_values_have_units_in_python(pod: spec.Pod) -> None:
    assert (pod.storage[0].capacity_bytes, pod.storage[0].bandwidth_bytes_s) == (2 * 10**15, 400 * 10**9)
    assert (pod.path, pod.source) == (FILE, FILE.read_bytes())


def test_schedulers(pod: spec.Pod) -> None:
    slurm = pod.scheduler("slurm")
    assert isinstance(slurm, spec.SlurmScheduler)
    assert slurm.folder == "/scratch/$USER/podwright"
    assert len(pod.scheduler_hosts(slurm)) == 100
    with pytest.raises(spec.Refusal, match="say which: adas:slurm, adas:kubernetes"):
        pod.scheduler()
    with pytest.raises(spec.Refusal, match="did you mean `slurm`"):
        pod.scheduler("slrum")


def test_only_scheduler_has_all_compute_hosts(tmp_path: Path) -> None:
    path = write(tmp_path, 'nodes: [{hosts: "n[1-4]", model: cpu-server}]', "schedulers: [{kind: kubernetes}]")
    pod = spec.load_pod(path)
    assert pod.scheduler_hosts(pod.scheduler()) == ["n1", "n2", "n3", "n4"]


def test_fabric_of_the_file_lies_over_the_library(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        'nodes: [{hosts: m1, model: cpu-server, roles: [management]}, {hosts: "n[1-4]", model: dgx-a100}]',
        "fabrics: {compute: {taper: 1, switch: {ports: 64}}}",
    )
    pod = spec.load_pod(path)
    compute, storage, management = pod.compute_fabric(), pod.storage_fabric(), pod.management_fabric()
    assert compute is not None
    assert compute.switch is not None
    assert (compute.taper, compute.pods_planned, compute.scalable_unit, compute.rails) == (1, 2, 20, 8)
    assert compute.switch.ports == 64
    assert storage is not None
    assert (storage.node_ports, storage.ports_per_unit) == (2, 8)
    assert management is not None
    assert management.switch is not None
    assert management.switch.name == "sn2201"


def test_pod_without_a_reference_design_has_no_fabric(tmp_path: Path) -> None:
    pod = spec.load_pod(write(tmp_path, "nodes: [{hosts: n1, model: cpu-server}]"))
    assert (pod.compute_fabric(), pod.storage_fabric(), pod.management_fabric()) == (None, None, None)


def test_large_pod_loads(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        'nodes: [{hosts: "n[1-50000]", model: dgx-b200}]',
        'schedulers: [{kind: slurm, hosts: "n[1-25000]"}, {kind: kubernetes, hosts: "n[25001-50000]"}]',
    )
    assert len(spec.load_pod(path).hosts()) == 50000


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (['nodes: [{hosts: "n[1-2]", model: cpu-server, addresses: [10.0.0.1]}]'], "names 1 for 2 hosts"),
        (['nodes: [{hosts: "n[1-2]", model: cpu-server, addresses: [10.0.0.1, 10.0.0.1]}]'], "is there twice"),
        (["nodes: [{hosts: n1, model: cpu-server, addresses: [10.0.0]}]"], '"10.0.0" is not an address'),
        (["nodes: [{hosts: n1, model: cpu-server}]", "bringup: {roles: {login: n7}}"], '"n7" is not a host of the pod'),
        (["nodes: [{hosts: n1, model: cpu-server}]", "bringup: {users: [{name: Root, uid: 2000}]}"], "of an account"),
        (["nodes: [{hosts: n1, model: cpu-server}]", "bringup: {users: [{name: ada, uid: 0}]}"], "uid"),
        (["nodes: [{hosts: n1, model: cpu-server}]", "bringup: {os: windows}"], "os"),
    ],
)
def test_what_bring_up_could_not_do_is_refused(tmp_path: Path, lines: list[str], message: str) -> None:
    with pytest.raises(spec.Refusal) as caught:
        spec.load_pod(write(tmp_path, *lines))
    assert message in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path / 'pod.yaml'}:")
