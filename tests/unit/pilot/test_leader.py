"""The leader: every input is a method call, time is a number, links only record."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from podwright.pilot.life.checkpoint import CheckpointWatch
from podwright.pilot.life.leader import FAILURE_GRACE_S, SETTLE_S
from podwright.pilot.life.lease import Leases
from podwright.pilot.life.member import MAX_LOST
from podwright.pilot.ranks.raised import raised
from tests.unit.pilot.crowd import START, Crowd, go_of
from tests.unit.pilot.made import ORDER

# joining


def test_nothing_starts_before_all_are_there(crowd: Any) -> None:
    c = crowd()
    assert c.join(0) is None
    c.after(5.0)
    assert (c.leader.phase, c.links[0].kinds()) == ("join", [])


def test_all_are_there_and_everyone_is_told_to_go(crowd: Any) -> None:
    c = crowd()
    c.join(0)
    c.t += 2.0
    c.join(1)
    c.leader.tick()
    first, second = go_of(c.links[0]), go_of(c.links[1])
    assert (first.pop("place"), second.pop("place")) == (0, 1)
    assert first == second
    assert (first["epoch"], first["attempt"], first["world_size"], first["sockets"]) == ((0, 0), 1, 4, ["s0", "s1"])
    assert first["master_addr"] == "10.0.0.1"
    assert 0 < first["master_port"] < 65536
    assert [(row["node"], row["host"], row["of"]) for row in c.said("joined")] == [(0, "host0", 2), (1, "host1", 2)]
    (told,) = c.said("go")
    assert (told["e"], told["hosts"], told["took_s"], told["retries_left"]) == ([0, 0], ["host0", "host1"], 2.0, 0)


def test_the_world_size_is_proven_when_every_rank_was_seen(crowd: Any) -> None:
    c = crowd().go()
    c.hear(0, "ready", ranks=2)
    c.hear(1, "ready", ranks=1)
    assert c.said("ready") == []
    c.hear(1, "ready", ranks=2)
    c.hear(1, "ready", ranks=2)
    assert c.said("ready") == [{"world_size": 4}]


@pytest.mark.parametrize("node", [-1, 2, 99])
def test_a_node_the_run_does_not_have_is_refused(crowd: Any, node: int) -> None:
    assert crowd().join(node) == f"the run has no node {node}"


def test_a_second_copy_of_a_node_is_refused(crowd: Any) -> None:
    c = crowd().go()
    assert c.join(1, instance="other", host="host9") == "node 1 is already here, from host1"
    assert c.leader.members[1].instance == "i1"


def test_an_older_copy_of_a_node_is_refused(crowd: Any) -> None:
    c = crowd()
    c.join(0)
    assert c.join(1, restart=2) is None
    assert c.join(1, restart=1, instance="old") == "node 1 was replaced by a later copy"


@pytest.mark.parametrize(("lost", "phase"), [(MAX_LOST, "run"), (MAX_LOST + 1, "end")])
def test_a_node_that_is_lost_again_and_again_ends_the_run(crowd: Any, lost: int, phase: str) -> None:
    """Copies that gave their place back are not lost: it may be the hundredth all the same."""
    c = crowd()
    c.join(0, restart=99)
    c.join(1, restart=99, lost=lost)
    c.leader.tick()
    assert c.leader.phase == phase
    if phase == "end":
        assert (c.end["state"], c.end["reason"]) == ("failed", "node 1 was lost 21 times; its last copy is on host1")


def test_a_copy_takes_the_place_of_one_whose_link_is_dead(crowd: Any) -> None:
    c = crowd()
    c.join(0)
    c.join(1)
    c.links[1].alive = False
    assert c.join(1, instance="other") is None
    c.leader.tick()
    assert c.leader.phase == "run"


def test_the_same_process_may_connect_anew_and_its_attempt_goes_on(crowd: Any) -> None:
    c = crowd().go()
    c.everyone("ready", ranks=2)
    old = c.links[1]
    assert c.join(1, idle=False) is None
    assert not old.alive
    c.everyone("done")
    c.after(0.5)
    assert (c.leader.attempts.number, c.end["state"]) == (1, "succeeded")
    assert len(c.said("joined")) == 2


def test_nodes_that_never_come_are_named_and_the_rest_is_given_back(crowd: Any) -> None:
    c = crowd(nodes=4, join_timeout_s=60.0)
    c.join(0)
    c.join(2)
    c.after(59.0)
    assert c.leader.phase == "join"
    c.after(2.0)
    why = "node 1, 3 did not join within 60 s"
    assert c.said("given_back") == [{"why": why}]
    assert c.links[2].sent[-1] == {"k": "end", "state": "given_back"}
    c.links[2].alive = False
    c.leader.tick()
    assert c.leader.exit_code == 75
    assert c.said("end") == []


def test_a_long_list_of_missing_nodes_is_cut(crowd: Any) -> None:
    c = crowd(nodes=20, join_timeout_s=1.0)
    c.join(0)
    c.after(2.0)
    assert c.said("given_back") == [{"why": "node 1, 2, 3, 4, 5, 6, 7, 8 ... did not join within 1 s"}]


def test_whoever_joins_when_all_is_over_is_told_so(crowd: Any) -> None:
    c = crowd().go()
    c.everyone("done")
    c.after(0.5)
    c.join(1, idle=True)
    assert c.links[1].sent[-1] == {"k": "end", "state": "succeeded"}


# ends


def test_all_done_is_success(crowd: Any) -> None:
    c = crowd().go()
    c.hear(0, "done")
    c.after(2.0)
    assert c.leader.phase == "run"
    c.hear(1, "done")
    c.after(0.5)
    assert c.end == {"state": "succeeded", "reason": "", "exit_code": 0}
    assert c.links[1].sent[-1] == {"k": "end", "state": "succeeded"}
    assert c.leader.exit_code is None
    c.links[1].alive = False
    c.leader.tick()
    assert c.leader.exit_code == 0


def test_a_node_that_never_says_goodbye_is_not_waited_for_long(crowd: Any) -> None:
    c = crowd().go()
    c.everyone("done")
    c.after(4.0)
    assert c.leader.exit_code == 0


def test_a_node_that_is_done_may_fall_silent(crowd: Any) -> None:
    c = crowd(silence_s=30.0).go()
    c.hear(1, "done")
    c.after(60.0, quiet=(1,))
    assert c.leader.phase == "run"
    c.hear(0, "done")
    c.after(0.5)
    assert c.end["state"] == "succeeded"


# retries


def test_a_failed_rank_spends_a_retry_and_the_next_attempt_has_the_next_epoch(crowd: Any) -> None:
    c = crowd(retries=2).go()
    c.fail(1, rank=3)
    c.after(SETTLE_S)
    (failed,) = c.said("failed")
    assert (failed["rank"], failed["node"], failed["host"], failed["stopped"]) == (3, 1, "host1", [0, 1, 2])
    who = {"rank": 3, "host": "host1", "exception": ""}
    assert c.said("retry") == [{"attempt": 2, "why": "rank 3 on host1 exited with 1", **who}]
    assert c.links[0].sent[-1] == {"k": "stop", "grace_s": FAILURE_GRACE_S}
    c.everyone("stopped")
    c.after(1.0)
    go = go_of(c.links[0])
    assert (go["epoch"], go["attempt"], go["spent"]) == ((0, 1), 2, 1)
    assert [row["retries_left"] for row in c.said("go")] == [2, 1]


def test_the_first_failure_is_the_one_that_counts(crowd: Any) -> None:
    c = crowd().go()
    c.fail(1, rank=3, why="exited with 7", code=7)
    c.fail(0, rank=0, why="was killed by SIGABRT", code=134)
    c.after(SETTLE_S)
    c.everyone("stopped")
    c.after(0.5)
    assert c.end == {"state": "failed", "reason": "rank 3 on host1 exited with 7", "exit_code": 7}


def test_the_reason_of_a_retry_is_the_exception(crowd: Any) -> None:
    c = crowd(retries=1).go()
    c.fail(1, rank=3, tail=["Traceback (most recent call last):", "ValueError: old", "OSError: disk went away", "bye"])
    c.after(SETTLE_S)
    (retry,) = c.said("retry")
    assert retry["why"] == "rank 3 on host1 exited with 1: OSError: disk went away"
    assert (retry["rank"], retry["host"], retry["exception"]) == (3, "host1", "OSError: disk went away")


@pytest.mark.parametrize(
    ("line", "is_one"),
    [
        ("torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", True),
        ("KeyboardInterrupt", True),
        ("subprocess.CalledProcessError: Command '['x']' returned non-zero exit status 1.", True),
        ("step 3 loss 0.1", False),
        ("An Error: of prose", False),
        ("", False),
    ],
)
def test_an_exception_is_known_by_its_line(line: str, is_one: bool) -> None:
    assert raised([line, "  more"]) == (line if is_one else "")


def test_a_failure_with_a_lost_node_beside_it_spends_no_retry(crowd: Any) -> None:
    c = crowd(retries=1).go()
    c.fail(0, rank=0, why="was killed by SIGABRT")
    c.links[1].alive = False
    c.after(SETTLE_S)
    assert c.said("failed") == []
    assert c.said("retry") == [{"attempt": 2, "why": "host1 is gone", "lost": 1}]
    c.hear(0, "stopped")
    c.after(1.0)
    assert c.join(1, instance="new", restart=1) is None
    c.after(0.5)
    go = go_of(c.links[1])
    assert (go["epoch"], go["attempt"], go["spent"]) == ((1, 0), 2, 0)


def test_a_replaced_node_begins_a_new_epoch_and_spends_no_retry(crowd: Any) -> None:
    c = crowd(retries=0).go()
    c.links[1].alive = False
    assert c.join(1, instance="new", restart=1) is None
    assert c.said("retry") == [{"attempt": 2, "why": "host1 was replaced", "lost": 1}]
    assert c.links[0].sent[-1]["k"] == "stop"
    c.hear(0, "stopped")
    c.after(1.0)
    assert go_of(c.links[0])["epoch"] == (1, 0)


def test_a_silent_node_is_lost_after_the_time_of_silence(crowd: Any) -> None:
    c = crowd(silence_s=30.0).go()
    c.after(30.0, quiet=(1,))
    assert c.leader.phase == "run"
    c.after(1.0, quiet=(1,))
    assert c.said("retry") == [{"attempt": 2, "why": "host1 was silent for 30 s", "lost": 1}]


def test_retries_used_up_end_the_run_with_the_reason(crowd: Any) -> None:
    c = crowd(retries=1).go()
    for _ in range(2):
        c.fail(1, rank=2)
        c.after(SETTLE_S)
        c.everyone("stopped")
        c.after(1.0)
    assert c.end == {"state": "failed", "reason": "rank 2 on host1 exited with 1", "exit_code": 1}
    assert len(c.said("retry")) == 1
    assert (c.links[0].sent[-1]["state"], c.leader.phase) == ("failed", "end")


def test_what_would_fail_each_time_is_not_tried_again(crowd: Any) -> None:
    c = crowd(retries=3).go()
    c.fail(1, rank=None, why="setup exited with 1", fatal=True)
    c.after(SETTLE_S)
    c.everyone("stopped")
    c.after(0.5)
    assert c.end == {"state": "failed", "reason": "host1: setup exited with 1", "exit_code": 1}


def test_a_run_of_one_node_waits_for_no_other_cause(crowd: Any) -> None:
    c = crowd(nodes=1).go()
    c.fail(0, rank=1)
    c.leader.tick()
    c.hear(0, "stopped")
    c.leader.tick()
    assert c.end["state"] == "failed"


def test_ranks_that_do_not_stop_do_not_hold_the_end_up(crowd: Any) -> None:
    c = crowd().go()
    c.fail(0)
    c.after(SETTLE_S + FAILURE_GRACE_S + 14.0)
    assert c.said("end") == []
    c.after(2.0)
    assert c.end["state"] == "failed"


def test_words_of_an_old_attempt_are_not_held_against_the_new_one(crowd: Any) -> None:
    c = crowd(retries=1).go()
    c.fail(1)
    c.after(SETTLE_S)
    c.everyone("stopped")
    c.after(1.0)
    old = {"e": (0, 0)}
    c.leader.hear(1, {"k": "failed", "rank": 3, **old})
    c.leader.hear(1, {"k": "stopped", **old})
    c.leader.hear(0, {"k": "done", **old})
    c.after(5.0)
    assert c.leader.phase == "run"
    c.fail(0)
    c.after(SETTLE_S)
    assert c.links[1].sent[-1]["k"] == "stop", "a late word must not make a working node look idle"


def test_a_node_that_still_works_on_an_old_attempt_is_told_to_stop(crowd: Any) -> None:
    c = crowd()
    c.join(0)
    c.join(1, idle=False, epoch=[0, 0])
    assert c.links[1].sent == [{"k": "stop", "grace_s": FAILURE_GRACE_S}]
    c.after(2.0)
    assert c.leader.phase == "join"
    c.hear(1, "stopped")
    c.after(0.5)
    assert go_of(c.links[1])["epoch"] == (1, 0)


# hangs


def beat(c: Crowd, node: int, silent_s: float, **ranks: list[Any]) -> None:
    c.hear(node, "beat", silent_s=silent_s, ranks={name[1:]: facts for name, facts in ranks.items()})


def test_silence_of_all_ranks_is_a_hang_and_names_one(crowd: Any) -> None:
    c = crowd(hang_after_s=600.0, retries=1).go()
    c.after(600.0)
    beat(c, 0, 601.0, r0=[601.0, 1.0, "R", 12], r1=[601.0, 1.0, "R", 12])
    beat(c, 1, 605.5, r2=[605.5, 1.0, "R", 12], r3=[605.5, 0.0, "T", 12])
    c.after(0.5)
    assert c.said("hang") == [{"rank": 3, "node": 1, "silent_s": 601.0, "why": "its process is stopped"}]
    why = "rank 3 on host1 hangs: its process is stopped"
    assert c.said("retry") == [{"attempt": 2, "why": why, "rank": 3, "host": "host1", "exception": ""}]


def test_a_hang_without_retries_is_a_failure(crowd: Any) -> None:
    c = crowd(hang_after_s=10.0).go()
    c.after(10.0)
    c.everyone("beat", silent_s=11.0, ranks={})
    c.after(0.5)
    c.everyone("stopped")
    c.after(0.5)
    words = "rank 0 on host0 hangs: no rank reported anything"
    assert c.end == {"state": "failed", "reason": words, "exit_code": None}


def test_one_rank_that_speaks_is_no_hang(crowd: Any) -> None:
    c = crowd(hang_after_s=10.0).go()
    c.after(20.0)
    beat(c, 0, 15.0, r0=[15.0, 0, "S", 1])
    beat(c, 1, 3.0, r2=[3.0, 0, "S", 1])
    c.after(2.0)
    assert c.leader.phase == "run"


def test_nodes_that_are_done_do_not_count_for_a_hang(crowd: Any) -> None:
    c = crowd(hang_after_s=10.0).go()
    c.after(20.0)
    beat(c, 0, 0.0)
    c.hear(0, "done")
    beat(c, 1, 15.0, r2=[15.0, 0.0, "S", 3])
    c.after(0.5)
    assert not c.said("hang"), "the ranks of node 0 spoke for all, until now"
    c.after(10.0)
    beat(c, 1, 25.5, r2=[25.5, 0.0, "S", 3])
    c.after(0.5)
    assert c.said("hang")[0]["rank"] == 2


def test_no_hang_is_looked_for_unless_asked(crowd: Any) -> None:
    c = crowd().go()
    c.everyone("beat", silent_s=1e6, ranks={})
    c.after(5.0)
    assert c.leader.phase == "run"


# time, goal, signals


def test_the_time_limit_ends_the_run_with_the_users_grace(crowd: Any) -> None:
    c = crowd(time_limit_s=100.0, retries=3, grace_s=20.0).go()
    c.after(100.0)
    assert c.leader.phase == "run"
    c.after(1.0)
    assert c.links[1].sent[-1] == {"k": "stop", "grace_s": 20.0}
    c.everyone("stopped")
    c.after(0.5)
    assert c.end == {"state": "failed", "reason": "the time limit of 100 s is over", "exit_code": None}


def test_the_time_limit_is_of_all_attempts(crowd: Any) -> None:
    c = crowd(time_limit_s=100.0, retries=3).go()
    c.after(60.0)
    c.fail(0)
    c.after(SETTLE_S)
    c.everyone("stopped")
    c.after(30.0)
    assert (c.leader.phase, c.leader.attempts.number) == ("run", 2)
    c.after(20.0)
    assert c.leader.phase == "stop"


def test_the_time_limit_holds_while_a_lost_node_is_waited_for(crowd: Any) -> None:
    c = crowd(time_limit_s=100.0).go()
    c.links[1].alive = False
    c.fail(0)
    c.after(SETTLE_S)
    c.hear(0, "stopped")
    c.after(110.0)
    assert c.end["reason"] == "the time limit of 100 s is over"


@pytest.mark.parametrize(
    ("goal", "values", "reached"),
    [
        ({"metric": "iou", "at_least": 0.65}, [0.5, 0.65, 0.9], 0.65),
        ({"metric": "loss", "at_most": 0.1}, [0.5, 0.1, 0.05], 0.1),
        ({"metric": "gain", "at_least": 0}, [-1, 0], 0),
        ({"metric": "gain", "at_most": 0}, [1, -2], -2),
        ({"metric": "iou", "at_least": 0.65}, [0.5, 0.6], None),
    ],
)
def test_the_goal_is_reached_once(crowd: Any, goal: dict[str, Any], values: list[float], reached: float) -> None:
    c = crowd(goal=goal).go()
    for value in values:
        c.after(10.0)
        c.hear(0, "value", value=value)
    found = [(row["metric"], row["value"], row["took_s"]) for row in c.said("goal")]
    assert found == ([] if reached is None else [(goal["metric"], reached, 10.0 * (values.index(reached) + 1))])


@pytest.mark.parametrize("phase", ["join", "run", "stop"])
def test_a_signal_ends_the_run_from_any_phase(crowd: Any, phase: str) -> None:
    c = crowd(retries=1, grace_s=12.0)
    if phase == "join":
        c.join(0)
    else:
        c.go()
    if phase == "stop":
        c.fail(0)
        c.after(SETTLE_S)
    c.hear(0, "signal", name="SIGTERM")
    for node in c.links:
        c.hear(node, "stopped")
    c.after(0.5)
    assert c.end == {"state": "terminated", "reason": "stopped by SIGTERM", "exit_code": 143}
    c.after(4.0)
    assert c.leader.exit_code == 143


def test_a_signal_that_comes_while_a_failed_run_is_ended_does_not_hide_the_failure(crowd: Any) -> None:
    c = crowd().go()
    c.fail(0)
    c.after(SETTLE_S)
    c.hear(1, "signal", name="SIGTERM")
    c.everyone("stopped")
    c.after(0.5)
    assert c.end["state"] == "failed"


def test_a_signal_after_the_end_changes_nothing(crowd: Any) -> None:
    c = crowd().go()
    c.everyone("done")
    c.after(0.5)
    c.hear(0, "signal", name="SIGTERM")
    c.after(4.0)
    assert (c.end["state"], c.leader.exit_code) == ("succeeded", 0)


def test_a_word_the_leader_does_not_know_does_no_harm(crowd: Any) -> None:
    c = crowd().go()
    for message in ({"k": "dance"}, {"k": None}, {}):
        c.leader.hear(1, message)
    assert c.leader.phase == "run"


# leases and new leaders


def test_a_new_leader_goes_on_where_the_nodes_were(crowd: Any) -> None:
    c = crowd(retries=3, restart=1)
    c.join(0, restart=1)
    c.join(1, epoch=[1, 2], spent=2, attempt=4, began=START + 500.0)
    c.leader.tick()
    go = go_of(c.links[1])
    assert (go["epoch"], go["attempt"], go["spent"], go["began"]) == ((2, 0), 5, 2, START + 500.0)


def test_a_new_leader_goes_on_where_the_lease_was(crowd: Any, tmp_path: Path) -> None:
    Leases(str(tmp_path / "lease"), "job").claim((0, 3), {"spent": 3, "attempt": 4, "began": START + 10.0})
    c = crowd(Leases(str(tmp_path / "lease"), "job"), restart=1, retries=5).go()
    go = go_of(c.links[0])
    assert (go["epoch"], go["attempt"], go["spent"], go["began"]) == ((1, 0), 5, 3, START + 10.0)
    newest = c.leases.newest()
    assert (newest.epoch, newest.facts["spent"], newest.facts["attempt"]) == ((1, 0), 3, 5)


def test_a_run_that_was_submitted_twice_is_fenced(crowd: Any, tmp_path: Path) -> None:
    Leases(str(tmp_path / "lease"), "first").claim((0, 0), {})
    c = crowd(Leases(str(tmp_path / "lease"), "second"))
    c.join(0)
    c.join(1)
    c.leader.tick()
    assert c.said("fenced") == [{"by": [0, 0], "job": "first"}]
    assert c.links[1].sent[-1] == {"k": "end", "state": "fenced"}
    c.after(4.0)
    assert c.leader.exit_code == 76
    assert c.said("go") == c.said("end") == []


def test_a_requeued_job_takes_over_from_an_older_one(crowd: Any, tmp_path: Path) -> None:
    old = Leases(str(tmp_path / "lease"), "old")
    old.claim((0, 4), {})
    crowd(Leases(str(tmp_path / "lease"), "new"), restart=1).go()
    fence = old.newer_than((0, 4))
    assert fence is not None
    assert (fence.epoch, fence.job) == ((1, 0), "new")


def test_an_epoch_somebody_else_was_faster_with_is_passed_over(crowd: Any, tmp_path: Path) -> None:
    class Late(Leases):
        """Another claims between the look and the claim, once."""

        tries = 0

        def claim(self, epoch: Any, facts: dict[str, Any]) -> bool:
            self.tries += 1
            if self.tries == 1:
                Leases(str(tmp_path / "lease"), "job").claim(epoch, facts)
            return super().claim(epoch, facts)

    c = crowd(Late(str(tmp_path / "lease"), "job"))
    c.join(0)
    c.join(1)
    c.leader.tick()
    assert c.leader.phase == "join"
    c.leader.tick()
    assert go_of(c.links[0])["epoch"] == (1, 0)


def test_a_lease_that_cannot_be_written_is_tried_again_and_in_the_end_given_back(crowd: Any, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    c = crowd(Leases(str(tmp_path / "file" / "lease"), "job"), join_timeout_s=60.0)
    c.join(0)
    c.join(1)
    c.after(59.0)
    assert c.leader.phase == "join"
    c.after(2.0)
    assert c.said("given_back") == [{"why": "the lease folder cannot be written"}]


def test_the_beat_reaches_every_node_and_renews_the_lease(crowd: Any, tmp_path: Path) -> None:
    renewed: list[Any] = []

    class Noted(Leases):
        def renew(self, epoch: Any) -> None:
            renewed.append(epoch)

    c = crowd(Noted(str(tmp_path / "lease"), "job")).go()
    c.leader.beat()
    assert [link.sent[-1] for link in c.links.values()] == [{"k": "beat"}, {"k": "beat"}]
    assert renewed == [(0, 0)]


def test_a_new_checkpoint_is_told_once(crowd: Any, tmp_path: Path) -> None:
    c = crowd()
    c.leader.checkpoints = CheckpointWatch(str(tmp_path), c.now())
    c.go()
    for name, at in (("old.pt", -50.0), (".part", 90.0), ("step-1.pt", 60.0)):
        (tmp_path / name).write_bytes(b"12345")
        os.utime(tmp_path / name, (c.now() + at, c.now() + at))
    c.leader.beat()
    c.leader.beat()
    assert c.said("checkpoint") == [{"name": "step-1.pt", "bytes": 5, "written_at": c.now() + 60.0}]


def test_a_checkpoint_that_ranks_write_as_they_are_stopped_is_told(crowd: Any, tmp_path: Path) -> None:
    c = crowd()
    c.leader.checkpoints = CheckpointWatch(str(tmp_path), c.now())
    c.go()
    c.leader.terminate("stopped by SIGTERM")
    (tmp_path / "step-7.pt").write_bytes(b"12345")
    os.utime(tmp_path / "step-7.pt", (c.now() + 3, c.now() + 3))
    c.everyone("stopped")
    c.leader.tick()
    assert [row["name"] for row in c.said("checkpoint")] == ["step-7.pt"]


# what ranks left


class FakeKeeping:
    """Stands for a copy that takes as long as the test says."""

    def __init__(self) -> None:
        self.started, self.is_over, self.stopped_for = False, True, ""

    def start(self) -> None:
        self.started, self.is_over = True, False

    def stop(self, why: str) -> None:
        self.stopped_for, self.is_over = why, True

    def facts(self) -> dict[str, Any]:
        return {"files": 3} if self.started else {}


def keeping_of(c: Any) -> FakeKeeping:
    c.leader.keeping = keeping = FakeKeeping()
    return keeping


def test_what_ranks_left_is_kept_before_the_end_and_everybody_hears_the_leader_meanwhile(crowd: Any) -> None:
    c = crowd()
    keeping = keeping_of(c)
    c.go().everyone("done")
    c.after(100.0)
    c.leader.beat()
    assert (c.leader.phase, c.said("end"), c.links[1].sent[-1]) == ("keep", [], {"k": "beat"})
    keeping.is_over = True
    c.after(1.0)
    assert [event["k"] for event in c.events][-2:] == ["workdir", "end"]
    assert (c.end["state"], c.said("workdir")) == ("succeeded", [{"files": 3}])


def test_a_failed_run_keeps_too(crowd: Any) -> None:
    c = crowd()
    keeping = keeping_of(c)
    c.go().fail(1)
    c.after(SETTLE_S + 1)
    assert not keeping.started, "ranks may still write"
    c.everyone("stopped")
    c.after(1.0)
    assert (c.leader.phase, keeping.started) == ("keep", True)
    keeping.is_over = True
    c.after(1.0)
    assert c.end["state"] == "failed"


def test_a_stopped_run_keeps_nothing(crowd: Any) -> None:
    c = crowd()
    keeping = keeping_of(c)
    c.go().leader.terminate("stopped by SIGTERM")
    c.everyone("stopped")
    c.after(1.0)
    assert (c.end["state"], keeping.started) == ("terminated", False)


@pytest.mark.parametrize("way", ["terminate", "give_back"])
def test_who_wants_the_nodes_does_not_wait_for_what_is_being_kept(crowd: Any, way: str) -> None:
    c = crowd()
    keeping = keeping_of(c)
    c.go().everyone("done")
    c.after(1.0)
    getattr(c.leader, way)("its slice of time is over")
    c.after(1.0)
    assert (keeping.stopped_for, c.end["state"]) == ("its slice of time is over", "succeeded")


# the end, which comes once


@pytest.mark.parametrize("state", ["succeeded", "failed"])
def test_the_end_is_claimed_before_it_is_said(crowd: Any, tmp_path: Path, state: str) -> None:
    claims: list[str | None] = []
    leases = Leases(str(tmp_path / "lease"), "job")

    class Watched(Crowd):
        def say(self, kind: str, **fields: Any) -> None:
            if kind == "end":
                claims.append(leases.ended())
            super().say(kind, **fields)

    c = Watched(ORDER, leases).begin().go()
    if state == "succeeded":
        c.everyone("done")
    else:
        c.fail(1)
        c.after(SETTLE_S + 1)
        c.everyone("stopped")
    c.after(4.0)
    assert (c.end["state"], claims) == (state, [state])


@pytest.mark.parametrize(("marked", "claimed"), [(True, "terminated"), (False, None)])
def test_a_run_that_was_stopped_has_ended_only_where_a_user_cancelled_it(
    crowd: Any, tmp_path: Path, marked: bool, claimed: str | None
) -> None:
    mark = tmp_path / "cancelled"
    if marked:
        mark.touch()
    leases = Leases(str(tmp_path / "lease"), "job", cancel_marks=[str(mark)])
    c = crowd(leases).go()
    c.leader.terminate("stopped by SIGTERM")
    c.everyone("stopped")
    c.after(4.0)
    assert (c.end["state"], leases.ended()) == ("terminated", claimed)


def test_a_run_that_gave_its_nodes_back_has_not_ended(crowd: Any, tmp_path: Path) -> None:
    leases = Leases(str(tmp_path / "lease"), "job")
    c = crowd(leases).go()
    c.leader.give_back("its slice of time is over")
    c.everyone("stopped")
    c.after(4.0)
    assert (c.leader.exit_code, leases.ended()) == (75, None)


@pytest.mark.parametrize(("state", "code"), [("succeeded", 0), ("failed", 77), ("terminated", 143)])
def test_no_rank_of_a_run_that_has_ended_is_started(crowd: Any, tmp_path: Path, state: str, code: int) -> None:
    mark = tmp_path / "cancelled"
    mark.touch()
    leases = Leases(str(tmp_path / "lease"), "job", cancel_marks=[str(mark)])
    c = crowd(leases, restart=1)
    c.join(0)
    leases.end(state)
    c.join(1)
    c.after(4.0)
    assert (c.said("go"), c.said("end"), c.leader.exit_code) == ([], [], code)
    assert c.said("fenced") == [{"by": None, "job": f"the run has ended: {state}"}]
    assert c.links[1].sent[-1] == {"k": "end", "state": state}


def test_of_two_copies_that_end_at_once_the_first_counts(crowd: Any, tmp_path: Path) -> None:
    leases = Leases(str(tmp_path / "lease"), "job")
    c = crowd(leases).go()
    leases.end("failed")
    c.everyone("done")
    c.after(4.0)
    assert (c.end["state"], c.end["reason"]) == ("failed", "another copy of this run ended it")
    assert c.leader.exit_code == 77


# a node that was here and is gone, where the engine replaces all nodes or none


def lose_node_1(c: Crowd, seconds: float) -> None:
    c.hear(0, "ready", ranks=2)
    c.after(31.0, quiet=(1,))
    c.links[1].close()
    c.hear(0, "stopped")
    c.after(seconds, quiet=(1,))


def test_the_nodes_are_given_back_soon_when_one_does_not_come_back(crowd: Any, tmp_path: Path) -> None:
    c = crowd(Leases(str(tmp_path / "lease"), "job"), silence_s=30.0, rejoin_s=60.0).go()
    lose_node_1(c, 58.0)
    assert (c.leader.phase, c.said("given_back")) == ("join", [])
    c.after(6.0, quiet=(1,))
    assert c.said("given_back") == [{"why": "host1 was gone and did not come back within 90 s"}]
    assert c.leader.exit_code == 75


@pytest.mark.parametrize("rejoin_s", [None, 60.0])
def test_elsewhere_and_before_the_first_join_a_node_is_waited_for_as_long_as_asked(
    crowd: Any, tmp_path: Path, rejoin_s: float | None
) -> None:
    c = crowd(Leases(str(tmp_path / "lease"), "job"), join_timeout_s=600.0, rejoin_s=rejoin_s)
    c.join(0)
    if rejoin_s is None:
        c.join(1)
        c.leader.tick()
        lose_node_1(c, 0.0)
    c.after(590.0, quiet=(1,))
    assert (c.leader.phase, c.said("given_back")) == ("join", [])
    c.after(20.0, quiet=(1,))
    assert c.said("given_back") == [{"why": "node 1 did not join within 600 s"}]


def test_nodes_that_are_gone_again_and_again_fail_the_run(crowd: Any, tmp_path: Path) -> None:
    leases = Leases(str(tmp_path / "lease"), "job")
    for restart in range(10):
        assert leases.count_back(restart) == restart + 1
    c = crowd(leases, restart=10, rejoin_s=3.0).go()
    lose_node_1(c, 10.0)
    assert c.said("given_back") == []
    assert (c.end["state"], leases.ended()) == ("failed", "failed")
    assert c.end["reason"] == "host1 was gone and did not come back within 33 s, for the 11th time"


# data


def staging(crowd: Any, **changes: Any) -> Crowd:
    c: Crowd = crowd(data=[{"name": "frames"}], **changes)
    for node in range(2):
        assert c.join(node, staged=False, address=f"10.0.0.{node}", data_port=9000 + node) is None
    c.leader.tick()
    assert c.leader.phase == "stage"
    return c


def test_nodes_bring_their_data_before_ranks_start_and_no_clock_of_the_user_runs(crowd: Any) -> None:
    c = staging(crowd, join_timeout_s=60.0, hang_after_s=60.0, time_limit_s=60.0)
    peers = [(0, "10.0.0.0", 9000), (1, "10.0.0.1", 9001)]
    assert [message for message in c.links[1].sent if message["k"] == "stage"] == [{"k": "stage", "peers": peers}]
    c.after(3600.0)
    assert (c.leader.phase, c.said("given_back"), c.said("go")) == ("stage", [], [])
    c.hear(0, "staged")
    c.after(1.0)
    assert c.leader.phase == "stage"
    c.hear(1, "staged")
    c.after(1.0)
    assert c.leader.phase == "run"
    assert c.said("go")[0]["took_s"] < 1.0


def test_a_node_that_is_lost_while_data_comes_is_waited_for_and_the_others_are_told_of_the_new_one(crowd: Any) -> None:
    c = staging(crowd, join_timeout_s=60.0)
    c.after(40.0, quiet=(1,))
    assert c.leader.phase == "join"
    assert c.join(1, restart=1, instance="new", staged=False, address="10.0.0.7", data_port=9007) is None
    c.after(0.5)
    stages = [message["peers"] for message in c.links[0].sent if message["k"] == "stage"]
    assert [peers[1] for peers in stages] == [(1, "10.0.0.1", 9001), (1, "10.0.0.7", 9007)]
    c.everyone("staged")
    c.after(1.0)
    assert c.leader.phase == "run"


def test_data_that_cannot_be_had_ends_the_run_with_the_reason_and_spends_no_retry(crowd: Any) -> None:
    c = staging(crowd, retries=3)
    c.fail(1, rank=None, why="http://x: the server says 404", fatal=True)
    c.after(10.0)
    assert (c.end["state"], c.end["reason"]) == ("failed", "host1: http://x: the server says 404")
    assert c.said("retry") == []


def test_a_silent_node_whose_ranks_are_through_costs_no_attempt(crowd: Any) -> None:
    c = crowd().go()
    c.leader.has_ended = lambda member, epoch: (member.node, epoch) == (1, (0, 0))
    c.hear(0, "done")
    c.after(c.order.silence_s + 1, quiet=(1,))
    assert (c.said("retry"), c.end["state"]) == ([], "succeeded")


def test_a_silent_node_with_ranks_at_work_is_lost(crowd: Any) -> None:
    c = crowd().go()
    c.hear(0, "done")
    c.after(c.order.silence_s + 1, quiet=(1,))
    assert c.said("retry")[0]["lost"] == 1
