"""The fault campaign's plans follow from their seeds, shrink, go on where they ended, and become a table."""

from __future__ import annotations

from typing import Any

import pytest

from scripts.fault_plan import KINDS, MAX_FAULTS, Fault, Plan, Shape, plan_of, shrunk, still_open
from scripts.fault_table import page

MIX = (Fault("rank", 0, 3, 4.0), Fault("pilot", 1, 5, 4.0), Fault("leader", 1, 9, 4.0))
PLAN = Plan("local", 7, (Shape(2), Shape(2, 1)), MIX)


def struck(kind: str, **changes: Any) -> dict[str, Any]:
    usual = {"hit": True, "nodes": 2, "spares": 0, "state": "succeeded", "attempts": 2, "went_on_s": 12.0, "wrong": ""}
    return {"kind": kind, **usual, **changes}


@pytest.mark.parametrize("engine", KINDS)
def test_a_round_follows_from_its_seed(engine: str) -> None:
    plans = [plan_of(engine, seed) for seed in range(300)]
    assert plans == [plan_of(engine, seed) for seed in range(300)]
    assert {fault.kind for plan in plans for fault in plan.faults} == set(KINDS[engine])
    assert {len(plan.faults) for plan in plans} == set(range(1, MAX_FAULTS + 1))
    assert len(set(plans)) == 300
    shapes = {shape for plan in plans for shape in plan.shapes}
    assert shapes == {Shape(1), Shape(2), Shape(2, 1)}, "a run of one node has no spare"


def test_a_round_shrinks_to_the_fewest_faults_that_fail() -> None:
    tried: list[tuple[Fault, ...]] = []

    def fails(plan: Plan) -> bool:
        tried.append(plan.faults)
        return {"rank", "leader"} <= {fault.kind for fault in plan.faults}

    assert shrunk(PLAN, fails).faults == (MIX[0], MIX[2])
    assert [len(faults) for faults in tried] == [1, 1, 1, 2, 2]
    assert shrunk(PLAN, lambda plan: len(plan.faults) == 3) == PLAN
    assert shrunk(PLAN, lambda plan: plan.faults == MIX[1:2]).faults == MIX[1:2]


def test_a_run_may_be_lost_only_when_all_that_held_it_was_killed() -> None:
    def may_lose(nodes: int, *kinds: str, engine: str = "local") -> bool:
        faults = tuple(Fault(kind, 0, 1, 4.0) for kind in kinds)
        return Plan(engine, 1, (Shape(nodes), Shape(1)), faults).may_lose(0)

    assert may_lose(1, "keeper", "leader")
    assert may_lose(2, "keeper", "leader", "pilot")
    assert not may_lose(2, "keeper", "pilot")
    assert not may_lose(2, "leader", "pilot")
    assert not may_lose(1, "keeper", "leader", engine="slurm")
    assert not PLAN.may_lose(1)


def test_a_campaign_goes_on_where_it_was_ended() -> None:
    well, wrong = [struck("rank")], [struck("rank", wrong="it failed")]
    told = [("local", 1, well), ("slurm", 2, well), ("local", 3, wrong)]
    rows = [{"engine": engine, "seed": seed, "faults": faults} for engine, seed, faults in told]
    assert still_open("local", range(4), rows) == [0, 2, 3], "what failed is played again"


def test_the_table() -> None:
    faults = [
        struck("power", went_on_s=100.0),
        struck("power", spares=1, went_on_s=20.0),
        struck("power", hit=False, went_on_s=None),
        struck("keeper", state="lost", went_on_s=None),
        struck("keeper", state="failed", went_on_s=None, wrong="it failed"),
    ]
    failed = {"engine": "slurm", "seed": 2, "commit": "abb", "faults": [struck("cut", wrong="it ended twice")]}
    again = {"engine": "slurm", "seed": 2, "commit": "abc", "faults": [struck("cut", again=True, went_on_s=None)]}
    text = page([failed, {"engine": "slurm", "seed": 1, "commit": "abc", "faults": faults}, again])
    assert "- slurm 2 at abb: it ended twice; played again at abc, it went well" in text
    assert "| cut | 1 | 0 | 0 | 1 | 0 | 0 |  |  |  |" in text
    assert "2 rounds, 5 faults that struck, of 1000 in the end; commits abc." in text
    assert "| power | 3 | 1 | 2 | 0 | 0 | 0 | 60 s | 100 s | 100 s |" in text
    assert "| keeper | 2 | 0 | 0 | 0 | 1 | 1 |  |  |  |" in text
    assert "| all | 6 | 1 | 2 | 1 | 1 | 1 | 60 s | 100 s | 100 s |" in text
    assert "with a spare 20 s (1 times), without 100 s (1 times)." in text
