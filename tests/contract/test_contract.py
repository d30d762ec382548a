"""What every engine must do: submit, follow, cancel, fail, retry, lose a node, come back after the client died."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from podwright import launch
from podwright.engines.base import Engine
from podwright.launch.again import start_again
from podwright.launch.submission import Submission, prepare, start
from podwright.runs import RunFolder
from podwright.spec import Refusal
from tests.contract.sites import END_S, LocalSite, Site, until


def test_a_run_succeeds_and_leaves_its_record(site: Site) -> None:
    run = site.start("--steps 4", nodes=2, ranks_per_node=2)
    record = run.wait(END_S)
    assert (record.state, record.exit_code, record.attempts) == ("succeeded", 0, 1)
    assert (record.nodes, record.world_size, len(record.hosts)) == (2, 4, 2)
    assert record.results["step"] == 4
    assert record.started_at is not None
    assert record.ended_at is not None
    texts = [line.text for line in run.logs()]
    for rank in range(4):
        assert f"rank {rank} of 4 starts at step 0, attempt 1" in texts
    assert {line.rank for line in run.logs(rank=3)} == {3}
    assert {sample.node for sample in run.metrics()} == {0, 1}
    assert site.processes(run) == []


def test_ranks_see_the_torchrun_contract(site: Site) -> None:
    names = "RANK LOCAL_RANK WORLD_SIZE LOCAL_WORLD_SIZE GROUP_RANK PODWRIGHT_RUN PODWRIGHT_ATTEMPT PODWRIGHT_SHARED"
    code = f"import os; print([os.environ[n] for n in '{names}'.split()], int(os.environ['MASTER_PORT']) > 0)"
    command = json.dumps([sys.executable, "-c", code])
    run = site.start(command=command, nodes=2, ranks_per_node=2)
    assert run.wait(END_S).state == "succeeded"
    shared = "1" if site.shared else "0"
    expected = [f"{[str(r), str(r % 2), '4', '2', str(r // 2), run.id, '1', shared]} True" for r in range(4)]
    assert sorted(line.text for line in run.logs()) == expected


def test_a_run_from_the_checkpoint_of_another_goes_on_where_that_was(shared: Site) -> None:
    run = shared.start("--steps 3")
    assert run.wait(END_S).state == "succeeded", run.explain()
    resumed = shared.adopt(start_again(shared.session, run.id, resume=True).id)
    assert resumed.wait(END_S).state == "succeeded", resumed.explain()
    assert "rank 0 of 1 starts at step 3, attempt 1" in [line.text for line in resumed.logs()]


@pytest.mark.parametrize("nodes", [1, 2])
def test_torchrun_starts_the_ranks(site: Site, nodes: int) -> None:
    run = site.start("--steps 2", nodes=nodes, ranks_per_node=2, launcher="torchrun")
    record = run.wait(END_S)
    assert (record.state, record.world_size) == ("succeeded", 2 * nodes), run.explain()
    ranks = {event["rank"] for event in site.events(run, "rank")}
    assert ranks == set(range(2 * nodes))
    assert site.events(run, "ready")[0]["world_size"] == 2 * nodes


def test_mpirun_starts_the_ranks(site: Site) -> None:
    run = site.start("--steps 2", nodes=2, ranks_per_node=2, launcher="mpi")
    record = run.wait(END_S)
    assert (record.state, record.world_size) == ("succeeded", 4), run.explain()
    assert {(event["n"], event["rank"]) for event in site.events(run, "rank")} == {(0, 0), (0, 1), (1, 2), (1, 3)}


def test_a_failed_rank_fails_the_run_and_is_named(site: Site) -> None:
    run = site.start("--steps 200 --fail-at 3 --rank 1", nodes=2)
    record = run.wait(END_S)
    host = record.hosts[1]
    assert (record.state, record.exit_code) == ("failed", 7)
    assert record.reason == f"rank 1 on {host} exited with 7"
    lines = run.explain()
    assert lines[0].startswith(f"rank 1 on {host} exited with 7 after ")
    assert lines[0].endswith("; rank 0 was stopped")
    assert "it went wrong here" in lines
    assert site.processes(run) == []


def test_a_command_that_is_not_there_is_said(site: Site) -> None:
    record_run = site.start(command="no-such-program --now")
    record = record_run.wait(END_S)
    assert (record.state, record.exit_code) == ("failed", 127)
    assert "podwright: no-such-program: command not found" in record_run.explain()


def test_a_retry_goes_on_from_the_checkpoint(shared: Site) -> None:
    run = shared.start("--steps 8 --fail-at 5 --rank 0", nodes=2, retries=2)
    record = run.wait(END_S)
    assert (record.state, record.attempts) == ("succeeded", 2)
    told = shared.steps(run, 0)
    assert told == list(range(1, 5)) + list(range(5, 9)), "the loss curve goes on where it was"
    goes = shared.events(run, "go")
    assert [go["e"] for go in goes] == [[0, 0], [0, 1]]
    assert [go["retries_left"] for go in goes] == [2, 1]
    assert goes[0]["master_port"] != goes[1]["master_port"]


def test_one_node_retries_without_a_shared_folder(site: Site) -> None:
    run = site.start("--steps 6 --fail-at 3", retries=1)
    assert (run.wait(END_S).state, run.record().attempts) == ("succeeded", 2)


def test_retries_over_nodes_that_share_nothing_are_refused(tmp_path: Path) -> None:
    site = LocalSite("local-frames", tmp_path)
    with pytest.raises(Refusal, match="retries over several nodes need a checkpoint folder that all of them share"):
        site.start(nodes=2, retries=1)


def test_retries_are_counted_and_end(shared: Site) -> None:
    run = shared.start("--steps 9 --fail-at 2 --fail-always", retries=2)
    record = run.wait(END_S)
    assert (record.state, record.attempts, record.exit_code) == ("failed", 3, 7)


def test_cancel_asks_the_ranks_first(site: Site) -> None:
    run = site.start("--steps 9999", nodes=2)
    site.wait_step(run, 2)
    run.cancel()
    record = run.wait(END_S)
    assert record.state == "cancelled"
    assert {event["signal"] for event in site.events(run, "rank_end")} == {"SIGTERM"}
    assert site.processes(run) == []


def test_after_the_grace_period_the_whole_tree_is_killed(site: Site) -> None:
    run = site.start("--steps 9999 --ignore-term --daemon", grace="2s")
    site.wait_step(run, 2)
    run.cancel()
    assert run.wait(END_S).state == "cancelled"
    assert "not listening" in [line.text for line in run.logs()]
    assert site.processes(run) == [], "daemons of a rank end with the run"


def test_a_daemon_does_not_outlive_a_run_that_succeeds(site: Site) -> None:
    run = site.start("--steps 2 --daemon")
    assert run.wait(END_S).state == "succeeded"
    assert site.processes(run) == []


@pytest.mark.parametrize(
    ("how", "words"), [("", "it is at step 2, others are further"), ("--ignore-term", "its process is stopped")]
)
def test_a_hang_is_found_and_the_rank_named(shared: Site, how: str, words: str) -> None:
    run = shared.start(f"--steps 6 --pause 0.02 --hang-at 3 --rank 1 {how}", nodes=2, retries=1, hang_after="4s")
    record = run.wait(END_S)
    hang = shared.events(run, "hang")[0]
    assert (hang["rank"], hang["node"]) == (1, 1)
    assert (record.state, record.attempts) == ("succeeded", 2)
    if how:
        assert hang["why"] == words


def test_a_lost_node_comes_back_and_spends_no_retry(shared: Site) -> None:
    run = shared.start("--steps 6 --hold-at 3", nodes=2, retries=1)
    shared.wait_step(run, 3)
    shared.kill_pilot(run, 1)
    record = run.wait(END_S)
    assert (record.state, record.attempts) == ("succeeded", 2)
    assert [go["e"] for go in shared.events(run, "go")] == [[0, 0], [1, 0]]
    assert shared.events(run, "go")[-1]["retries_left"] == 1


def test_with_a_spare_the_world_is_as_large_after_a_loss(shared: Site) -> None:
    """Its engine may be as fast as the spare: whichever trains, as many ranks as before go on from the checkpoint."""
    run = shared.start("--steps 6 --hold-at 3", nodes=2, spares=1)
    for rank in (0, 1):
        shared.wait_step(run, 3, rank)
    shared.kill_pilot(run, 1)
    record = run.wait(END_S)
    assert (record.state, record.attempts, record.world_size) == ("succeeded", 2, 2), record.reason
    first, second = shared.events(run, "go")
    assert (first["waiting"], first["world_size"], second["world_size"]) == ([2], 2, 2)
    assert set(shared.steps(run, 1)) == {1, 2, 3, 4, 5, 6}


def test_a_node_with_a_slow_rank_gives_its_place_to_the_spare(shared: Site) -> None:
    run = shared.start("--steps 6 --hold-at 4 --slow 1", nodes=2, spares=1, replace_slow="30%")
    record = run.wait(END_S)
    assert (record.state, record.attempts, record.world_size) == ("succeeded", 2, 2), record.reason
    (slow,) = shared.events(run, "slow")
    assert (slow["rank"], slow["node"], slow["slower_by"], slow["stays"]) == (1, 1, 0.5, "")
    assert slow["evidence"] == "1.5 s of own work in a step, 1 s in the middle of the others, 3 times in a row"
    assert [go["waiting"] for go in shared.events(run, "go")] == [[2], [1]]
    assert shared.events(run, "retry")[0]["why"] == f"rank 1 on {slow['host']} was slower by 50%"
    assert set(shared.steps(run, 1)) == {1, 2, 3, 4, 5, 6}


def test_a_leader_that_dies_is_replaced(shared: Site) -> None:
    run = shared.start("--steps 6 --hold-at 3", nodes=2, retries=1)
    shared.wait_step(run, 3)
    shared.kill_pilot(run, 0)
    record = run.wait(END_S)
    assert (record.state, record.attempts) == ("succeeded", 2)
    assert shared.events(run, "go")[-1]["retries_left"] == 1
    assert record.results["step"] == 6


def test_a_killed_rank_resumes(shared: Site) -> None:
    run = shared.start("--steps 6 --hold-at 3", nodes=2, retries=1)
    shared.wait_step(run, 3)
    shared.kill_rank(run, 1)
    record = run.wait(END_S)
    assert (record.state, record.attempts) == ("succeeded", 2)
    assert shared.events(run, "failed")[0]["why"] == "was killed by SIGKILL"


def test_when_all_is_killed_the_run_is_lost_and_nothing_stays(keeping: LocalSite) -> None:
    run = keeping.start("--steps 9999 --daemon", nodes=2)
    keeping.wait_step(run, 2)
    for pid in [keeping.keeper(run), *keeping.processes(run)]:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    record = run.wait(END_S)
    assert (record.state, record.reason) == ("lost", "no process of it is left on this machine")
    assert keeping.processes(run) == []


def test_without_its_keeper_a_run_ends_well(keeping: LocalSite) -> None:
    run = keeping.start("--steps 30 --pause 0.2", nodes=2)
    keeping.wait_step(run, 2)
    until(lambda: run.record().state == "running", "the leader's own words are here too: each node sends its own")
    os.kill(keeping.keeper(run), signal.SIGKILL)
    assert run.record().state == "running"
    assert run.wait(END_S).state == "succeeded"


def test_a_run_outlives_its_client_and_any_other_finds_it(site: Site) -> None:
    site.workload("--steps 20")
    file = site.folder / "workload.yaml"
    code = f"""
