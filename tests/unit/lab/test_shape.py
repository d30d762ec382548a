"""A lab's shape: kept and read back the same, and written as a pod that is accepted."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podwright.design.topology import topology_of
from podwright.lab.slurm import shape
from podwright.lab.slurm.lab import addresses
from podwright.lab.slurm.shape import SlurmLabShape
from podwright.lab.user import LabUser
from podwright.spec import Refusal, load_pod


def test_a_shape_is_read_as_it_was_written(tmp_path: Path) -> None:
    wanted, user = SlurmLabShape(name="mine", nodes=7, accounting=False, reveal=("/data",)), LabUser("ann", 1000, 100)
    shape.write(tmp_path, wanted, user)
    assert shape.read(tmp_path) == (wanted, user)


def test_where_nothing_is_there_is_no_lab(tmp_path: Path) -> None:
    assert shape.read(tmp_path) is None


@pytest.mark.parametrize("text", ["{", "{}", "[]", '{"shape": {"reveal": [], "wheels": 4}, "user": {}}'])
def test_a_damaged_file_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "lab.json").write_text(text)
    with pytest.raises(Refusal, match="cannot be read"):
        shape.read(tmp_path)


@pytest.mark.parametrize(
    ("nodes", "gpus", "sizes"), [(1, 8, [1]), (4, 8, [2, 2]), (5, 0, [2, 2, 1]), (140, 3, [20] * 7)]
)
def test_the_pod_of_a_lab(tmp_path: Path, nodes: int, gpus: int, sizes: list[int]) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text(shape.pod_text(tmp_path, SlurmLabShape(nodes=nodes, gpus=gpus)))
    pod = load_pod(path)
    model = pod.model_of("n1")
    assert [len(unit.hosts) for unit in topology_of(pod).units] == sizes
    assert (model.gpus.count if model.gpus else 0, model.cores, model.threads) == (gpus, 128, 256)
    assert pod.scheduler("slurm").hosts is None


def test_a_folder_with_odd_letters_stands_in_the_pod_as_it_is(tmp_path: Path) -> None:
    folder = tmp_path / 'it\'s a "lab" # 1'
    folder.mkdir()
    (folder / "pod.yaml").write_text(shape.pod_text(folder, SlurmLabShape()))
    scheduler = load_pod(folder / "pod.yaml").scheduler()
    assert scheduler.kind == "slurm"
    assert (scheduler.ssh_config, scheduler.folder) == (f"{folder}/ssh/config", f"{folder}/shared/$USER")


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (SlurmLabShape(nodes=0), "--nodes: a lab has 1 to 1000 nodes, not 0"),
        (SlurmLabShape(nodes=1001), "--nodes: a lab has 1 to 1000 nodes, not 1001"),
        (SlurmLabShape(gpus=17), "--gpus: a node of a lab has 0 to 16 GPUs, not 17"),
        (SlurmLabShape(name="../up"), '--name: "../up" is not a name for a lab'),
    ],
)
def test_what_cannot_be_made_is_refused(wanted: SlurmLabShape, words: str) -> None:
    with pytest.raises(Refusal) as caught:
        shape.check(wanted)
    assert str(caught.value).splitlines()[0] == words


@given(st.integers(1, shape.MAX_NODES))
def test_no_address_is_given_twice(nodes: int) -> None:
    given_out = addresses(SlurmLabShape(nodes=nodes).hosts())
    assert len(set(given_out.values())) == nodes + 2
    assert all(0 < int(part) < 255 for address in given_out.values() for part in address.split(".")[3:])
