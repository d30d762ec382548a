"""The way into hosts: what it hangs on goes back by itself, and nodes that only people with a job get into."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from podwright.bringup.on_host import guard
from podwright.bringup.plan.hosts import plan
from podwright.spec import Refusal, load_pod
from tests.paths import CASES

POD = CASES / "bringup" / "hosts" / "small" / "pod.yaml"


def put_back(command: list[str]) -> None:
    """Does what systemd would when the time is over; the services of this line are none."""
    subprocess.run(command, check=True)


def test_what_nobody_confirmed_is_put_back_with_its_rights(tmp_path: Path) -> None:
    changed, made = tmp_path / "it's sshd.conf", tmp_path / "made"
    changed.write_text("as it was\n")
    changed.chmod(0o640)
    folder = tmp_path / "guard"
    command = guard.hold({"paths": [str(changed), str(made)], "services": []}, str(folder))
    changed.write_text("nobody gets in\n")
    changed.chmod(0o600)
    made.write_text("new\n")
    put_back(command)
    assert (changed.read_text(), changed.stat().st_mode & 0o777) == ("as it was\n", 0o640)
    assert not made.exists()
    assert not folder.exists()


def test_a_second_change_before_the_first_was_confirmed_goes_back_to_what_worked(tmp_path: Path) -> None:
    file, folder = tmp_path / "sshd.conf", str(tmp_path / "guard")
    file.write_text("as it was\n")
    guard.hold({"paths": [str(file)], "services": []}, folder)
    file.write_text("killed after this\n")
    command = guard.hold({"paths": [str(file)], "services": []}, folder)
    file.write_text("nobody gets in\n")
    put_back(command)
    assert file.read_text() == "as it was\n"


def test_the_way_in_is_guarded_and_nothing_else() -> None:
    guarded = {file.path for host in plan(load_pod(POD)).values() for file in host.files() if file.guards}
    assert guarded == {"/etc/ssh/sshd_config.d/00-podwright.conf"}


def with_jobs_alone(folder: Path, more: str = "") -> Path:
    path = folder / "pod.yaml"
    path.write_text(POD.read_text().replace("  user: admin\n", f"  user: admin\n  ssh_to_nodes: jobs\n{more}"))
    return path


def test_a_node_lets_in_who_has_a_job_and_who_looks_after_it(tmp_path: Path) -> None:
    plans = plan(load_pod(with_jobs_alone(tmp_path)))
    step = plans["g1"].steps["slurm.way_in"]
    assert "slurm.way_in" not in plans["m1"].steps, "people log in there"
    exempt, rules = step.files
    assert exempt.text.splitlines()[1:] == ["+:root:ALL", "+:(sudo):ALL", "+:admin:ALL", "-:ALL:ALL"]
    lines = [" ".join(line.split()) for line in rules.text.splitlines()]
    place = lines.index(f"account sufficient pam_access.so accessfile={exempt.path}")
    enabled = "account [success=ignore default=1] pam_exec.so quiet /usr/bin/systemctl is-enabled --quiet slurmd"
    assert [line for line in lines[place + 1 :] if line.startswith("account")] == [
        enabled,
        "account required pam_slurm_adopt.so",
        "account required pam_permit.so",
    ]
    assert (rules.guards, step.packages) == (True, ("libpam-slurm-adopt",))


def test_a_slurm_that_makes_no_containers_of_jobs_cannot_tell_whose_is_whose(tmp_path: Path) -> None:
    path = with_jobs_alone(tmp_path)
    path.write_text(path.read_text().replace("SlurmdTimeout: 120", "SlurmdTimeout: 120, PrologFlags: Alloc"))
    with pytest.raises(Refusal, match="PrologFlags=Alloc knows no jobs to join"):
        plan(load_pod(path))
