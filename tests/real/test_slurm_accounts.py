"""Teams in a real slurmdbd: given, given again without a change, taken back; what somebody else made stays."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright.bringup.on_host import slurm_accounts
from podwright.bringup.plan.accounts import accounts_text
from podwright.lab.slurm.lab import CONTROLLER, SlurmLab
from podwright.spec import load_pod
from tests.real.labs import slurm_lab
from tests.unit.bringup.test_accounts import SMALL

pytestmark = [pytest.mark.slurm, pytest.mark.xdist_group("slurm-accounts")]
VISION = "{name: vision, members: [ada, pod], qos: high, shares: 3, quota: {gpus: 16, memory: 100001MiB, runs: 4}}"
PROGRAM = str(Path(slurm_accounts.__file__))


@pytest.fixture(scope="module")
def lab() -> Iterator[SlurmLab]:
    with slurm_lab(nodes=1, accounting=True) as lab:
        yield lab


def said(lab: SlurmLab, *command: str) -> str:
    done = lab.machines.run(CONTROLLER, list(command))
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def given(lab: SlurmLab, teams: str) -> str:
    """Has accounting made as a file says; gives what was changed."""
    source = lab.folder / "teams-pod.yaml"
    source.write_text(SMALL.read_text().replace("name: small", f"name: {lab.name}") + teams)
    state = json.loads(accounts_text(load_pod(source)))
    file = lab.folder / "teams.json"
    file.write_text(json.dumps({**state, "mark": str(lab.folder / "teams-given.json")}))
    changed = said(lab, "/usr/bin/python3", PROGRAM, "apply", str(file))
    assert said(lab, "/usr/bin/python3", PROGRAM, "check", str(file)) == "same\n"
    assert said(lab, "/usr/bin/python3", PROGRAM, "apply", str(file)) == ""
    return changed


def test_teams_are_given_once_and_taken_back(lab: SlurmLab) -> None:
    """Memory that is no whole number of GiB is read back as it was given."""
    said(lab, "sacctmgr", "--immediate", "add", "account", "guests", f"cluster={lab.name}", "GrpJobs=7")
    given(lab, f"teams: [{VISION}, {{name: maps, members: [eve]}}]\n")
    words = ("sacctmgr", "--noheader", "--parsable2", "list", "associations")
    rows = said(lab, *words, "format=account,user,fairshare,grpjobs,defaultqos").split()
    assert {"vision||3|4|high", "vision|ada|1||high", "vision|pod|1||high", "maps||1||", "guests||1|7|"} <= set(rows)
    assert said(lab, "sacctmgr", "-nP", "list", "user", "pod", "format=defaultaccount").strip() == "vision"
    given(lab, "teams: [{name: vision, members: [pod], quota: {gpus: 2}}]\n")
    rows = said(lab, *words, "format=account,user,fairshare,grpjobs,grptres,qos").split()
    assert {"vision||1||gres/gpu=2|normal", "guests||1|7||normal", "others|ada|1|||normal"} <= set(rows)
    assert not [row for row in rows if row.startswith("maps") or row.startswith("vision|ada")]
