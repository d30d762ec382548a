"""The Slurm exporter: what sinfo and squeue print becomes samples, and Slurm is not asked for every reader."""

from __future__ import annotations

from podwright.telemetry import slurm_exporter
from podwright.telemetry.page import MetricSample

NODES = """\
n1   idle       0/4/0/4   gpu:a100:2(S:0)   gpu:a100:0(IDX:N/A)
n2   mixed      1/3/0/4   gpu:a100:2(S:0)   gpu:a100:1(IDX:0)
n2   mixed      1/3/0/4   gpu:a100:2(S:0)   gpu:a100:1(IDX:0)
n3   down*      0/0/4/4   (null)            gpu:0
"""
JOBS = "RUNNING gpu\nPENDING gpu\nPENDING gpu\n"


def said(command: list[str]) -> str:
    return {"sinfo": NODES, "squeue": JOBS}[command[0]]


def test_nodes_of_two_partitions_count_once() -> None:
    lines = slurm_exporter.SlurmPage(said).text().splitlines()
    assert [line for line in lines if not line.startswith("#")] == [
        "slurm_up 1",
        'slurm_nodes{state="down"} 1',
        'slurm_nodes{state="idle"} 1',
        'slurm_nodes{state="mixed"} 1',
        'slurm_cpus{state="allocated"} 1',
        'slurm_cpus{state="idle"} 7',
        'slurm_cpus{state="other"} 4',
        'slurm_cpus{state="total"} 12',
        'slurm_gpus{state="allocated"} 1',
        'slurm_gpus{state="total"} 4',
        'slurm_jobs{state="pending",partition="gpu"} 2',
        'slurm_jobs{state="running",partition="gpu"} 1',
    ]


def test_a_slurm_that_does_not_answer_is_down() -> None:
    def fails(command: list[str]) -> str:
        raise OSError(command[0])

    assert slurm_exporter.ask(fails) == [MetricSample("slurm_up", (), 0)]


def test_many_readers_ask_slurm_once() -> None:
    asked: list[str] = []

    def counted(command: list[str]) -> str:
        asked.append(command[0])
        return said(command)

    page = slurm_exporter.SlurmPage(counted)
    assert {page.text() for _ in range(3)} == {page.text()}
    assert asked == ["sinfo", "squeue"]
