"""Slurm as sites have it: the login node itself, a folder that is not shared, secrets, preemption, many runs."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from podwright import launch
from podwright.launch import pods
from podwright.launch.prune import prunable_checkpoints, prune_runs
from podwright.spec import Refusal
from tests.contract.sites import END_S, PROGRAMS, SlurmSite, mend, until

pytestmark = [pytest.mark.slurm, pytest.mark.xdist_group("slurm")]
PODWRIGHT = [str(Path(sys.executable).parent / "podwright")]


def variant(site: SlurmSite, name: str, **changes: Any) -> Path:
    """The lab's pod under another name, with other facts of its scheduler; None takes one out."""
    pod = yaml.safe_load(site.lab.pod_file.read_text())
    scheduler = {**pod["schedulers"][0], **changes}
    pod["schedulers"] = [{key: value for key, value in scheduler.items() if value is not None}]
    pod["name"] = name
    path = site.folder / f"{name}.yaml"
    path.write_text(json.dumps(pod))
    return path


class LoginNode:
    """An ordinary user at work on the login node, with Podwright and Slurm's commands at hand."""

    def __init__(self, site: SlurmSite, folder: Path) -> None:
        self._site, self.folder = site, folder

    def podwright(self, *words: str) -> subprocess.CompletedProcess[str]:
        environ = [f"PODWRIGHT_HOME={self.folder}/home", "ONE_KEY=hush-hush-hush"]
        return self._site.lab.run(["env", f"--chdir={self.folder}", *environ, *PODWRIGHT, *words])


