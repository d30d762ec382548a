"""Queue, waste and shell on a real cluster, and on one that keeps no account."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright.cli.main import main
from podwright.usage import gather
from podwright.usage.waste import JobUse
from tests.contract.sites import END_S, SlurmSite, until
from tests.real.labs import slurm_lab
from tests.unit.cli.test_shell import PODWRIGHT, typed

pytestmark = [pytest.mark.slurm, pytest.mark.xdist_group("slurm-usage")]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmSite]:
    with slurm_lab(nodes=2, accounting=True) as lab:
        site = SlurmSite(lab, tmp_path_factory.mktemp("usage"))
        yield site
        site.close()


@pytest.fixture
def site(cluster: SlurmSite, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmSite]:
    monkeypatch.setenv("PODWRIGHT_HOME", str(cluster.home.path))
    yield cluster
    cluster.slurm("scancel", "--me")
    until(lambda: not cluster.slurm("squeue", "--noheader"), "the queue is empty")


def submit(site: SlurmSite, *options: str) -> str:
    return site.slurm("sbatch", "--parsable", "--output=/dev/null", "--wrap=sleep 600", *options).strip()


def test_the_queue_says_what_runs_what_waits_and_what_is_free(
    site: SlurmSite, capsys: pytest.CaptureFixture[str]
) -> None:
    run = site.start("--steps 10000", nodes=1, resources="{gpus: 2}")
    site.wait_step(run, 1)
    submit(site, "--nodes=2", "--gpus-per-node=8", "--job-name=big")
    submit(site, "--hold", "--job-name=held", "--array=1-40")
    assert main(["queue", "lab-slurm", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    jobs = {job["name"]: job for job in found["jobs"]}
    assert (jobs[run.id]["run"], jobs[run.id]["state"], jobs[run.id]["gpus"]) == (run.id, "running", 2)
    assert (jobs["big"]["state"], jobs["big"]["nodes"], jobs["big"]["gpus"]) == ("waiting", 2, 16)
    assert (jobs["held"]["tasks"], jobs["held"]["why"]) == (40, "is held; `scontrol release` lets it go on")
    (gpu,) = [one for one in found["partitions"] if one["name"] == "gpu"]
    assert (gpu["nodes"], gpu["gpus"], gpu["gpus_free"], gpu["gpus_used"]) == (2, 16, 14, 2)
    assert main(["queue"]) == 0
    shown = capsys.readouterr().out
    assert "lab-slurm: 1 job runs, 41 wait; 14 of 16 GPUs are free" in shown
    assert "40 x held" in shown


def test_waste_counts_whole_nodes_that_were_used_in_part(site: SlurmSite, capsys: pytest.CaptureFixture[str]) -> None:
    job = submit(site, "--exclusive", "--gpus-per-node=1", "--job-name=part")
    until(lambda: site.slurm("squeue", "--noheader", "--states=RUNNING"), "it runs")
    until(lambda: f"\n{job}|" in "\n" + site.slurm("sacct", "-X", "-n", "-P", "-s", "R"), "accounting knows it")
    assert main(["waste", "lab-slurm", "--since", "1h", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert found["accounting"] is True
    (part,) = [one for one in found["whole_nodes"] if one["job"] == job]
    assert (part["name"], part["user"], part["gpus"], part["gpus_asked"]) == ("part", site.lab.user.name, 8, 1)
    assert part["idle_gpu_hours"] == pytest.approx(part["gpu_hours"] * 7 / 8)


def test_waste_knows_own_runs(site: SlurmSite) -> None:
    run = site.start("--steps 3", nodes=2, resources="{gpus: 4}")
    assert run.wait(END_S).state == "succeeded"
    own = until(lambda: _own(site, run.id), "it is on account")
    assert (own.gpus, own.nodes, own.user) == (8, 2, site.lab.user.name)


def _own(site: SlurmSite, run_id: str) -> JobUse | None:
    (found,) = gather.wasted(site.session, "lab-slurm", 3600)
    assert found.waste is not None
    return next((one for one in found.waste.jobs if one.run == run_id), None)


def test_a_shell_opens_on_a_node_of_the_run(site: SlurmSite) -> None:
    run = site.start("--steps 100000", nodes=2)
    site.wait_step(run, 1)
    environment = {**os.environ, "PODWRIGHT_HOME": str(site.home.path)}
    for node, host in enumerate(run.record().hosts):
        shown = typed([PODWRIGHT, "shell", run.id, "--node", str(node)], 'echo "at $(hostname)"', environment)
        assert f"at {host}" in shown


def test_without_accounting_only_own_runs_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with slurm_lab(nodes=1, accounting=False) as lab:
        site = SlurmSite(lab, tmp_path)
        monkeypatch.setenv("PODWRIGHT_HOME", str(site.home.path))
        run = site.start("--steps 3", nodes=1, resources="{gpus: 2}")
        assert run.wait(END_S).state == "succeeded"
        assert main(["waste", "lab-slurm"]) == 0
        shown = capsys.readouterr().out
        site.close()
    assert "seen      own runs only: there is no accounting to ask" in shown
    assert run.id in shown
