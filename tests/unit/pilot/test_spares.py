"""Spares: nodes that join and wait, and take the place of one that is lost."""

from __future__ import annotations

from typing import Any

from podwright.pilot.life.leader import FAILURE_GRACE_S, STOP_S
from tests.unit.pilot.crowd import go_of

SPARED = {"nodes": 2, "spares": 1, "silence_s": 10.0}


def places(c: Any) -> dict[int, int]:
    """The places of the last attempt, by node."""
    newest = c.leader.epoch
    told = {node: link.sent for node, link in c.links.items()}
    goes = {node: [row for row in sent if row["k"] == "go" and row["epoch"] == newest] for node, sent in told.items()}
    return {node: rows[-1]["place"] for node, rows in goes.items() if rows}


def test_all_are_waited_for_and_only_as_many_train_as_were_asked_for(crowd: Any) -> None:
    c = crowd(**SPARED)
    c.join(0)
    c.join(1)
    c.after(5.0)
    assert c.leader.phase == "join"
    c.join(2)
    c.leader.tick()
    assert places(c) == {0: 0, 1: 1}
    assert go_of(c.links[0])["sockets"] == ["s0", "s1"]
    assert c.links[2].kinds() == ["wait"]
    (go,) = c.said("go")
    assert (go["world_size"], go["hosts"], go["waiting"]) == (4, ["host0", "host1", "host2"], [2])


def test_the_run_begins_without_a_spare_that_never_comes(crowd: Any) -> None:
    c = crowd(join_timeout_s=60.0, **SPARED)
    c.join(0)
    c.join(1)
    c.after(61.0)
    assert (c.leader.phase, c.said("go")[0]["waiting"]) == ("run", [])
    assert c.said("go")[0]["hosts"] == ["host0", "host1", ""]


def test_a_spare_takes_the_place_of_a_node_that_is_gone(crowd: Any) -> None:
    c = crowd(retries=0, **SPARED).go()
    c.after(11.0, quiet=(1,))
    (retry,) = c.said("retry")
    assert (retry["lost"], retry["why"]) == (1, "host1 was silent for 10 s")
    c.hear(0, "stopped")
    c.after(1.0)
    assert places(c) == {0: 0, 2: 1}
    assert go_of(c.links[2])["sockets"] == ["s0", "s2"]
    assert (c.leader.epoch, go_of(c.links[2])["spent"]) == ((1, 0), 0)
    assert c.said("go")[-1]["waiting"] == []
    c.hear(0, "done")
    c.hear(2, "done")
    c.after(1.0)
    assert c.end["state"] == "succeeded"


def test_a_node_that_comes_back_waits_and_may_be_needed_again(crowd: Any) -> None:
    c = crowd(**SPARED).go()
    c.after(11.0, quiet=(1,))
    c.hear(0, "stopped")
    c.after(1.0)
    assert c.join(1, idle=True) is None
    c.after(1.0)
    assert (c.leader.phase, c.leader.attempts.number, c.links[1].kinds()) == ("run", 2, ["wait"])
    c.links[2].alive = False
    c.after(11.0, quiet=(2,))
    c.hear(0, "stopped")
    c.after(1.0)
    assert places(c) == {0: 0, 1: 1}


def test_a_node_whose_place_was_taken_ends_its_ranks(crowd: Any) -> None:
    c = crowd(**SPARED).go()
    c.after(11.0, quiet=(1,))
    c.hear(0, "stopped")
    c.after(1.0)
    c.join(1, idle=False)
    assert c.links[1].sent == [{"k": "stop", "grace_s": FAILURE_GRACE_S}]
    c.after(1.0)
    assert (c.leader.phase, c.leader.attempts.number) == ("run", 2)


def test_a_spare_that_is_lost_costs_no_attempt(crowd: Any) -> None:
    c = crowd(**SPARED).go()
    c.after(11.0, quiet=(2,))
    assert (c.said("retry"), c.links[2].alive, c.leader.phase) == ([], False, "run")
    c.hear(0, "done")
    c.hear(1, "done")
    c.after(1.0)
    assert c.end["state"] == "succeeded"


def test_without_a_spare_left_a_lost_node_is_waited_for(crowd: Any) -> None:
    c = crowd(join_timeout_s=60.0, **SPARED).go()
    c.after(11.0, quiet=(1, 2))
    c.hear(0, "stopped")
    c.after(30.0)
    assert c.leader.phase == "join"
    assert c.join(1, instance="new", restart=1) is None
    c.leader.tick()
    assert places(c) == {0: 0, 1: 1}


def test_a_node_whose_set_up_failed_trains_only_where_there_is_no_other(crowd: Any) -> None:
    c = crowd(**SPARED)
    c.join(0)
    c.join(1, broken=True)
    c.join(2)
    c.leader.tick()
    assert places(c) == {0: 0, 2: 1}
    c.links[2].alive = False
    c.after(11.0, quiet=(2,))
    c.hear(0, "stopped")
    c.after(FAILURE_GRACE_S + STOP_S)
    assert places(c) == {0: 0, 1: 1}


def test_ranks_keep_their_numbers_on_the_nodes_that_stay(crowd: Any) -> None:
    c = crowd(**{**SPARED, "nodes": 4, "spares": 2}).go()
    c.links[2].alive = False
    c.after(11.0, quiet=(2,))
    for node in (0, 1, 3):
        c.hear(node, "stopped")
    c.after(1.0)
    assert places(c) == {0: 0, 1: 1, 3: 3, 4: 2}
