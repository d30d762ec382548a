"""The engine's effects, with a cluster that answers as Slurm's commands do."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from podwright.clients.ssh import Answer
from podwright.engines.slurm import SlurmEngine
from podwright.engines.slurm.controller import COME_BACK_S
from podwright.engines.slurm.queue import FLOOR_S
from podwright.engines.slurm.stranded import LOOK_S
from podwright.runs import Home, RunFolder
from podwright.spec import Refusal, SlurmScheduler, load_pod
from tests.fixtures.clock import Clock
from tests.unit.runs.made import asked, write_lines

POD = 'name: p\nnodes: [{hosts: "d[1-4]", model: dgx-a100}]\nschedulers: [{kind: slurm}]\n'
AWAY = Answer(1, b"", "sbatch: error: Batch job submission failed: Unable to contact slurm controller\n")


class Cluster:
    is_here = True

    def __init__(self) -> None:
        self.calls: list[list[str]] = []
        self.environs: list[dict[str, str]] = []
        self.answers: dict[str, Callable[[], Answer]] = {}

    def call(self, argv: Sequence[str], stdin: bytes = b"", env: Mapping[str, str] | None = None) -> Answer:
        self.calls.append(list(argv))
        self.environs.append(dict(env or {}))
        return self.answers.get(argv[0], lambda: Answer(0, b"", ""))()

    def terminal(self, argv: Sequence[str]) -> list[str]:
        return ["ssh", *argv]

    def named(self, name: str) -> list[list[str]]:
        return [call for call in self.calls if call[0] == name]


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def engine(cluster: Cluster, clock: Clock, tmp_path: Path) -> SlurmEngine:
    (tmp_path / "pod.yaml").write_text(POD)
    pod = load_pod(tmp_path / "pod.yaml")
    scheduler = pod.scheduler()
    assert isinstance(scheduler, SlurmScheduler)
    return SlurmEngine(pod, scheduler, cluster, clock)


def add(tmp_path: Path, *events: dict[str, Any], **changes: Any) -> RunFolder:
    site = json.dumps({"folder": "/scratch/u", "step": ["--container-image=a"], "wrap": []})
    files = {"job/site.json": site.encode()}
    folder = Home.open(tmp_path / "home").create(asked("toy-2222", **changes), files, {})
    (folder.path / "client.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    return folder


SUBMITTED = {"t": 0, "k": "submitted", "handle": "70"}


def test_a_job_is_submitted_once(engine: SlurmEngine, cluster: Cluster, tmp_path: Path) -> None:
    cluster.answers["sbatch"] = lambda: Answer(0, b"71;cluster\n", "")
    assert engine.submit("toy-2222", [add(tmp_path)], again=False) == "71"
    assert cluster.calls == [["sbatch", "--parsable", "/scratch/u/runs/toy-2222/job/batch.sh"]]


def test_after_a_controller_that_was_away_the_job_is_looked_for_first(
    engine: SlurmEngine, cluster: Cluster, tmp_path: Path
) -> None:
    """It had taken the job before it died."""
    cluster.answers["sbatch"] = lambda: AWAY
    cluster.answers["squeue"] = lambda: Answer(0, b"71\n", "")
    assert engine.submit("toy-2222", [add(tmp_path)], again=False) == "71"
    assert [call[0] for call in cluster.calls] == ["sbatch", "scontrol", "squeue"]


def test_a_job_the_controller_did_not_take_is_given_again(
    engine: SlurmEngine, cluster: Cluster, tmp_path: Path
) -> None:
    replies = [AWAY, AWAY, Answer(0, b"72\n", "")]
    cluster.answers["sbatch"] = lambda: replies.pop(0)
    assert engine.submit("toy-2222", [add(tmp_path)], again=False) == "72"


def test_what_a_killed_client_began_is_looked_for_first(engine: SlurmEngine, cluster: Cluster, tmp_path: Path) -> None:
    cluster.answers["squeue"] = lambda: Answer(0, b"70\n", "")
    assert engine.submit("toy-2222", [add(tmp_path)], again=True) == "70"
    assert cluster.named("sbatch") == []


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        ("sbatch: error: invalid partition specified: gpuu", 2, "Slurm did not take the job: invalid partition"),
        ("sbatch: error: Unable to contact slurm controller", 3, "Slurm did not take the job: Unable to contact"),
    ],
)
def test_what_slurm_refuses_is_said(
    engine: SlurmEngine, cluster: Cluster, clock: Clock, tmp_path: Path, error: str, code: int, words: str
) -> None:
    def refuse() -> Answer:
        clock.now += COME_BACK_S + 1
        return Answer(1, b"", f"{error}\n")

    cluster.answers["sbatch"] = refuse
    with pytest.raises(Refusal, match=words) as refused:
        engine.submit("toy-2222", [add(tmp_path)], again=False)
    assert refused.value.exit_code == code


def test_secrets_are_in_the_environment_and_in_no_word(
    engine: SlurmEngine, cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONE_KEY", "hush")
    cluster.answers["sbatch"] = lambda: Answer(0, b"71\n", "")
    engine.submit("toy-2222", [add(tmp_path, workload={"secrets": ["ONE_KEY"]})], again=False)
    assert cluster.environs == [{"ONE_KEY": "hush"}]
    assert "hush" not in str(cluster.calls)


def test_cancelling_marks_the_run_before_it_asks_it_to_stop(
    engine: SlurmEngine, cluster: Cluster, tmp_path: Path
) -> None:
    engine.cancel([add(tmp_path, SUBMITTED)])
    assert [call[0] for call in cluster.calls] == ["touch", "sh"]
    assert cluster.calls[0][-1] == "/scratch/u/runs/toy-2222/cancelled"
    assert cluster.calls[1][-1] == "70"


def test_a_whole_matrix_is_cancelled_by_one_mark_and_one_array(
    engine: SlurmEngine, cluster: Cluster, tmp_path: Path
) -> None:
    home = Home.open(tmp_path / "home")
    site = {"job/site.json": json.dumps({"folder": "/scratch/u", "step": [], "wrap": []}).encode()}
    home.create(asked("toy-2222", points=3), site, {})
    points = []
    for index in range(3):
        point = home.create(asked(f"toy-2222-{index + 1}", parent="toy-2222", index=index), {}, {})
        (point.path / "client.jsonl").write_text(json.dumps(SUBMITTED) + "\n")
        points.append(point)
    engine.cancel(points, whole=True)
    assert [call[3:] for call in cluster.calls] == [["podwright", "70", "/scratch/u/runs/toy-2222/cancelled"]]
    engine.cancel(points[1:])
    assert cluster.calls[1] == ["touch", "--", *(f"/scratch/u/runs/toy-2222-{n}/cancelled" for n in (2, 3))]
    assert cluster.calls[2][-3:] == ["podwright", "70_2", "70_3"]


def test_a_run_that_does_not_end_after_its_grace_is_ended(
    engine: SlurmEngine, cluster: Cluster, clock: Clock, tmp_path: Path
) -> None:
    cluster.answers["squeue"] = lambda: Answer(0, b"70|70|RUNNING|None|podwright|toy-2222\n", "")
    young = {"t": time.time() - 80, "k": "cancel"}
    folder = add(tmp_path, SUBMITTED, young)
    engine.status([folder])
    assert cluster.named("scancel") == []
    old = {"t": time.time() - 95, "k": "cancel"}
    (folder.path / "client.jsonl").write_text("".join(json.dumps(event) + "\n" for event in (SUBMITTED, old)))
    clock.now += FLOOR_S
    engine.status([folder])
    assert cluster.named("scancel") == [["scancel", "--quiet", "--", "70"]]


def test_a_shell_is_a_step_of_the_job_in_its_container(engine: SlurmEngine, tmp_path: Path) -> None:
    folder = add(tmp_path, SUBMITTED)
    (folder.path / "record" / "n0.r0").mkdir(parents=True)
    row = {"t": 1, "e": [0, 0], "n": 0, "q": 1, "k": "go", "hosts": ["d1", "d2"], "attempt": 1}
    (folder.path / "record" / "n0.r0" / "events.jsonl").write_text(json.dumps(row) + "\n")
    words = engine.shell(folder, 1)
    assert words[:3] == ["ssh", "srun", "--jobid=70"]
    assert "--nodelist=d2" in words
    assert "--container-image=a" in words


def test_a_run_that_is_not_heard_of_is_looked_at_and_says_so(
    engine: SlurmEngine, cluster: Cluster, clock: Clock, tmp_path: Path
) -> None:
    cluster.answers["squeue"] = lambda: Answer(0, b"70|70|RUNNING|None|podwright|toy-2222\n", "")
    cluster.answers["sh"] = lambda: Answer(0, b"40 /scratch/u/runs/toy-2222\n", "")
    folder = add(tmp_path, SUBMITTED)
    assert engine.status([folder])["toy-2222"].unheard == "no word from its nodes for 40 s"
    clock.now += LOOK_S - 1
    assert engine.status([folder])["toy-2222"].unheard == "no word from its nodes for 49 s"
    assert [call[-2:] for call in cluster.named("sh")] == [["70", "/scratch/u/runs/toy-2222"]]
    write_lines(folder.record_path / "n0.r0" / "metrics.jsonl", {"t": 1})
    assert engine.status([folder])["toy-2222"].unheard == ""


@pytest.mark.parametrize("state", ["SUSPENDED", "COMPLETING", "PENDING"])
def test_a_job_that_does_not_run_is_not_expected_to_be_heard_of(
    engine: SlurmEngine, cluster: Cluster, tmp_path: Path, state: str
) -> None:
    cluster.answers["squeue"] = lambda: Answer(0, f"70|70|{state}|None|podwright|toy-2222\n".encode(), "")
    engine.status([add(tmp_path, SUBMITTED)])
    assert cluster.named("sh") == []


def test_a_job_that_a_node_could_not_start_is_let_go_on(
    engine: SlurmEngine, cluster: Cluster, clock: Clock, tmp_path: Path
) -> None:
    folder = add(tmp_path, {"t": 1, "k": "submitted", "handle": "7"})
    row = b"7|7|PENDING|launch failed requeued held|podwright|toy-2222\n"
    cluster.answers["squeue"] = lambda: Answer(0, row, "")
    engine.tend([folder])
    engine.tend([folder])
    assert [call[-2:] for call in cluster.named("sh")] == [["7", "/scratch/u/runs/toy-2222"]]
    clock.now += LOOK_S
    engine.tend([folder])
    assert len(cluster.named("sh")) == 2
