"""Root below folders that users own: a link that a user lays leads it nowhere, and holds up nobody else."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podwright.bringup.apply.ansible import asks
from podwright.bringup.apply.drift import status_of
from podwright.bringup.apply.observe import Question, question
from podwright.bringup.apply.sent import sent
from podwright.bringup.plan.host import HostPlan, Step
from podwright.bringup.plan.site import site_of
from podwright.bringup.plan.stages.base import base
from podwright.bringup.plan.stages.storage import people
from podwright.spec import Pod

pytestmark = [
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can be several users"),
    pytest.mark.xdist_group("accounts"),
]
UIDS = (59711, 59712)
# As root is on NFS that takes it for nobody.
SQUASHED = ("setpriv", "--bounding-set=-dac_override,-dac_read_search,-chown,-fowner,-fsetid", "--")


class TwoUsers:
    """Two users of this machine, and what the base of a host gives them."""

    def __init__(self, names: list[str], mount: Path) -> None:
        self.bob, self.eve = names
        users = [
            {"name": name, "uid": uid, "keys": ["ssh-ed25519 AAAA"]} for name, uid in zip(names, UIDS, strict=True)
        ]
        document = {
            "name": "p",
            "nodes": [{"hosts": "n1", "model": "cpu-server", "addresses": ["10.0.0.1"]}],
            "storage": [{"name": "shared", "kind": "nfs", "mount": str(mount)}],
            "schedulers": [{"kind": "slurm", "folder": str(mount)}],
            "bringup": {"users": users},
        }
        site = site_of(Pod.model_validate(document))
        whole, shared = base(site, "n1"), people(site, "n1")
        assert shared is not None
        files = tuple(file for file in whole.files if file.path.startswith("/home/"))
        self.mount = mount
        self.keep(Step(folders=whole.folders + shared.folders, files=files))

    def keep(self, step: Step) -> None:
        self.step, self.plan = step, HostPlan("n1", "10.0.0.1", {"base.base": step})

    def home(self, name: str) -> Path:
        return Path("/home") / name

    def act(self, name: str, line: str) -> None:
        uid = UIDS[[self.bob, self.eve].index(name)]
        command = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--", "/bin/sh", "-ec", line]
        subprocess.run(command, check=True, cwd="/")

    def give(self, *prefix: str) -> dict[str, Any]:
        """Runs the program as a host does, as root; returns what it says."""
        said: dict[str, Any] = json.loads(program([*prefix, *PYTHON, sent("apply_step.py"), "files"], self.wanted()))
        return said

    def wanted(self) -> dict[str, Any]:
        step: dict[str, Any] = {"folders": [vars(folder) for folder in self.step.folders], "files": []}
        for file in self.step.files:
            entry = {name: getattr(file, name) for name in ("path", "mode", "owner", "group", "check", "restarts")}
            step["files"].append((entry, file.text))
        return step

    def differing(self) -> list[str]:
        found: list[str] = self.look(asks("base.base", self.step))["differing"]
        return found

    def look(self, asked: dict[str, Any], *prefix: str) -> dict[str, Any]:
        said: dict[str, Any] = json.loads(program([*prefix, *PYTHON, sent("inspect_host.py")], asked))
        return said

    def drift(self, *prefix: str) -> dict[str, str]:
        status = status_of(self.plan, self.look(question(self.plan, asked=Question(shows=True)), *prefix), {}, None)
        return {drift.what: drift.found for drift in status.drift}


PYTHON = (sys.executable, "-c")


def program(command: list[str], asked: dict[str, Any]) -> str:
    done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture
def users() -> Iterator[TwoUsers]:
    names = [f"pw{secrets.token_hex(3)}" for _ in UIDS]
    mount = Path("/srv") / f"pw-{secrets.token_hex(4)}"
    mount.mkdir()
    try:
        for name, uid in zip(names, UIDS, strict=True):
            subprocess.run(["useradd", "--create-home", "--uid", str(uid), "--user-group", name], check=True)
        yield TwoUsers(names, mount)
    finally:
        for name in names:
            subprocess.run(["userdel", "--remove", name], check=False, capture_output=True)
        subprocess.run(["rm", "-rf", "--one-file-system", str(mount)], check=True)


@pytest.fixture
def victim(users: TwoUsers) -> Path:
    """A folder of root's with a file that nobody else may read."""
    folder = users.mount / "victim"
    folder.mkdir(mode=0o755)
    secret = folder / "authorized_keys"
    secret.write_text("root alone\n")
    secret.chmod(0o600)
    return folder


