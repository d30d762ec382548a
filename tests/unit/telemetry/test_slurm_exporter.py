"""The Slurm exporter: what sinfo and squeue print becomes samples; the page over HTTP."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request

import pytest

from podwright.telemetry import slurm_exporter

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
    lines = slurm_exporter.page(slurm_exporter.ask(said)).splitlines()
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


def test_a_label_cannot_end_its_quotes() -> None:
    samples: slurm_exporter.Samples = {"slurm_jobs": {(("state", "running"), ("partition", 'a"b\\c')): 1}}
    assert 'slurm_jobs{state="running",partition="a\\"b\\\\c"} 1' in slurm_exporter.page(samples).splitlines()


def test_a_slurm_that_does_not_answer_is_down() -> None:
    def fails(command: list[str]) -> str:
        raise OSError(command[0])

    assert slurm_exporter.ask(fails) == {"slurm_up": {(): 0}}


def test_only_the_page_of_metrics_is_served() -> None:
    with slurm_exporter.Exporter(("127.0.0.1", 0)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        place = f"http://127.0.0.1:{server.server_address[1]}"
        with urllib.request.urlopen(f"{place}/metrics") as answer:
            assert b"# TYPE slurm_up gauge" in answer.read()
        with pytest.raises(urllib.error.HTTPError, match="404") as caught:
            urllib.request.urlopen(f"{place}/etc/passwd")
        caught.value.close()
        server.shutdown()
