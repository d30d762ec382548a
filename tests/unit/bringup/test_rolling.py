"""Nodes go out and come back in batches; Slurm's answers are those that its commands print."""

from __future__ import annotations

import pytest

from podwright.bringup.rolling import SlurmDrain, batches, split
from podwright.bringup.site import site_of
from podwright.spec import Refusal, load_pod
from tests.paths import CASES


def test_batches_keep_the_order() -> None:
    assert list(batches(["a", "b", "c"], 2)) == [["a", "b"], ["c"]]
    assert list(batches([], 2)) == []


def test_what_runs_no_jobs_comes_first() -> None:
    site = site_of(load_pod(CASES / "bringup" / "hosts" / "small" / "pod.yaml"))
    assert split(site, ["g1", "m1", "g2"]) == (["m1"], ["g1", "g2"])


class FakeSlurm:
    """Answers as sinfo does: jobs on a node end one question after another."""

    def __init__(self, *answers: str) -> None:
        self.answers, self.asked = list(answers), list[str]()

    def __call__(self, line: str) -> str:
        self.asked.append(line)
        if line.startswith("sinfo"):
            return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return ""


def test_a_node_is_empty_before_it_is_changed() -> None:
    slurm = FakeSlurm("n2 draining\nn3 drained\n", "n2 drained\nn3 drained\n")
    drain = SlurmDrain(slurm, every_s=0)
    drain.drain(["n2", "n3"])
    drain.resume(["n2", "n3"])
    updates = [line for line in slurm.asked if line.startswith("scontrol")]
    assert updates == [
        "scontrol update NodeName='n[2-3]' State=DRAIN Reason='podwright: rolling change'",
        "scontrol update NodeName='n[2-3]' State=RESUME",
    ]
    assert len(slurm.asked) == 4


def test_jobs_that_do_not_end_are_named() -> None:
    with pytest.raises(Refusal, match="jobs on n2 did not end within 0 s"):
        SlurmDrain(FakeSlurm("n2 draining\n"), patience_s=0, every_s=0).drain(["n2"])
