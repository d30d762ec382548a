"""The role of Ansible that gives a host one step, run as a bring-up runs it on a host that a real sshd leads to."""

from __future__ import annotations

import getpass
import grp
import os
from pathlib import Path

import pytest

from podwright.bringup.apply import ansible
from podwright.bringup.apply.playbook import ApplyProgress, PlaybookRun, alone, run, write_project
from podwright.bringup.apply.vault import Vault
from podwright.bringup.plan.host import HostCommand, HostFile, HostFolder, HostPlan, Step
from podwright.bringup.plan.hosts import STEPS
from podwright.bringup.plan.site import site_of
from podwright.spec import Pod
from tests.fixtures.sshd import ssh_config

__all__ = ["ssh_config"]


class LoopHost:
    """A pod of one host, which is this machine, and its steps."""

    def __init__(self, folder: Path, ssh: Path) -> None:
        self.folder, self.place = folder, folder / "host"
        self.place.mkdir()
        section = {"user": getpass.getuser(), "ssh_config": str(ssh)}
        node = {"hosts": "loop", "model": "cpu-server", "addresses": ["127.0.0.1"]}
        self.pod = Pod.model_validate({"name": "loop", "nodes": [node], "bringup": section})
        self.vault = Vault(folder / "vault.yml", folder / "vault.key")

    def file(self, name: str, text: str = "", **more: str) -> HostFile:
        own = {"owner": getpass.getuser(), "group": grp.getgrgid(os.getgid()).gr_name}
        return HostFile(str(self.place / name), text, **{**own, **more})  # type: ignore[arg-type]

    def give(self, *steps: Step) -> ApplyProgress:
        """Brings the host up with these steps, as the stages of a pod."""
        names = STEPS[: len(steps)]
        plans = {"loop": HostPlan("loop", "127.0.0.1", dict(zip(names, steps, strict=True)))}
        secrets = self.vault.fill(site_of(self.pod))
        runner = self.folder / "runner"
        write_project(runner / "project", ansible.project_files(self.pod, plans, secrets.revisions), self.vault.file)
        with alone(self.folder, lambda: None) as lock:
            return run(PlaybookRun(runner, ["loop"], self.vault.key_file, lock), lambda progress: None)


@pytest.fixture
def host(tmp_path: Path, ssh_config: Path) -> LoopHost:
    return LoopHost(tmp_path, ssh_config)


@pytest.mark.slow
def test_a_step_is_given_once_and_mended_alone(host: LoopHost) -> None:
    owner, group = getpass.getuser(), grp.getgrgid(os.getgid()).gr_name
    made = host.place / "made"
    touched = HostCommand("touched", ("/bin/sh", "-c", f"test -e {made} && echo there"), "there", ("touch", str(made)))
    kept = host.place / "kept"
    look = ("/bin/sh", "-c", f"cat >/dev/null; test -e {kept} && echo there")
    hidden = HostCommand("hidden", look, "there", ("/bin/sh", "-c", f"cat >{kept}"), "registry_password")
    first = Step(
        folders=(HostFolder(str(host.place / "etc"), "0700", owner, group),),
        files=(
            host.file("etc/a.conf", "eins {{ zwei }}\n\n", mode="0640"),
            host.file("etc/b.conf", "übung\n"),
            host.file("etc/secret", secret="registry_password", mode="0400"),
        ),
        commands=(touched, hidden),
    )
    second = Step(files=(host.file("other.conf", "other\n"),))
    # Files, secret files, commands and secret commands of the first step, and the file of the second.
    assert host.give(first, second).hosts["loop"].changed == 5
    assert (host.place / "etc" / "a.conf").read_text() == "eins {{ zwei }}\n\n"
    assert (host.place / "etc" / "b.conf").read_text() == "übung\n"
    assert (host.place / "etc" / "secret").read_text() == host.vault.read().values["registry_password"]
    assert host.give(first, second).hosts["loop"].changed == 0
    (host.place / "etc" / "a.conf").write_text("by hand\n")
    (host.place / "other.conf").chmod(0o600)
    assert host.give(first, second).hosts["loop"].changed == 2
    assert (host.place / "etc" / "a.conf").read_text() == "eins {{ zwei }}\n\n"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users")
def test_what_a_user_has_in_the_way_is_a_fault_that_stops_nothing(host: LoopHost) -> None:
    home, victim = host.place / "home", host.place / "victim"
    for folder in (home, victim):
        folder.mkdir()
    (home / ".ssh").symlink_to(victim)
    os.chown(home, 65534, -1)
    theirs = host.file("home/.ssh/authorized_keys", "key\n", mode="0600", owner="nobody")
    progress = host.give(Step(files=(theirs, host.file("a.conf"))), Step(files=(host.file("b.conf"),)))
    said = [(fault.task, fault.reason, fault.stops) for fault in progress.faults]
    assert said == [("folders of users", f"{home}/.ssh is left alone: it is a link in a folder of nobody's", False)]
    assert (progress.is_stopped, progress.stages[0].state) == (False, "done")
    assert sorted(path.name for path in host.place.iterdir()) == ["a.conf", "b.conf", "home", "victim"]
    assert not list(victim.iterdir())
    assert progress.next_steps() == {"have its user move it out of the way": "loop"}


def test_a_file_that_its_owner_refuses_is_named_with_the_reason(host: LoopHost) -> None:
    step = Step(files=(host.file("a.conf", "bad\n", check="/bin/sh -c 'echo line 1: bad word >&2; false' %s"),))
    progress = host.give(step)
    reason = f"{host.place}/a.conf is not taken by its owner: line 1: bad word"
    assert [(fault.host, fault.task, fault.reason) for fault in progress.faults] == [("loop", "files", reason)]
    assert not list(host.place.iterdir())
