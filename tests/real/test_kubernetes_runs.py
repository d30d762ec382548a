"""Runs on a real Kubernetes by Podwright's own commands: the examples as they are, and what befalls a run there."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podwright.lab.kubernetes import KubernetesLab
from podwright.runs import RunFolder
from tests.real.clients import ROOT, Client, kubectl, pod_of, pods, until
from tests.real.labs import ON_KUBERNETES

pytestmark = ON_KUBERNETES

SHORT = "--epochs 1 --size 48x32 --width 4 --batch 2 --tell-every-s 0"
FRAMES = "--frames 48 --scenes 3 --size 96x64"


@pytest.fixture
def client(kubernetes_cluster: KubernetesLab, tmp_path: Path) -> Client:
    return Client(tmp_path, kubernetes_cluster.pod_file)


def events(run: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """Gives what the nodes of a run wrote down, of one kind."""
    files = sorted(Path(run["folder"], "record").glob("n*/*.jsonl"))
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return [row for row in rows if row.get("k") == kind]


def write(folder: Path, **fields: Any) -> Path:
    """Writes a workload whose code is a folder of its own."""
    file = folder / f"{fields['name']}.yaml"
    (folder / "code").mkdir(exist_ok=True)
    file.write_text("".join(f"{key}: {json.dumps(value)}\n" for key, value in {"code": "code", **fields}.items()))
    return file


def test_the_training_example_over_two_nodes(client: Client, kubernetes_cluster: KubernetesLab, tmp_path: Path) -> None:
    """The file is the one that runs on this machine and on Slurm, beside fewer frames than `make demo` draws."""
    given = ROOT / "examples" / "segmentation.yaml"
    example = tmp_path / "tree" / "examples" / given.name
    example.parent.mkdir(parents=True)
    shutil.copy(given, example)
    shutil.copytree(ROOT / "programs", tmp_path / "tree" / "programs", ignore=shutil.ignore_patterns("__pycache__"))
    maker = [sys.executable, str(ROOT / "programs" / "segmentation" / "scenes.py"), str(example.parent / "a2d2-small")]
    subprocess.run([*maker, *FRAMES.split()], check=True, capture_output=True)
    command = f"command=python programs/segmentation/train.py --data {{data.frames}} {SHORT}"
    run = client.run(example, kubernetes_cluster.name, "--set", command)
    assert (run["state"], run["world_size"], sorted(run["hosts"])) == ("succeeded", 2, ["n1", "n2"])
    assert run["results"]["step"] == run["results"]["steps"]
    assert 0 < run["results"]["mean_iou"] <= 1
    assert Path(run["folder"], "spec", "workload.yaml").read_bytes() == given.read_bytes()
    assert Path(run["folder"], "results", "confusion.json").is_file()


def test_the_mpi_example_reduces_over_two_nodes(client: Client, kubernetes_cluster: KubernetesLab) -> None:
    run = client.run("examples/allreduce.yaml", kubernetes_cluster.name, "--set", "resources.cpus=1")
    assert (run["state"], run["world_size"], run["results"]["world"]) == ("succeeded", 4, 4)
    job = kubectl(kubernetes_cluster, "get", "mpijob", run["id"], "--namespace=lab")
    assert {name: role["replicas"] for name, role in job["spec"]["mpiReplicaSpecs"].items()} == {
        "Launcher": 1,
        "Worker": 2,
    }
    workers = [pod for pod in pods(kubernetes_cluster, run["id"]) if "-worker-" in pod["metadata"]["name"]]
    assert sorted(pod["spec"]["nodeName"] for pod in workers) == sorted(run["hosts"]) == ["n1", "n2"]


COUNT = """
import json, os, time
from pathlib import Path
rank = os.environ["RANK"]
for step in range(1, 31):
    time.sleep(0.1)
    print(json.dumps({"podwright": {"step": step}}), flush=True)
