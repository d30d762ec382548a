"""A hundred changes of a hand-made host, drawn by a seed: each is found by itself, and nothing where all is well.

On real hosts it is tests/real/test_hosts_drifts.py.
"""

from __future__ import annotations

import copy
import os

from podwright.bringup.apply.drift import status_of
from podwright.bringup.plan.hosts import plan
from podwright.spec import load_pod
from tests.fixtures.drifts import drawn, good_answers, is_told
from tests.paths import CASES

SEED = int(os.environ.get("PODWRIGHT_SEED", "28"))


def test_a_hundred_drifts_are_found_one_by_one() -> None:
    plans = plan(load_pod(CASES / "bringup" / "hosts" / "small" / "pod.yaml"))
    good = {name: good_answers(each) for name, each in plans.items()}
    assert [status_of(each, good[name], {}, None).state for name, each in plans.items()] == ["ok"] * len(plans)
    drifts = drawn(plans, 100, SEED)
    kinds = {"mode", "owner", "content", "missing", "package", "service", "grant", "key", "sysctl", "mark", "sshd"}
    assert (len(drifts), kinds - {drift.kind for drift in drifts}) == (100, set())
    missed = []
    for drift in drifts:
        answers = copy.deepcopy(good[drift.host])
        drift.change(answers)
        told = [each.what for each in status_of(plans[drift.host], answers, {}, None).drift]
        if not is_told(drift, told):
            missed.append((SEED, drift))
    assert missed == []