@pytest.fixture
def login_node(slurm: SlurmSite) -> LoginNode:
    folder = slurm.lab.home / "work"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(PROGRAMS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    pod = variant(slurm, "here", login=None, ssh_config=None, folder=f"{slurm.lab.shared}/here-$USER")
    shutil.copy(pod, folder / "here.yaml")
    (folder / "work.yaml").write_text(f"name: work\ncode: .\ncommand: {sys.executable} count.py --steps 3\nnodes: 2\n")
    owner = slurm.lab.home.stat()
    for path in (folder, *folder.rglob("*")):
        os.chown(path, owner.st_uid, owner.st_gid)
    return LoginNode(slurm, folder)


def test_on_the_login_node_the_run_lies_in_the_shared_folder(login_node: LoginNode) -> None:
    done = login_node.podwright("run", "work.yaml", "--on", "here.yaml", "--json")
    assert done.returncode == 0, done.stderr
    run = json.loads(done.stdout)
    assert (run["state"], run["world_size"], run["results"]["step"]) == ("succeeded", 2, 3)
    link = login_node.folder / "home" / "runs" / run["id"]
    assert link.is_symlink()
    assert (link / "record" / "n1.r0" / "events.jsonl").exists()
    assert link.resolve().stat().st_uid == login_node.folder.stat().st_uid
    removed = login_node.podwright("rm", run["id"], "--yes")
    assert removed.returncode == 0, removed.stderr
    assert not link.is_symlink()
    assert not Path(run["folder"]).exists()


def test_a_secret_reaches_the_ranks_and_no_file(slurm: SlurmSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over ssh it travels on standard input, from there in sbatch's environment."""
    monkeypatch.setenv("ONE_KEY", "hush $HOME 'quoted' hush")
    monkeypatch.setenv("OTHER_KEY", "not for this run")
    code = "import os; print(len(os.environ['ONE_KEY']), os.environ['ONE_KEY'], 'OTHER_KEY' in os.environ)"
    run = slurm.start(command=json.dumps([sys.executable, "-c", code]), secrets="[ONE_KEY]")
    assert run.wait(END_S).state == "succeeded", run.explain()
    [line] = [line.text for line in run.logs()]
    assert line.startswith("24 ")
    assert line.endswith(" False")
    assert "hush" not in line
    there = slurm.lab.shared / "runs" / run.id
    assert (there / "token").exists(), "this is where its files lie"
    for folder in (there, run.folder.path):
        held = [path for path in folder.rglob("*") if path.is_file() and b"quoted" in path.read_bytes()]
        assert held == []


def test_a_key_of_several_lines_reaches_the_ranks_whole(slurm: SlurmSite, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "-----BEGIN KEY-----\nMIIEvQIBADANBg\n\nLD_PRELOAD=evil.so\n-----END KEY-----\n"
    monkeypatch.setenv("PEM_KEY", key)
    code = "import hashlib, os; print(hashlib.sha256(os.fsencode(os.environ['PEM_KEY'])).hexdigest())"
    run = slurm.start(command=json.dumps([sys.executable, "-c", code]), secrets="[PEM_KEY]")
    assert run.wait(END_S).state == "succeeded", run.explain()
    [line] = [line.text for line in run.logs()]
    assert line == hashlib.sha256(key.encode()).hexdigest()
    for folder in (slurm.lab.shared / "runs" / run.id, run.folder.path):
        held = [path for path in folder.rglob("*") if path.is_file() and b"MIIEvQIBADANBg" in path.read_bytes()]
        assert held == []


def test_a_folder_that_compute_nodes_do_not_see_is_refused(slurm: SlurmSite) -> None:
    """/dev/shm is each machine's own."""
    pods.add(slurm.home, variant(slurm, "unshared", folder="/dev/shm/$USER"))
    with pytest.raises(Refusal, match="the compute nodes do not see /dev/shm/pod, where the run would lie"):
        launch.start(slurm.session, slurm.workload("--steps 1"), "unshared")
    assert list(slurm.home.all_ids()) == []


def test_a_preempted_run_waits_and_goes_on(slurm: SlurmSite) -> None:
    """The lab's partition `urgent` takes nodes from those that run in the other."""
    mend(slurm.lab)
    first = slurm.start("--steps 6 --hold-at 3", nodes=4, retries=1, grace="2s", slurm="{exclusive: true}")
    slurm.wait_step(first, 3)
    urgent = slurm.start("--steps 1", nodes=4, slurm="{partition: urgent, exclusive: true}")
    assert urgent.wait(END_S).state == "succeeded", urgent.explain()
    record = first.wait(END_S)
    assert (record.state, record.attempts) == ("succeeded", 2), first.explain()
    told = slurm.steps(first, 0)
    assert sorted(set(told)) == list(range(1, 7))


def test_a_second_submission_of_the_same_run_starts_nothing(slurm: SlurmSite) -> None:
    run = slurm.start("--steps 60 --pause 0.1", nodes=2)
    slurm.wait_step(run, 2)
    script = slurm.lab.shared / "runs" / run.id / "job" / "batch.sh"
    slurm.slurm("sbatch", str(script))
    record = run.wait(END_S)
    assert (record.state, record.attempts) == ("succeeded", 1), run.explain()
    assert len(slurm.events(run, "go")) == 1
    assert len(slurm.events(run, "pilot")) == 2, "the second job wrote into the record of the first"
    assert [e for e in slurm.events(run, "end") if e["state"] != "succeeded"] == []


def test_an_engine_is_asked_once_for_many_runs(slurm: SlurmSite) -> None:
    run = slurm.start("--steps 2", matrix="{a: [1, 2, 3, 4, 5, 6, 7, 8]}")
    engine: Any = slurm.session.engine_of(run.points()[0].folder)
    calls: list[str] = []
    real = engine._reach.call

    def counted(argv: Any, *rest: Any, **named: Any) -> Any:
        calls.append(argv[0])
        return real(argv, *rest, **named)

    engine._reach.call = counted
    run.record()
    assert calls.count("squeue") <= 1
    assert sum(name.endswith("python") for name in calls) <= 1, "one mirror question for all points"
    engine._reach.call = real
    assert run.wait(END_S).state == "succeeded"


def test_a_sweep_is_one_array(slurm: SlurmSite) -> None:
    run = slurm.start("--steps 1", matrix="{a: [1, 2, 3]}")
    assert run.wait(END_S).state == "succeeded"
    jobs = slurm.slurm("squeue", "--noheader", "--states=all", f"--name={run.id}", "--format=%F").split()
    assert len(set(jobs)) == 1


def test_a_run_that_is_removed_leaves_nothing_on_the_cluster(slurm: SlurmSite) -> None:
    run = slurm.start("--steps 1")
    assert run.wait(END_S).state == "succeeded"
    there = slurm.lab.shared / "runs" / run.id
    assert there.exists()
    until(lambda: run.folder.is_sealed, "it is closed")
    run.remove()
    assert not there.exists()


def test_only_the_checkpoints_of_a_run_are_pruned_on_the_cluster(slurm: SlurmSite) -> None:
    run = slurm.start("--steps 2")
    assert run.wait(END_S).state == "succeeded"
    there = slurm.lab.shared / "runs" / run.id
    until(lambda: run.folder.is_sealed, "it is closed")
    assert (there / "checkpoints" / "rank0").exists()
    pruned = prune_runs(slurm.session, prunable_checkpoints(slurm.session, [run.record()]))
    assert (pruned.runs, pruned.left) == ((run.id,), ())
    assert pruned.size_bytes > 0
    assert (there / "job").is_dir()
    assert not (there / "checkpoints").exists()
    assert prunable_checkpoints(slurm.session, [run.record()]).sizes == {}


def test_pull_brings_what_lies_on_the_cluster(slurm: SlurmSite, tmp_path: Path) -> None:
    run = slurm.start("--steps 2")
    assert run.wait(END_S).state == "succeeded"
    [copied] = run.pull(["checkpoints"], tmp_path / "pulled")
    assert (copied / "rank0").read_text() == "2"