Path(os.environ["PODWRIGHT_CHECKPOINT"], f"rank{rank}").write_text("30")
print(f"rank {rank} is through")
"""


def test_a_client_that_was_away_all_the_time_finds_everything(
    client: Client, kubernetes_cluster: KubernetesLab, tmp_path: Path
) -> None:
    file = write(tmp_path, name="away", command=["python3", "-c", COUNT], nodes=2, ranks_per_node=2)
    run_id = client.start(file, kubernetes_cluster.name)
    until(lambda: has_ended(kubernetes_cluster, run_id), "the job is complete")
    run = client.wait(run_id)
    assert (run["state"], run["attempts"], run["world_size"]) == ("succeeded", 1, 4)
    lines = client.ask("logs", run_id).splitlines()
    for rank in range(4):
        assert any(line.endswith(f"rank {rank} is through") for line in lines)
    steps = [told for told in RunFolder(Path(run["folder"])).series() if told.name == "step"]
    for rank in range(4):
        mine = [told for told in steps if told.rank == rank]
        assert (sum(told.of for told in mine), mine[-1].value) == (30, 30), "thinned on the way or not, all are counted"
    client.ask("pull", run_id, "--to", str(tmp_path))
    assert len(list((tmp_path / run_id / "checkpoints").iterdir())) == 4


def has_ended(lab: KubernetesLab, run_id: str) -> bool:
    status = kubectl(lab, "get", "job", run_id, "--namespace=lab").get("status", {})
    return any(one["type"] == "Complete" for one in status.get("conditions", []))


CHATTER = """
import json, sys
line = "x" * 99 + "\\n"
for _ in range(int(sys.argv[1]) * 10):
    sys.stdout.write(line * 1000)
print(json.dumps({"podwright": {"step": 1}}))
print("that was all", flush=True)
"""


@pytest.mark.parametrize("megabytes", [24, pytest.param(200, marks=pytest.mark.nightly)])
def test_a_rank_that_talks_too_much_does_not_harm_its_record(
    kubernetes_cluster: KubernetesLab, tmp_path: Path, megabytes: int
) -> None:
    """Without a claim all there is to know travels through a container's output, which has its bounds."""
    client = Client(tmp_path, pod_of(kubernetes_cluster, tmp_path, "frames", claim=None))
    file = write(tmp_path, name="chatter", command=["python3", "-c", CHATTER, str(megabytes)])
    run = client.run(file, "frames")
    assert (run["state"], run["attempts"], run["results"]) == ("succeeded", 1, {"step": 1})
    assert "the log is cut here; its last lines come at the end" in [row.get("text") for row in events(run, "thinned")]
    assert client.ask("logs", run["id"]).splitlines()[-1].endswith("that was all")
    brought = sum(file.stat().st_size for file in Path(run["folder"], "frames").iterdir())
    assert brought < 12 << 20


HOLD = """
import os, time
from pathlib import Path
while not Path(os.environ["PODWRIGHT_FOLDER"], "enough").exists():
    time.sleep(0.1)
"""


@pytest.fixture
def held(client: Client, kubernetes_cluster: KubernetesLab, tmp_path: Path) -> Callable[..., str]:
    """Starts runs that hold half the GPUs of each of their nodes until they are let go."""

    def start(name: str, **fields: Any) -> str:
        fields = {"resources": {"gpus": 4}, "ranks_per_node": 1, "command": ["python3", "-c", HOLD], **fields}
        return client.start(write(tmp_path, name=name, **fields), kubernetes_cluster.name)

    return start


def let_go(lab: KubernetesLab, run_id: str) -> None:
    """Gives the ranks of a run their word, through the volume that they share."""
    claim = kubectl(lab, "get", "pvc", "podwright", "--namespace=lab")
    (lab.folder / "volumes" / claim["spec"]["volumeName"] / "podwright" / "runs" / run_id / "enough").touch()


def test_two_runs_on_too_few_nodes_both_end(
    client: Client, kubernetes_cluster: KubernetesLab, held: Callable[..., str]
) -> None:
    """Room for four, one of which is taken: a run that got half of its nodes gives them back, and comes back."""
    third = held("third")
    until(lambda: client.show(third)["state"] == "running", "the third place is taken")
    first = held("first", nodes=2)
    until(lambda: client.show(first)["state"] == "running", "the first run has its nodes")
    second = held("second", nodes=2, join_timeout="25s")
    until(lambda: events(client.show(second), "given_back"), "the second run gives back what it has")
    let_go(kubernetes_cluster, first)
    assert client.wait(first)["state"] == "succeeded"
    until(lambda: client.show(second)["state"] == "running", "the second run has its nodes")
    let_go(kubernetes_cluster, second)
    assert client.wait(second)["state"] == "succeeded"
    let_go(kubernetes_cluster, third)
    assert client.wait(third)["state"] == "succeeded"
