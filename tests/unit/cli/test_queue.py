"""`podwright queue`, as a person and a program see it, from recorded words of Slurm."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from podwright.cli.commands.look import queue
from podwright.cli.main import main
from podwright.engines.slurm.usage import parse_jobs, parse_nodes
from podwright.engines.usage import QueuedJob, partitions
from podwright.usage.gather import TargetQueue
from tests.paths import CASES as ALL_CASES

CASES = ALL_CASES / "usage"
NOW = {"lab": 1794813990.0, "odd": 1700000000.0}
Golden = Callable[[Path, str], None]


def recorded(case: str) -> TargetQueue:
    nodes = parse_nodes((CASES / case / "sinfo.txt").read_text())
    jobs = parse_jobs((CASES / case / "squeue.txt").read_text())
    own = [replace(job, run=job.name) if job.name == "part-4444" else job for job in jobs]
    return TargetQueue(
        "adas", tuple(partitions(nodes)), tuple(own), tuple({node.node: node for node in nodes}.values())
    )


@pytest.mark.parametrize("case", NOW)
def test_the_page_of_a_cluster(case: str, golden: Golden) -> None:
    lines = list(queue.page(recorded(case), NOW[case], 80))
    assert max(map(len, lines)) <= 80
    golden(CASES / case / "expected" / "queue.txt", "\n".join(lines) + "\n")


def test_the_document_of_a_cluster(golden: Golden) -> None:
    text = json.dumps(recorded("odd").as_json(), indent=1) + "\n"
    golden(CASES / "odd" / "expected" / "queue.json", text)


def test_a_cluster_that_is_away() -> None:
    away = TargetQueue("adas", away="login1: it cannot be reached: no route")
    assert list(queue.page(away, 0.0, 80)) == ["adas: login1: it cannot be reached: no route"]
    assert away.as_json()["error"] == "login1: it cannot be reached: no route"


def test_a_cluster_of_which_only_a_part_may_be_seen() -> None:
    job = QueuedJob("toy-2222", "toy-2222", "lab", "waiting", "", 1, 8, why="is suspended")
    hidden = "you may not list nodes, so that they and their GPUs are not shown"
    part = TargetQueue("cloud", jobs=(job,), hidden=(hidden,))
    assert list(queue.page(part, 0.0, 80)) == [
        "cloud: 0 jobs run, 1 waits",
        "",
        hidden,
        "",
        "WAITING   JOB  USER  NODES  GPUS  STARTS",
        "toy-2222       lab   1      8     -",
        "  is suspended",
    ]


def test_one_of_all_that_is_away_is_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", "")
    pod = tmp_path / "pod.yaml"
    pod.write_text("name: adas\nnodes: [{hosts: n1, model: dgx-a100}]\nschedulers: [{kind: slurm}]\n")
    assert main(["pod", "add", str(pod)]) == 0
    capsys.readouterr()
    assert main(["queue"]) == 3
    printed = capsys.readouterr().out
    assert printed.startswith("local: 0 jobs run, 0 wait")
    assert printed.endswith("\nadas: sinfo is not on this machine\n")
    assert main(["queue", "adas", "--json"]) == 3
    assert json.loads(capsys.readouterr().out)["errors"][0]["message"] == "sinfo is not on this machine"
    assert queue.complete_target("") == [("local", "this machine"), ("adas", "a pod")]
    assert queue.complete_target("a") == [("adas", "a pod")]
    assert main(["queue", "nowhere"]) == 2
    assert "there is no pod 'nowhere'" in capsys.readouterr().err
