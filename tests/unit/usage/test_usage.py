"""What Slurm's own words about all jobs become, compared whole; a cluster replays what was recorded."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from podwright import launch
from podwright.clients.ssh import Answer
from podwright.engines.base import Status
from podwright.engines.slurm import SlurmEngine
from podwright.engines.slurm import usage as slurm_usage
from podwright.engines.slurm.usage import gpus_in, parse_past, tasks_in
from podwright.engines.usage import NodeUse, Past, QueuedJob, partitions
from podwright.launch import pods
from podwright.launch.session import SessionClock
from podwright.runs import Home
from podwright.spec import Pod, SlurmScheduler
from podwright.spec.problems import Refusal, refuse
from podwright.usage import gather
from tests.fixtures.clock import Clock
from tests.fixtures.fake_engine import FakeEngine
from tests.fixtures.launching import Load
from tests.paths import CASES as ALL_CASES
from tests.unit.runs.made import asked, end, event, go, write_lines

CASES = ALL_CASES / "usage"
POD = """\
name: adas
nodes: [{hosts: "n[1-4]", model: dgx-a100}]
schedulers: [{kind: slurm, login: login1}]
costs: {gpu_hour_price: 2}
"""
Golden = Callable[[Path, str], None]


class Recorded:
    """A login node that answers with recorded text, and remembers what it was asked."""

    is_here = False

    def __init__(self, folder: Path, disabled: bool = False) -> None:
        self.folder, self.disabled = folder, disabled
        self.asked: list[list[str]] = []

    def call(self, argv: Sequence[str], stdin: bytes = b"", env: Mapping[str, str] | None = None) -> Answer:
        self.asked.append(list(argv))
        assert env is not None
        assert env["SLURM_TIME_FORMAT"] == "%s"
        if self.disabled and argv[0] == "sacct":
            return Answer(1, b"", "Slurm accounting storage is disabled\n")
        return Answer(0, (self.folder / f"{argv[0]}.txt").read_bytes(), "")

    def terminal(self, argv: Sequence[str]) -> list[str]:
        return list(argv)


@pytest.fixture
def adas(home: Home, tmp_path: Path) -> Home:
    (tmp_path / "pod.yaml").write_text(POD)
    pods.add(home, tmp_path / "pod.yaml")
    return home


def replay(home: Home, reach: Recorded, clock: SessionClock = time) -> launch.Session:
    """A session whose Slurm answers with what was recorded."""

    def engine(pod: Pod, scheduler: str | None) -> SlurmEngine:
        slurm = pod.scheduler(scheduler)
        assert isinstance(slurm, SlurmScheduler)
        return SlurmEngine(pod, slurm, reach)

    return launch.Session(home, schedulers={"slurm": engine}, clock=clock)


@pytest.mark.parametrize("case", sorted(CASES.iterdir()), ids=lambda path: path.name)
def test_recorded_words_become_rows(case: Path, golden: Golden) -> None:
    nodes = slurm_usage.parse_nodes((case / "sinfo.txt").read_text())
    rows = {
        "jobs": slurm_usage.parse_jobs((case / "squeue.txt").read_text()),
        "nodes": nodes,
        "partitions": partitions(nodes),
        "past": parse_past((case / "sacct.txt").read_text()),
    }
    plain = {name: [asdict(row) for row in found] for name, found in rows.items()}  # type: ignore[call-overload]
    golden(case / "expected" / "rows.json", json.dumps(plain, indent=1) + "\n")


@pytest.mark.parametrize(
    ("job", "count"),
    [("7", 1), ("7_3", 1), ("7_[1-5]", 5), ("7_[1-5,9%2]", 6), ("7_[0-8:2]", 5), ("7_[4]", 1), ("7_[]", 1)],
)
def test_tasks_of_an_array_are_counted(job: str, count: int) -> None:
    assert tasks_in(job) == count


@pytest.mark.parametrize(
    ("tres", "gpus"),
    [
        ("cpu=4,node=1,gres/gpu=8", 8),
        ("gres/gpu=8,gres/gpu:a100=8", 8),
        ("gres/gpu:a100=4,gres/gpu:v100=2", 6),
        ("gres/gpumem=80G,gres/gpuutil=3", 0),
        ("", 0),
    ],
)
def test_gpus_of_trackable_resources(tres: str, gpus: int) -> None:
    assert gpus_in(tres) == gpus


def test_one_squeue_and_one_sinfo_answer_for_all(adas: Home) -> None:
    reach = Recorded(CASES / "lab")
    (found,) = gather.queues(replay(adas, reach), "adas")
    assert [command[0] for command in reach.asked] == ["sinfo", "squeue"]
    assert found.target == "adas"
    assert [node.why for node in found.nodes if node.state == "away"] == ["GPU 3 is gone"]
    # n1 has 2 GPUs free, n3 has 8, and n4 is away; each is in two partitions.
    assert (found.gpus, found.gpus_free) == (32, 10)


def test_own_runs_are_known_by_their_names(adas: Home) -> None:
    for run_id in ("sweep-1234", "sweep-1234-5", "part-4444"):
        adas.create(asked(run_id), {}, {})
    (found,) = gather.queues(replay(adas, Recorded(CASES / "lab")), "adas:slurm")
    assert {job.job: job.run for job in found.jobs if job.run} == {"4_5": "sweep-1234-5", "10": "part-4444"}
    # A job may be called anything; only names that runs can have are looked up.
    assert gather.own_run(adas, "5", "../../etc") is None
    assert gather.own_run(adas, "4_[1-3]", "sweep-1234") == "sweep-1234"


def test_a_cluster_that_is_away_does_not_hide_the_others(adas: Home) -> None:
    class Away(Recorded):
        def call(self, argv: Sequence[str], stdin: bytes = b"", env: Mapping[str, str] | None = None) -> Answer:
            raise refuse("login1: it cannot be reached: no route", exit_code=3)

    session = replay(adas, Away(CASES))
    local, away = gather.queues(session)
    assert (local.target, local.away) == ("local", "")
    assert (away.target, away.away) == ("adas", "login1: it cannot be reached: no route")
    with pytest.raises(Refusal, match="no route"):
        gather.queues(session, "adas")


class Cluster:
    """A cluster in which one run of ours waits, and whose nodes the user may not list."""

    def queue(self) -> list[QueuedJob]:
        return [QueuedJob("toy-2222", "toy-2222", "lab", "waiting", "", 1, 8, why="is suspended")]

    def nodes(self) -> list[NodeUse]:
        return []

    def past(self, since_s: float) -> Past | None:
        return None

    def hidden(self) -> list[str]:
        return ["you may not list nodes, so that they and their GPUs are not shown"]


@pytest.fixture
def cloud(tmp_path: Path) -> Home:
    home = Home.open(tmp_path / "home")
    path = tmp_path / "cloud.yaml"
    path.write_text("name: cloud\nnodes: [{hosts: n1, model: dgx-a100}]\nschedulers: [{kind: kubernetes}]\n")
    pods.add(home, path)
    return home


def test_every_engine_with_a_queue_is_asked_in_the_same_way(cloud: Home) -> None:
    session = launch.Session(cloud, schedulers={"kubernetes": lambda pod, name: FakeEngine(cluster=Cluster())})
    cloud.create(asked("toy-2222", target="cloud"), {}, {})
    local, queue = gather.queues(session)
    assert (local.target, queue.target) == ("local", "cloud")
    assert [(job.run, job.why) for job in queue.jobs] == [("toy-2222", "is suspended")]
    assert queue.hidden == ("you may not list nodes, so that they and their GPUs are not shown",)
    (waste,) = gather.wasted(session, "cloud:kubernetes")
    assert not waste.accounting
    assert waste.waste is not None


def test_whoever_looks_at_the_queue_releases_what_is_held(cloud: Home) -> None:
    engine = FakeEngine(cluster=Cluster())
    session = launch.Session(cloud, schedulers={"kubernetes": lambda pod, name: engine})
    spec = {"spec/pod.yaml": cloud.store((pods.folder(cloud) / "cloud.yaml").read_bytes(), "pod.yaml")}
    first = cloud.create(asked("first-2222", target="cloud"), {}, spec)
    write_lines(first.record_path / "n0.r0" / "events.jsonl", event("pilot", host="a"), go(0.0), end(10.0))
    cloud.create(asked("toy-2222", target="cloud", after="first-2222"), {}, spec)
    engine.says_of["toy-2222"] = Status("waiting", "waits for first-2222 to succeed", held_for="first-2222")
    gather.queues(session, "cloud")
    assert engine.released == ["toy-2222"]


def test_nobody_is_told_to_release_the_job_of_a_run_that_has_ended(cloud: Home) -> None:
    class Held(Cluster):
        def queue(self) -> list[QueuedJob]:
            held = QueuedJob("7", "toy-2222", "u", "waiting", "p", 1, 0, why="is held; `scontrol release` ...")
            return [held, replace(held, job="8", name="other-2222")]

    engine = FakeEngine(cluster=Held())
    session = launch.Session(cloud, schedulers={"kubernetes": lambda pod, name: engine})
    spec = {"spec/pod.yaml": cloud.store((pods.folder(cloud) / "cloud.yaml").read_bytes(), "pod.yaml")}
    ran = cloud.create(asked("toy-2222", target="cloud"), {}, spec)
    write_lines(ran.record_path / "n0.r0" / "events.jsonl", event("pilot", host="a"), go(0.0), end(10.0))
    stopped = cloud.create(asked("other-2222", target="cloud"), {}, spec)
    write_lines(stopped.record_path / "n0.r0" / "events.jsonl", go(0.0), end(10.0, state="terminated"))
    (queue,) = gather.queues(session, "cloud")
    assert [job.run for job in queue.jobs] == ["other-2222"]
    assert engine.cleaned == ["toy-2222"]


def test_the_queue_of_this_machine_has_its_runs(home: Home, load: Load) -> None:
    run = launch.start(launch.Session(home), load("command: sleep 600\ntime_limit: 2h\n"))
    (found,) = gather.queues(launch.Session(home), "local")
    assert [(job.run, job.nodes) for job in found.jobs] == [(run.id, 1)]
    run.cancel()
    run.wait(60)
    (found,) = gather.queues(launch.Session(home), "local")
    assert found.jobs == ()


def finished(home: Home, run_id: str, target: str) -> None:
    """A run of two nodes with four GPUs each that kept two of the eight busy for ten seconds."""
    workload = {"name": "toy", "goal": None, "resources": {"gpus": 4}, "time_limit": "1m"}
    folder = home.create(asked(run_id, target=target, workload=workload), {}, {})
    record = folder.record_path
    write_lines(record / "n0.r0" / "events.jsonl", event("pilot", host="a"), go(0.0), end(10.0))
    for node in (0, 1):
        values = {f"gpu.{gpu}.utilization_percent": 100.0 if gpu == 0 else 0.0 for gpu in range(4)}
        samples = [event("", t, n=node) | {"v": values} for t in (1.0, 5.0, 9.0)]
        write_lines(record / f"n{node}.r0" / "metrics.jsonl", *samples)


def test_without_accounting_own_runs_tell(adas: Home) -> None:
    session = replay(adas, Recorded(CASES / "lab", disabled=True))
    finished(adas, "toy-2222", "local")
    (found,) = gather.wasted(session, "local", since_s=1e9)
    assert found.waste is not None
    assert not found.accounting
    assert found.waste.total.held * 3600 == pytest.approx(80.0)
    assert found.waste.total.idle * 3600 == pytest.approx(60.0)
    assert found.waste.total.unmeasured == 0
    assert [job.run for job in found.waste.jobs] == ["toy-2222"]
    assert found.goodput is not None
    assert found.goodput.as_json()["unit"] == "gpu_s"
    document = found.as_json()
    assert document["goodput"] == document["goodput_of_runs"]["toy-2222"]
    assert found.goodput_lines[0].endswith("with the queue (ETTR)")
    (other,) = gather.wasted(session, "adas")
    assert other.waste is not None
    assert (other.accounting, other.waste.total.held) == (False, 0.0)


def test_with_accounting_all_jobs_tell(adas: Home) -> None:
    reach = Recorded(CASES / "lab")
    (found,) = gather.wasted(replay(adas, reach, Clock(1794813988.0)), "adas", since_s=86400)
    assert [command[0] for command in reach.asked] == ["sacct", "sinfo"]
    assert "--starttime=now-86400seconds" in reach.asked[0]
    assert found.waste is not None
    assert found.price is not None
    assert (found.accounting, found.price.per_gpu_hour, found.waste.gpus) == (True, 2.0, 24)
    assert [job.job for job in found.waste.whole_nodes] == ["2", "10"]
