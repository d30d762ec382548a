"""A node whose rank is slower than the others gives its place to a spare."""

from __future__ import annotations

from collections.abc import Callable

from podwright.pilot.life.leader import STOP_S
from podwright.pilot.life.slow import REPLACE_EVERY_S
from podwright.pilot.protocol import slow_by_work
from tests.unit.pilot.crowd import Crowd
from tests.unit.pilot.test_spares import SPARED, places

SLOW = {**SPARED, "replace_slow": 0.3, "grace_s": 20.0}
Make = Callable[..., Crowd]


def works(rank: int, slowest: float = 1.45, others: float = 1.0) -> dict[str, float]:
    return {"work_slowest_rank": rank, "work_slowest_s": slowest, "work_s": others}


def tell(c: Crowd, *ranks: int, **times: float) -> None:
    """Rank 0 compares, as the programs do; a turn of the leader's follows each."""
    for rank in ranks:
        c.hear(0, "works", works=works(rank, **times))
        c.after(0.5)


def test_the_same_rank_three_times_by_the_bound() -> None:
    found = slow_by_work([works(0), works(3, 1.6), works(3, 1.45), works(3, 1.5)], 0.3)
    assert found is not None
    assert (found.rank, found.slower_by) == (3, 0.45)
    assert found.evidence == "1.5 s of own work in a step, 1 s in the middle of the others, 3 times in a row"
    assert slow_by_work([works(3)] * 2, 0.3) is None
    assert slow_by_work([works(3), works(1), works(3)], 0.3) is None
    assert slow_by_work([works(3, 1.29)] * 3, 0.3) is None
    assert slow_by_work([works(3, others=0.0)] * 3, 0.3) is None
    assert slow_by_work([{"work_slowest_rank": 3.0}] * 3, 0.3) is None


def test_a_spare_takes_the_place_of_a_slow_node(crowd: Make) -> None:
    c = crowd(retries=0, **SLOW).go()
    tell(c, 3, 3)
    assert c.leader.phase == "run"
    tell(c, 3)
    (slow,) = c.said("slow")
    assert (slow["rank"], slow["node"], slow["host"], slow["slower_by"], slow["stays"]) == (3, 1, "host1", 0.45, "")
    (retry,) = c.said("retry")
    assert retry == {"attempt": 2, "why": "rank 3 on host1 was slower by 45%", "rank": 3, "host": "host1"}
    assert c.links[0].sent[-1] == c.links[1].sent[-1] == {"k": "stop", "grace_s": 20.0}
    c.everyone("stopped")
    c.after(1.0)
    assert places(c) == {0: 0, 2: 1}
    assert c.links[1].kinds()[-1] == "wait"
    assert (c.leader.attempts.number, c.leader.attempts.retries_spent) == (2, 0)
    assert c.said("go")[-1]["waiting"] == [1]
    c.hear(0, "done")
    c.hear(2, "done")
    c.after(1.0)
    assert c.end["state"] == "succeeded"


def test_without_the_field_or_below_it_nothing_happens(crowd: Make) -> None:
    c = crowd(**SPARED).go()
    tell(c, 3, 3, 3, 3)
    assert (c.said("slow"), c.leader.phase) == ([], "run")
    c = crowd(**SLOW).go()
    tell(c, 3, 3, 3, 3, slowest=1.29)
    assert (c.said("slow"), c.leader.phase) == ([], "run")


def stays(c: Crowd) -> list[str]:
    return [event["stays"] for event in c.said("slow")]


def test_why_a_node_stays_is_said_once(crowd: Make) -> None:
    c = crowd(**SLOW).go()
    tell(c, 1, 1, 1, 1)
    assert stays(c) == ["its node leads the run"]
    c.links[2].alive = False
    tell(c, 3, 3, 3, 3, 3)
    assert stays(c)[1:] == ["no spare waits"]
    assert (c.leader.phase, c.said("retry")) == ("run", [])


def test_no_rank_that_the_run_has_is_nobody(crowd: Make) -> None:
    c = crowd(**SLOW).go()
    tell(c, 400, 400, 400, 400)
    assert (c.said("slow"), c.leader.phase) == ([], "run")


def test_once_an_hour_whoever_leads(crowd: Make) -> None:
    c = crowd(**{**SLOW, "spares": 2}).go()
    tell(c, 3, 3, 3)
    c.everyone("stopped")
    c.after(1.0)
    assert places(c) == {0: 0, 2: 1}
    tell(c, 3, 3, 3, 3)
    assert stays(c) == ["", "a node was replaced for this within the last hour"]
    told = [message for message in c.links[2].sent if message["k"] == "go"][-1]
    later = crowd(**{**SLOW, "spares": 2})
    later.t = c.t
    for node in range(4):
        later.join(node, **{name: told[name] for name in ("spent", "began", "attempt", "slow_at")}, epoch=told["epoch"])
    later.leader.tick()
    tell(later, 3, 3, 3)
    assert stays(later) == ["a node was replaced for this within the last hour"]
    later.t += REPLACE_EVERY_S
    later.after(0.5)
    assert stays(later)[1:] == [""]


def test_a_slow_node_trains_again_only_where_there_is_no_other(crowd: Make) -> None:
    c = crowd(join_timeout_s=60.0, **SLOW).go()
    tell(c, 3, 3, 3)
    c.everyone("stopped")
    c.after(1.0)
    assert c.join(1, idle=True) is None, "its link broke and it is back"
    assert c.leader.members[1].slow
    c.links[2].alive = False
    c.after(11.0, quiet=(2,))
    c.hear(0, "stopped")
    c.after(STOP_S)
    assert places(c) == {0: 0, 1: 1}


def test_a_slow_node_that_is_lost_while_it_stops_is_not_waited_for(crowd: Make) -> None:
    c = crowd(**SLOW).go()
    tell(c, 3, 3, 3)
    c.links[1].alive = False
    c.hear(0, "stopped")
    c.after(1.0)
    assert places(c) == {0: 0, 2: 1}


def test_what_an_old_attempt_told_does_not_count(crowd: Make) -> None:
    c = crowd(retries=1, **SLOW).go()
    tell(c, 3, 3)
    c.fail(0)
    c.after(2.0)
    assert c.said("end") == []
    c.everyone("stopped")
    c.after(1.0)
    assert (c.leader.phase, c.leader.attempts.number) == ("run", 2)
    tell(c, 3, 3)
    assert c.said("slow") == []