def state(folder: Path) -> list[tuple[int, int, str]]:
    paths = [folder, *sorted(folder.iterdir())]
    return [(path.stat().st_uid, path.stat().st_mode, path.name) for path in paths]


def test_each_user_gets_what_is_theirs_and_a_look_says_so(users: TwoUsers) -> None:
    said = users.give()
    assert (said["left"], users.differing(), users.drift()) == ([], [], {})
    keys = users.home(users.bob) / ".ssh" / "authorized_keys"
    assert (keys.stat().st_uid, keys.stat().st_gid, keys.stat().st_mode & 0o777) == (UIDS[0], UIDS[0], 0o600)
    assert keys.read_text() == "ssh-ed25519 AAAA\n"


def test_where_root_is_nobody_it_is_done_as_the_user(users: TwoUsers) -> None:
    at_home = tuple(folder for folder in users.step.folders if folder.path.startswith("/home/"))
    users.keep(Step(folders=at_home, files=users.step.files))
    users.home(users.bob).chmod(0o700)
    assert (users.give(*SQUASHED)["left"], users.drift(*SQUASHED)) == ([], {})
    assert (users.home(users.bob) / ".ssh" / "authorized_keys").stat().st_uid == UIDS[0]


@pytest.mark.parametrize("place", [".ssh", ".ssh/authorized_keys"])
def test_a_link_in_a_home_leads_root_nowhere_and_that_user_alone_is_left(
    users: TwoUsers, victim: Path, place: str
) -> None:
    before = state(victim)
    target = victim if place == ".ssh" else victim / "authorized_keys"
    users.act(users.bob, f"mkdir -p $(dirname ~{users.bob}/{place}) && ln -s {target} ~{users.bob}/{place}")
    said = users.give()
    assert state(victim) == before
    link = str(users.home(users.bob) / place)
    why = f"is a link in a folder of {users.bob}'s"
    assert {(entry["place"], entry["why"]) for entry in said["left"]} == {(link, why)}
    assert (users.home(users.eve) / ".ssh" / "authorized_keys").read_text() == "ssh-ed25519 AAAA\n"
    # It stays drift, by its own name, and nothing behind the link is read.
    assert {path for path in users.differing() if users.bob not in path} == set()
    found = users.drift()
    assert found[link] == why
    assert set(found) == {link, f"{users.home(users.bob)}/.ssh/authorized_keys"}


def test_a_folder_that_another_one_laid_where_all_may_write_is_left(users: TwoUsers) -> None:
    mount = users.mount
    mount.chmod(0o1777)
    users.act(users.eve, f"mkdir {mount}/{users.bob}")
    said = users.give()
    expected = {"place": f"{mount}/{users.bob}", "owner": users.eve, "why": f"is {users.eve}'s"}
    assert [{name: entry[name] for name in expected} for entry in said["left"]] == [expected]
    assert (mount / users.bob).stat().st_uid == UIDS[1]
    assert (mount / users.eve).stat().st_uid == UIDS[1]


def test_a_pipe_or_endless_file_of_a_user_holds_nothing_up(users: TwoUsers) -> None:
    users.give()
    users.act(users.bob, f"cd ~{users.bob}/.ssh && rm authorized_keys && mkfifo authorized_keys")
    users.act(users.eve, f"cd ~{users.eve}/.ssh && truncate --size=1T authorized_keys")
    assert len(users.differing()) == 2
    assert users.give()["left"] == []
    assert users.differing() == []


def test_a_folder_of_roots_that_a_user_moved_there_stays_roots(users: TwoUsers) -> None:
    """Who owns a folder may rename what lies in it, whosever it is."""
    backup = users.home(users.bob) / "backup"
    backup.mkdir(mode=0o700)
    (backup / "secret").write_text("root alone\n")
    users.act(users.bob, f"mv {backup} {users.home(users.bob)}/.ssh")
    assert users.give()["left"][0]["why"] == "is root's"
    assert (users.home(users.bob) / ".ssh").stat().st_uid == 0
