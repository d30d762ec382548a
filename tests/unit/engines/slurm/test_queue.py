"""The queue: one question for all runs, a controller that is away loses nobody, accounting has the last word."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from podwright.clients.ssh import Answer
from podwright.engines.base import Status
from podwright.engines.slurm.queue import ABSENT_S, FLOOR_S, SILENT_S, SlurmQueue, explained, parse_queue
from podwright.runs import Home, RunFolder
from tests.fixtures.clock import Clock
from tests.unit.runs.made import asked

GONE = Status("gone", "Slurm does not know it any more")


class Cluster:
    """Answers as Slurm's commands do, and counts the questions."""

    is_here = True

    def __init__(self) -> None:
        self.squeue = Answer(0, b"", "")
        self.sacct = Answer(1, b"", "Slurm accounting storage is disabled")
        self.calls: list[list[str]] = []

    def call(self, argv: Sequence[str], stdin: bytes = b"", env: Mapping[str, str] | None = None) -> Answer:
        self.calls.append(list(argv))
        return {"squeue": self.squeue, "sacct": self.sacct}.get(argv[0], Answer(0, b"", ""))

    def terminal(self, argv: Sequence[str]) -> list[str]:
        return list(argv)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def add(tmp_path: Path, run_id: str, handle: str | None = "70", **changes: object) -> RunFolder:
    home = Home.open(tmp_path / "home")
    folder = home.create(asked(run_id, **changes), {}, {})
    if handle:
        line = json.dumps({"t": 0, "k": "submitted", "handle": handle})
        (folder.path / "client.jsonl").write_text(line + "\n")
    return folder


def lines(*rows: str) -> Answer:
    return Answer(0, "".join(row + "\n" for row in rows).encode(), "")


def test_rows_of_jobs_and_of_tasks() -> None:
    text = (
        "70|70|RUNNING|None|podwright|toy-2222\n71_3|71|PENDING|Priority|podwright|sweep-3333\n"
        "71_[4-9%2]|71|PENDING|Priority|podwright|sweep-3333\n"
    )
    assert [row.run for row in parse_queue(text)] == ["toy-2222", "sweep-3333-3", "sweep-3333"]


def test_any_number_of_runs_is_one_question(tmp_path: Path, clock: Clock) -> None:
    cluster = Cluster()
    points = [add(tmp_path, f"sweep-3333-{i}", "71", parent="sweep-3333", index=i - 1) for i in range(1, 41)]
    cluster.squeue = lines(*(f"71_{i}|71|PENDING|Priority|podwright|sweep-3333" for i in range(1, 41)))
    queue = SlurmQueue(cluster, clock)
    for _ in range(5):
        found = queue.status(points)
    assert {seen.state for seen in found.values()} == {"waiting"}
    assert {seen.handle for seen in found.values()} == {"71"}
    assert len(cluster.calls) == 1
    clock.now += FLOOR_S
    queue.status(points)
    assert len(cluster.calls) == 2


@pytest.mark.parametrize(("handle", "state"), [("70", "there"), ("71", "gone"), (None, "there")])
def test_of_two_jobs_of_one_name_the_one_that_was_given_counts(
    tmp_path: Path, clock: Clock, handle: str | None, state: str
) -> None:
    """A submission that was thought lost may be repeated; a client that could not say which it was takes the first."""
    cluster = Cluster()
    cluster.squeue = lines("71|71|FAILED|NonZeroExitCode|podwright|toy-2222", "70|70|RUNNING|None|podwright|toy-2222")
    assert SlurmQueue(cluster, clock).status([add(tmp_path, "toy-2222", handle)])["toy-2222"].state == state


