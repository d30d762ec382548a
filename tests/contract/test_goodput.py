"""Goodput against the own stamps of a program, with a node that is lost: here, and by night on clusters."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.conftest import KUBERNETES, make, on_slurm
from tests.contract.sites import END_S, Site
from tests.fixtures.stamps import TOLD, stamped_seconds

SHARE = 0.02
STEPS = 8
IN_STEPS = ("productive", "lost_work", "data_wait", "checkpoint_save", "evaluation")


@pytest.fixture(params=["local", on_slurm("slurm"), KUBERNETES[0]])
def stamped(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    """Engines whose nodes share the run's folder, where the stamps are."""
    yield from make(request, request.param, tmp_path)


def test_each_class_is_what_the_program_says_though_a_node_was_lost(stamped: Site) -> None:
    command = f"{sys.executable} stamped.py --steps {STEPS}"
    run = stamped.start(command=command, nodes=2, retries=1, checkpoint="checkpoints")
    stamped.wait_step(run, 5, rank=0)
    killed_at = time.time()
    stamped.kill_pilot(run, 1)
    record = run.wait(END_S)
    assert (record.state, record.attempts) == ("succeeded", 2), run.explain()
    assert record.goodput is not None
    classes, allocated = record.goodput["classes"], record.goodput["allocated_s"]
    stamps = stamped_seconds(run.folder.path / "results", nodes=2, succeeded=True)
    # A step was at work when the node was missed: it is told of by nobody, and lost. Here the keeper saw the node end,
    # and what the other one did until it was missed is time of one node alone.
    within_s = SHARE * allocated + 2 * sum(stamps[name] for name in IN_STEPS) / STEPS
    if stamped.target == "local":
        within_s += max(0.0, stamped.events(run, "retry")[0]["t"] - killed_at)
    for name in TOLD:
        assert classes[name] == pytest.approx(stamps[name], abs=within_s), name
    assert sum(round(1000 * seconds) for seconds in classes.values()) == round(1000 * allocated)
    assert record.goodput["interruptions"] == 1
    assert classes["start"] > 0
    assert json.loads(json.dumps(record.as_json()))["goodput"] == record.goodput
