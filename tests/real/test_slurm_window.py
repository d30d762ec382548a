"""A window of time in a real Slurm: nodes are reserved before, and nothing is left of it afterwards."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from podwright.bringup.apply.windows import ChangeWindow, WaitClock, reserved
from podwright.lab.slurm.lab import CONTROLLER, SlurmLab
from podwright.spec import Refusal
from podwright.spec.problems import refuse
from tests.real.clients import until
from tests.real.labs import slurm_lab

pytestmark = [pytest.mark.slurm, pytest.mark.xdist_group("slurm-accounts")]


@pytest.fixture(scope="module")
def lab() -> Iterator[SlurmLab]:
    with slurm_lab(nodes=1) as lab:
        yield lab


def shell_of(lab: SlurmLab, line: str) -> str:
    done = lab.machines.run(CONTROLLER, ["/bin/sh", "-c", line])
    if done.returncode:
        raise refuse(f"{CONTROLLER}: {done.stderr}")
    return done.stdout


def test_nodes_are_reserved_and_given_back_and_busy_ones_are_refused(lab: SlurmLab) -> None:
    def shell(line: str) -> str:
        return shell_of(lab, line)

    node = shell("sinfo --noheader --Node --format=%N").split()[0]
    with reserved(shell, "podwright-later", [node], ChangeWindow(time.time() + 3600, 7200), WaitClock()):
        told = shell("scontrol show reservation podwright-later")
        assert f"Nodes={node} " in told
        assert "Duration=02:00:00" in told
        assert "Flags=MAINT" in told
        assert "Users=root" in told
    assert "podwright-later" not in shell("scontrol show reservation")
    job = shell("sbatch --parsable --time=30 --wrap 'sleep 600'").strip()
    until(lambda: shell(f"squeue --noheader --job={job} --format=%T").strip() == "RUNNING", "the job runs")
    now = ChangeWindow(time.time() + 60, 600)
    with pytest.raises(Refusal, match="Slurm reserves no nodes"), reserved(shell, "now", [node], now, WaitClock()):
        raise AssertionError("a job may run until then")
    shell(f"scancel {job}")