import os, signal
from pathlib import Path
from podwright import launch, spec
from podwright.runs import Home
home = Home.open(Path({str(site.home.path)!r}))
run = launch.start(launch.Session(home), spec.load_workload({str(file)!r}), {site.target!r})
print(run.id, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    client = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert client.returncode == -signal.SIGKILL, client.stderr
    assert site.adopt(client.stdout.strip()).wait(END_S).state == "succeeded"


class DyingEngine:
    """An engine whose client is killed just before it submits."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def submit(self, run_id: str, folders: Sequence[RunFolder], again: bool) -> str:
        raise KeyboardInterrupt


def test_a_client_that_dies_before_submitting_loses_nothing(shared: Site) -> None:
    prepared = prepare(
        shared.session, Submission(shared.workload("--steps 3"), shared.target, shared.home.new_id("count"))
    )
    with pytest.raises(KeyboardInterrupt):
        start(shared.session, replace(prepared, engine=DyingEngine(prepared.engine)))
    run = shared.adopt("last")
    assert run.wait(END_S).state == "succeeded"


def test_the_time_limit_ends_a_run(site: Site) -> None:
    run = site.start("--steps 9999", time_limit="1s", grace="1s")
    record = run.wait(END_S)
    assert (record.state, record.reason) == ("failed", "the time limit of 1 s is over")


def test_reaching_the_goal_stops_the_clock(site: Site) -> None:
    run = site.start("--steps 9", goal="{metric: loss, at_most: 0.3}")
    record = run.wait(END_S)
    assert record.state == "succeeded"
    assert record.time_to_train_s is not None
    assert record.duration_s is not None
    assert 0 < record.time_to_train_s < record.duration_s
    missed = site.start("--steps 2", goal="{metric: loss, at_most: 0.01}").wait(END_S)
    assert (missed.state, missed.time_to_train_s) == ("succeeded", None)


def test_a_matrix_is_one_run_with_points(site: Site) -> None:
    run = site.start("--steps {matrix.steps}", matrix="{steps: [1, 2, 3]}")
    record = run.wait(END_S)
    assert (record.state, record.reason) == ("succeeded", "3 succeeded")
    points = run.points()
    assert [point.id for point in points] == [f"{run.id}-{i}" for i in (1, 2, 3)]
    assert [point.record().matrix for point in points] == [{"steps": 1}, {"steps": 2}, {"steps": 3}]
    assert [point.record().results["step"] for point in points] == [1, 2, 3]


def test_a_point_that_fails_fails_the_whole_and_the_others_go_on(site: Site) -> None:
    run = site.start("--steps 2 --fail-at {matrix.at}", matrix="{at: [1, 9]}")
    record = run.wait(END_S)
    assert (record.state, record.reason) == ("failed", "1 failed, 1 succeeded")


def test_cancelling_a_point_leaves_the_others(shared: Site) -> None:
    run = shared.start("--steps {matrix.steps}", matrix="{steps: [9999, 2, 9998]}")
    first, second, third = run.points()
    shared.wait_step(first, 1)
    third.cancel()
    first.cancel()
    run.wait(END_S)
    assert [p.record().state for p in (first, second, third)] == ["cancelled", "succeeded", "cancelled"]


def test_one_run_after_another(site: Site) -> None:
    first = site.start("--steps 10")
    second = site.start("--steps 1", after=first.id)
    assert second.wait(END_S).state == "succeeded"
    ended, began = first.record().ended_at, second.record().started_at
    assert ended is not None
    assert began is not None
    assert ended <= began
    failed = site.start("--steps 9 --fail-at 1")
    never = site.start("--steps 1", after=failed.id)
    record = never.wait(END_S)
    assert (record.state, record.attempts) == ("failed", 0)
    assert record.reason == f"{failed.id}, which it comes after, did not succeed"


def test_setup_lines_make_the_environment(site: Site) -> None:
    command = json.dumps([sys.executable, "-c", "import os; print(os.environ['GREETING'])"])
    run = site.start(command=command, setup='["export GREETING=hello", "GREETING=\\"$GREETING there\\""]')
    assert run.wait(END_S).state == "succeeded"
    assert [line.text for line in run.logs()] == ["hello there"]


def test_setup_that_fails_is_said(site: Site) -> None:
    run = site.start(setup='["echo no such module >&2", "exit 3"]')
    assert run.wait(END_S).state == "failed"
    assert "setup exited with 3" in run.record().reason
    assert run.explain()[-1] == "no such module"


def test_ten_clients_at_once_do_not_hurt_each_other(local: LocalSite) -> None:
    local.workload("--steps 2")
    code = f"""
from pathlib import Path
from podwright import launch, spec
from podwright.runs import Home
home = Home.open(Path({str(local.home.path)!r}))
run = launch.start(launch.Session(home), spec.load_workload({str(local.folder / "workload.yaml")!r}))
launch.recent(launch.Session(home))
print(run.id, run.wait({END_S}).state)
"""
    results: list[str] = []

    def client() -> None:
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
        results.append(done.stdout.strip() or done.stderr)

    threads = [threading.Thread(target=client) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [result.split()[-1] for result in results] == ["succeeded"] * 10, results
    assert len({result.split()[0] for result in results}) == 10
    assert {record.state for record in launch.recent(local.session)} == {"succeeded"}


def test_a_second_submit_of_the_same_run_starts_nothing(local: LocalSite) -> None:
    run = local.start("--steps 20")
    starter = run.folder.path / "job" / "start.sh"
    again = subprocess.run(["/bin/sh", str(starter)], stdout=subprocess.DEVNULL, check=False, timeout=END_S)
    assert again.returncode == 0
    assert run.wait(END_S).attempts == 1
    assert len(local.events(run, "kept")) == 1


def test_a_node_that_never_comes_gives_the_others_back(local: LocalSite) -> None:
    """A node is stopped in the moment between its start and its joining, which is not always caught at once."""
    for _ in range(5):
        run = local.start("--steps 2", nodes=2, join_timeout="2s")
        stopped = local.pilot(run, 1)
        os.kill(stopped, signal.SIGSTOP)
        until(lambda run=run: local.events(run, "go") or local.events(run, "end"), "it goes on or gives up")
        with suppress(ProcessLookupError):
            os.kill(stopped, signal.SIGCONT)
        record = run.wait(END_S)
        if record.state == "failed":
            break
    assert record.state == "failed", "the node joined before it was stopped, every time"
    assert "did not join within 2 s" in record.reason