def test_a_controller_that_is_away_loses_nobody(tmp_path: Path, clock: Clock) -> None:
    cluster = Cluster()
    run, new, waiting = add(tmp_path, "toy-2222"), add(tmp_path, "toy-3333", "71"), add(tmp_path, "toy-4444", "72")
    cluster.squeue = lines("70|70|RUNNING|None|podwright|toy-2222", "72|72|PENDING|Priority|podwright|toy-4444")
    queue = SlurmQueue(cluster, clock)
    assert queue.status([run, waiting])["toy-4444"].state == "waiting"
    cluster.squeue = Answer(1, b"", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n")
    for _ in range(5):
        clock.now += 10
        found = queue.status([run, new, waiting])
        assert found["toy-2222"].state == "there"
        assert found["toy-3333"].state == "there"
    for name in ("toy-3333", "toy-4444"):
        assert found[name].state == "there", "it may be at work by now"
        assert found[name].reason.startswith("Slurm does not answer: slurm_load_jobs error")


def test_a_cluster_that_stays_away_is_silent(tmp_path: Path, clock: Clock) -> None:
    """At once where it never answered: Slurm's own commands have waited for it by then."""
    cluster, run = Cluster(), add(tmp_path, "toy-2222")
    away = Answer(1, b"", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n")
    cluster.squeue = away
    first = SlurmQueue(cluster, clock).status([run, add(tmp_path, "toy-3333", None)])
    assert {status.silent for status in first.values()} == {away.err.strip()}
    queue = SlurmQueue(cluster, clock)
    cluster.squeue = lines("70|70|RUNNING|None|podwright|toy-2222")
    assert queue.status([run])["toy-2222"].silent == ""
    cluster.squeue = away
    silences = []
    for _ in range(3):
        clock.now += SILENT_S / 2 - 1
        silences.append(bool(queue.status([run])["toy-2222"].silent))
    assert silences == [False, False, True]


def test_one_empty_list_is_not_believed(tmp_path: Path, clock: Clock) -> None:
    cluster = Cluster()
    run = add(tmp_path, "toy-2222")
    queue = SlurmQueue(cluster, clock)
    assert queue.status([run])["toy-2222"].state == "there"
    clock.now += ABSENT_S / 2
    cluster.squeue = lines("70|70|RUNNING|None|podwright|toy-2222")
    assert queue.status([run])["toy-2222"].state == "there"
    cluster.squeue = lines()
    clock.now += ABSENT_S
    assert queue.status([run])["toy-2222"].state == "there", "it was seen meanwhile"
    clock.now += ABSENT_S
    assert queue.status([run])["toy-2222"] == GONE


def test_accounting_knows_what_the_controller_forgot(tmp_path: Path, clock: Clock) -> None:
    cluster = Cluster()
    cluster.sacct = lines("70|CANCELLED by 1000|None|", "71_2|OUT_OF_MEMORY|None|podwright: the folder is full")
    runs = [add(tmp_path, "toy-2222"), add(tmp_path, "sweep-3333-2", "71", parent="sweep-3333", index=1)]
    queue = SlurmQueue(cluster, clock)
    queue.status(runs)
    clock.now += ABSENT_S
    found = queue.status(runs)
    assert [found[run.id].outcome for run in runs] == ["cancelled", "failed"]
    clock.now += 100
    queue.status(runs)
    assert sum(call[0] == "sacct" for call in cluster.calls) == 1, "what is over is not asked again"


def test_a_run_that_was_never_submitted_is_gone(tmp_path: Path, clock: Clock) -> None:
    run = add(tmp_path, "toy-2222", None)
    assert SlurmQueue(Cluster(), clock).status([run])["toy-2222"] == Status("gone", "it was never submitted")


def test_a_run_whose_predecessor_failed_was_not_cancelled(tmp_path: Path, clock: Clock) -> None:
    cluster = Cluster()
    cluster.squeue = lines("70|70|CANCELLED|DependencyNeverSatisfied|podwright|toy-2222")
    run = add(tmp_path, "toy-2222", after="first-2222")
    found = SlurmQueue(cluster, clock).status([run])["toy-2222"]
    assert (found.outcome, found.reason) == ("failed", "first-2222, which it comes after, did not succeed")


def test_a_double_is_ended_and_the_first_is_taken() -> None:
    cluster = Cluster()
    cluster.squeue = lines("72", "70", "70")
    assert SlurmQueue(cluster).find("toy-2222") == "70"
    assert cluster.calls[-1] == ["scancel", "--", "72"]


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        (1, "is next: it waits for nodes to become free"),
        (2, "is next: it waits for nodes to become free, for 1m 0s at most for some under one switch"),
    ],
)
def test_a_run_says_that_it_waits_for_nodes_under_one_switch(tmp_path: Path, nodes: int, words: str) -> None:
    """While nodes under other switches are idle."""
    folder = add(tmp_path, "toy-2222", nodes=nodes)
    (folder.path / "job").mkdir(exist_ok=True)
    site = {"folder": "/scratch", "step": [], "wrap": [], "switches_s": 60.0}
    (folder.path / "job" / "site.json").write_text(json.dumps(site))
    assert explained(folder, "PENDING", "Resources").reason == words


@pytest.mark.parametrize(
    ("row", "told", "reason"),
    [
        ("COMPLETED|None|podwright", True, ""),
        ("COMPLETED|None|podwright: the run's folder is full", True, "the run's folder is full"),
        (
            "FAILED|NonZeroExitCode|podwright: the run's folder is full",
            False,
            "ended with an error; the run's folder is full",
        ),
        ("RUNNING|None|podwright: the run's folder is full", False, ""),
    ],
)
def test_what_the_folder_had_no_room_for_is_read_from_slurm(
    tmp_path: Path, clock: Clock, row: str, told: bool, reason: str
) -> None:
    cluster = Cluster()
    cluster.squeue = lines(f"70|70|{row}|toy-2222")
    found = SlurmQueue(cluster, clock).status([add(tmp_path, "toy-2222")])["toy-2222"]
    assert (found.told, found.reason) == (told, reason)
