"""Slurm's files, compared whole: each case is a pod and facts of its site."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podwright.bringup.plan.slurm import SlurmSite, render
from podwright.lab.slurm.shape import SlurmLabShape
from podwright.lab.slurm.site import site as lab_site
from podwright.spec import Pod, Refusal, SlurmScheduler, expand_hosts, load_pod
from tests.paths import CASES as ALL_CASES

CASES = ALL_CASES / "bringup" / "slurm"


def slurm_of(pod: Pod) -> SlurmScheduler:
    return next(one for one in pod.schedulers if isinstance(one, SlurmScheduler))


def site_of(facts: dict[str, Any]) -> SlurmSite:
    version = tuple(facts.pop("version"))
    if "lab" in facts:
        return lab_site(SlurmLabShape(**facts["lab"]), version)
    return SlurmSite(version=version, **{**facts, "lines": tuple(facts.pop("lines", ()))})


@pytest.mark.parametrize("case", sorted(path.name for path in CASES.iterdir()))
def test_files(case: str, golden: Callable[[Path, str], None]) -> None:
    folder = CASES / case
    pod = load_pod(folder / "pod.yaml")
    files = render(pod, slurm_of(pod), site_of(json.loads((folder / "facts.json").read_text())))
    for name, text in files.items():
        golden(folder / "expected" / name, text)
    assert sorted(files) == sorted(path.name for path in (folder / "expected").iterdir())


def pod_with(tmp_path: Path, text: str) -> Pod:
    path = tmp_path / "pod.yaml"
    path.write_text(text)
    return load_pod(path)


def test_a_model_without_the_facts_that_slurm_needs_is_refused(tmp_path: Path) -> None:
    pod = pod_with(tmp_path, 'name: p\nnodes: [{hosts: "c[1-3]", model: cpu-server}]\nschedulers: [{kind: slurm}]\n')
    with pytest.raises(Refusal) as caught:
        render(pod, slurm_of(pod), SlurmSite("ctl", (22, 5)))
    assert str(caught.value) == (
        "nodes.model: the model of c[1-3] has no cores, threads, memory, which Slurm must know\n\n"
        "hint: write the model out in the pod file, with sockets, cores, threads and memory"
    )


def test_every_host_of_slurm_is_under_exactly_one_leaf(tmp_path: Path) -> None:
    text = 'name: p\nnodes: [{hosts: "d[1-50]", model: dgx-a100}]\nschedulers: [{kind: slurm, hosts: "d[11-45]"}]\n'
    pod = pod_with(tmp_path, text)
    *leaves, spine = render(pod, slurm_of(pod), SlurmSite("ctl", (22, 5)))["topology.conf"].splitlines()
    hosts = [host for leaf in leaves for host in expand_hosts(leaf.partition("Nodes=")[2])]
    assert hosts == [f"d{number}" for number in range(11, 46)]
    assert spine == "SwitchName=spine Switches=su[1-3]"


@pytest.mark.parametrize(("version", "there"), [((22, 5), False), ((25, 5), False), ((25, 11), True), ((26, 5), True)])
def test_a_key_is_written_only_where_slurm_knows_it(version: tuple[int, int], there: bool, tmp_path: Path) -> None:
    text = 'name: p\nnodes: [{hosts: "d[1-2]", model: dgx-a100}]\nschedulers: [{kind: slurm}]\n'
    pod = pod_with(tmp_path, text)
    files = render(pod, slurm_of(pod), SlurmSite("ctl", version))
    assert ("MetricsType=metrics/openmetrics" in files["slurm.conf"].splitlines()) is there
