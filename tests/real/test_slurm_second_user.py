"""Two real users of one Slurm: neither sees, reads, changes nor stops what is the other's, by Podwright or by hand."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from podwright.lab import ssh
from podwright.lab.scripts import INSIDE
from podwright.lab.slurm.lab import SlurmLab
from podwright.lab.user import LabUser
from tests.contract.sites import until
from tests.fixtures.people import PROGRAM, Person, people
from tests.real.labs import slurm_lab

pytestmark = [pytest.mark.slurm, pytest.mark.netns, pytest.mark.slow, pytest.mark.xdist_group("slurm-people")]
SECRET = "secret-that-is-named-7e3"
SLEEP = {"name": "long", "command": ["sleep", "1000"], "secrets": ["LAB_SECRET"]}


@dataclass(frozen=True)
class Cluster:
    """A lab with two accounts of its own, each with a home of Podwright on this machine."""

    lab: SlurmLab
    alice: Person
    bob: Person

    def admit(self, person: Person) -> None:
        """Have a person log in by a key of their own, with a folder that all nodes share, and know the pod."""
        where = person.folder / "ssh"
        key = person.write("ssh/id_ed25519", "")
        key.unlink()
        assert person.do("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).returncode == 0
        open_to = self.lab.folder / "ssh"
        (open_to / f"{person.name}.pub").write_bytes(key.with_suffix(".pub").read_bytes())
        (open_to / f"{person.name}.pub").chmod(0o644)
        shared = self.folder_of(person)
        shared.mkdir(mode=0o700)
        os.chown(shared, person.uid, person.uid)
        person.write("ssh/known_hosts", (open_to / "known_hosts").read_text())
        user = LabUser(person.name, person.uid, person.uid)
        config = ssh.client_config(where, self.lab.name, user, ssh.port_in(self.lab.ssh_config))
        config_file = person.write("ssh/config", config)
        pod = self.lab.pod_file.read_text().replace(str(self.lab.ssh_config), str(config_file))
        added = person.podwright("pod", "add", str(person.write("pod.yaml", pod)))
        assert added.returncode == 0, added.stderr

    def folder_of(self, person: Person) -> Path:
        return self.lab.folder / "shared" / person.name

    def on(self, machine: str, person: Person, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a program as a person on a machine of the lab."""
        become = ["setpriv", f"--reuid={person.uid}", f"--regid={person.uid}", "--clear-groups"]
        return self.lab.machines.run(machine, [*become, *words])

    def job_of(self, person: Person) -> str:
        """Return the number of a person's one job, once it is at work."""
        words = ["squeue", "--noheader", f"--user={person.name}", "--states=RUNNING", "--format=%A"]
        return str(until(lambda: self.on("login", person, *words).stdout.strip(), f"a job of {person.name} is at work"))


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """The accounts come first: a lab knows those that its machine had."""
    with people(["a", "b"]) as (alice, bob), slurm_lab(nodes=2, accounting=False) as lab:
        made = Cluster(lab, alice, bob)
        config = lab.folder / "ssh" / "sshd_config"
        text = config.read_text().replace("/ssh/id_ed25519.pub", "/ssh/id_ed25519.pub " + f"{INSIDE}/ssh/%u.pub")
        config.write_text(text.replace("AllowUsers ", f"AllowUsers {alice.name} {bob.name} "))
        for person in (alice, bob):
            made.admit(person)
        yield made


def start(cluster: Cluster, person: Person) -> str:
    path = person.write("long.yaml", json.dumps(SLEEP))
    words = ("run", str(path), "--on", cluster.lab.name, "--detach")
    done = person.do("env", f"LAB_SECRET={SECRET}", "python3", "-c", PROGRAM, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_run_of_another_user_is_neither_seen_nor_stopped(cluster: Cluster) -> None:
    alice, bob = cluster.alice, cluster.bob
    run_id = start(cluster, alice)
    job = cluster.job_of(alice)
    for words in (("show", run_id), ("logs", run_id), ("cancel", run_id), ("rm", "--yes", run_id)):
        done = bob.podwright(*words)
        assert (done.returncode, f"there is no run '{run_id}'" in done.stderr) == (2, True), done.stderr
    assert json.loads(bob.podwright("ps", "--json").stdout) == []
    stops = (
        ["scancel", job],
        ["scancel", "--signal=KILL", job],
        ["scontrol", "requeue", job],
        ["scontrol", "suspend", job],
        ["scontrol", "update", f"JobId={job}", "TimeLimit=1"],
        ["srun", f"--jobid={job}", "--overlap", "id"],
    )
    for command in stops:
        done = cluster.on("login", bob, *command)
        assert (done.returncode != 0, "denied" in done.stderr or "Invalid user" in done.stderr) == (True, True), (
            command,
            done.stderr,
        )
    assert cluster.job_of(alice) == job
    assert alice.podwright("cancel", run_id).returncode == 0
    assert alice.podwright("wait", run_id).returncode == 4


def test_nothing_of_it_is_read_on_login_or_compute_nodes(cluster: Cluster) -> None:
    """What Slurm tells to all is that there is a job, whose, its name and where."""
    alice, bob = cluster.alice, cluster.bob
    run_id = start(cluster, alice)
    job = cluster.job_of(alice)
    seen = cluster.on("login", bob, "scontrol", "show", "job", job).stdout
    assert f"UserId={alice.name}" in seen
    assert SECRET not in seen
    assert "Invalid user" in cluster.on("login", bob, "scontrol", "write", "batch_script", job, "-").stderr
    mine = cluster.folder_of(alice)
    assert cluster.on("login", alice, "ls", str(mine)).stdout
    for command in (f"ls {mine}", f"touch {mine}/x", f"mv {mine} {mine}2", f"find {mine} -name '*' -type f | grep ."):
        assert cluster.on("login", bob, "sh", "-c", command).returncode != 0, command
    node = cluster.on("login", alice, "squeue", "--noheader", f"--job={job}", "--format=%N").stdout.strip()
    pids = cluster.on(node, alice, "pgrep", "-u", alice.name).stdout.split()
    assert pids
    for pid in pids:
        for name in ("environ", "cwd/", "fd/", "mem"):
            assert cluster.on(node, bob, "sh", "-c", f"ls /proc/{pid}/{name} && cat /proc/{pid}/{name}").returncode
        assert SECRET not in cluster.on(node, bob, "cat", f"/proc/{pid}/cmdline").stdout
        assert "not permitted" in cluster.on(node, bob, "sh", "-c", f"kill {pid}").stderr.lower()
    assert cluster.job_of(alice) == job
    assert alice.podwright("cancel", run_id).returncode == 0
    assert alice.podwright("wait", run_id).returncode == 4


def test_both_use_it_at_once_each_in_a_folder_of_their_own(cluster: Cluster) -> None:
    for person, other in ((cluster.alice, cluster.bob), (cluster.bob, cluster.alice)):
        path = person.write("toy.yaml", json.dumps({"name": "toy", "command": ["sh", "-c", "id -un; umask"]}))
        done = person.podwright("run", str(path), "--on", cluster.lab.name, "--json")
        assert done.returncode == 0, done.stderr
        run_id = json.loads(done.stdout)["id"]
        assert person.name in person.podwright("logs", run_id).stdout
        made = list(cluster.folder_of(person).rglob("*"))
        assert {path.lstat().st_uid for path in made} == {person.uid}
        assert not any(path.stat().st_mode & 0o022 for path in made if not path.is_symlink())
        assert cluster.on("login", other, "ls", str(cluster.folder_of(person))).returncode != 0
