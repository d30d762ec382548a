"""Points of a sweep on one machine: side by side as far as they fit, each with GPUs and CPUs of its own.

There are no GPUs here: the machine is said to have some, and programs are asked which of them they see.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from podwright import launch
from podwright.engines.base import Request
from podwright.engines.local import LocalEngine
from podwright.engines.local.engine import LocalFacts, lock_holder
from podwright.runs import Home
from tests.contract.sites import END_S, until
from tests.fixtures.launching import Load

# Says that it began, goes on when so many points have begun, or when it is let go, and says that it ends.
POINT = """
import os, pathlib, sys, time
ledger, point, company = pathlib.Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
def say(word):
    with (ledger / "lines").open("a") as file:
        file.write(f"{word} {point}\\n")
say("began")
print("gpus", os.environ.get("CUDA_VISIBLE_DEVICES"), "cpus", len(os.sched_getaffinity(0)), flush=True)
while not (ledger / "go").exists():
    began = [line for line in (ledger / "lines").read_text().splitlines() if line.startswith("began")]
    if len(began) >= company:
        break
    time.sleep(0.02)
say("ended")
"""


class FakeMachine(LocalEngine):
    """The local engine on a machine with four CPUs and the GPUs 4 to 7, which the tests' need not have."""

    def probe(self, request: Request) -> LocalFacts:
        return replace(super().probe(request), cpus=4, gpus=("4", "5", "6", "7"), memory_bytes=64 << 30)


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    (tmp_path / "ledger").mkdir()
    return tmp_path / "ledger"


Start = Callable[..., launch.Run]


@pytest.fixture
def start(home: Home, load: Load, ledger: Path) -> Start:
    """Starts points that wait for so many of their company."""

    def started(company: int, points: int, *fields: str) -> launch.Run:
        (ledger.parent / "work" / "code").mkdir(parents=True, exist_ok=True)
        (ledger.parent / "work" / "code" / "point.py").write_text(POINT)
        numbers = list(range(1, points + 1))
        command = f"command: python3 point.py {ledger} {{matrix.point}} {company}"
        lines = [command, "code: code", f"matrix: {{point: {numbers}}}", "time_limit: 2m", "ranks_per_node: 1", *fields]
        session = launch.Session(home, engines={"local": FakeMachine})
        return launch.start(session, load("\n".join(lines)))

    return started


def lines(ledger: Path) -> list[str]:
    return (ledger / "lines").read_text().splitlines()


def seen(run: launch.Run) -> list[str]:
    return [line.text for point in run.points() for line in point.logs()]


def test_points_that_fit_run_side_by_side_and_each_sees_its_own_gpus(start: Start, ledger: Path) -> None:
    run = start(2, 2, "resources: {cpus: 2, gpus: 2}")
    assert run.wait(END_S).state == "succeeded", run.explain()
    assert sorted(lines(ledger)[:2]) == ["began 1", "began 2"]
    assert [line.split(" cpus ")[0] for line in seen(run)] == ["gpus 4,5", "gpus 6,7"]
    halves = len(os.sched_getaffinity(0)) // 2 or 1
    assert all(int(line.split()[-1]) <= halves + 1 for line in seen(run))


def test_a_place_that_gets_free_is_taken_by_the_next_point(start: Start, ledger: Path) -> None:
    run = start(2, 5, "resources: {cpus: 1, gpus: 2}")
    assert run.wait(END_S).state == "succeeded", run.explain()
    places = {line.split()[1] for line in seen(run)}
    assert places == {"4,5", "6,7"}
    running, most = set(), 0
    for word, point in map(str.split, lines(ledger)):
        running = running | {point} if word == "began" else running - {point}
        most = max(most, len(running))
    assert most == 2


def test_virtual_nodes_of_a_point_share_its_gpus_out(start: Start) -> None:
    run = start(1, 2, "resources: {cpus: 1, gpus: 1}", "nodes: 2", "launcher: ranks")
    assert run.wait(END_S).state == "succeeded", run.explain()
    assert sorted(line.split()[1] for line in seen(run)) == ["4", "5", "6", "7"]


@pytest.mark.parametrize("resources", ["{memory: 1GiB}", "{cpus: 3}", "{cpus: 1, memory: 40GiB}", "{cpus: 1, gpus: 4}"])
def test_points_that_do_not_fit_or_do_not_say_run_one_after_the_other(
    start: Start, ledger: Path, resources: str
) -> None:
    run = start(1, 2, f"resources: {resources}")
    assert run.wait(END_S).state == "succeeded", run.explain()
    assert lines(ledger) == ["began 1", "ended 1", "began 2", "ended 2"]


def test_a_cancelled_point_leaves_its_neighbours_and_one_that_waits_ends_at_once(start: Start, ledger: Path) -> None:
    run = start(9, 3, "resources: {cpus: 2}", "grace: 1s")
    first, second, third = run.points()
    until(lambda: (ledger / "lines").exists() and len(lines(ledger)) == 2, "both places are taken")
    third.cancel()
    assert third.wait(END_S).state == "cancelled"
    first.cancel()
    assert first.wait(END_S).state == "cancelled"
    (ledger / "go").touch()
    assert second.wait(END_S).state == "succeeded"
    assert lines(ledger)[2:] == ["ended 2"]


def test_a_keeper_that_dies_and_comes_back_doubles_no_point(start: Start, ledger: Path) -> None:
    run = start(9, 3, "resources: {cpus: 1, gpus: 2}")
    until(lambda: (ledger / "lines").exists() and len(lines(ledger)) == 2, "both places are taken")
    points = run.points()
    keeper = until(lambda: lock_holder(points[0].folder), "somebody keeps it")
    os.kill(keeper, signal.SIGKILL)
    until(lambda: lock_holder(points[0].folder) is None, "nobody keeps it")
    FakeMachine().submit(run.id, [point.folder for point in points], again=True)
    (ledger / "go").touch()
    assert run.wait(END_S).state == "succeeded", run.explain()
    assert sorted(lines(ledger)) == [f"{word} {point}" for word in ("began", "ended") for point in (1, 2, 3)]
    before = lines(ledger)[: lines(ledger).index("began 3")]
    assert {"ended 1", "ended 2"}.intersection(before), "it waited for a place"


def test_repeats_are_samples_and_run_one_by_one(home: Home, load: Load, ledger: Path) -> None:
    (ledger.parent / "work" / "code").mkdir(parents=True, exist_ok=True)
    (ledger.parent / "work" / "code" / "point.py").write_text(POINT)
    workload = load(f"command: python3 point.py {ledger} 1 1\ncode: code\nresources: {{cpus: 1}}")
    session = launch.Session(home, engines={"local": FakeMachine})
    assert launch.start(session, workload, repeat=2).wait(END_S).state == "succeeded"
    assert lines(ledger) == ["began 1", "ended 1", "began 1", "ended 1"]
