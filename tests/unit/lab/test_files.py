"""What a lab writes before anything is started, and what it refuses on the way there."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from podwright.lab import home, packages, scripts, ssh
from podwright.lab.folder import write
from podwright.lab.mask import Shown
from podwright.lab.slurm import lab as slurm
from podwright.lab.slurm.shape import SlurmLabShape
from podwright.lab.user import LabUser
from podwright.spec import Refusal
from tests.paths import CASES as ALL_CASES

CASES = ALL_CASES / "lab"
USER = LabUser("pod", 20001, 20001)


def test_scripts(golden: Callable[[Path, str], None]) -> None:
    folder = Path("/home/ann/my labs/one")
    shown = [Shown(Path("/home/ann/my labs/one"), True), Shown(Path("/home/ann/env/note.txt"), False)]
    covers = {Path("/home/ann"): shown, Path("/run"): []}
    golden(CASES / "start.sh", scripts.start_script(folder))
    golden(CASES / "hub.sh", scripts.hub_script(folder, covers, {"/etc/hosts": "etc/hosts"}))
    golden(CASES / "machine.sh", scripts.machine_script())


@pytest.mark.parametrize("name", ["start.sh", "hub.sh", "machine.sh"])
def test_a_shell_can_read_the_scripts(name: str) -> None:
    subprocess.run(["sh", "-n", CASES / name], check=True)


def test_ssh_configurations(golden: Callable[[Path, str], None]) -> None:
    golden(CASES / "sshd_config", ssh.server_config(USER, "/env/bin:/usr/bin"))
    golden(CASES / "ssh_config", ssh.client_config(Path("/home/ann/50% labs/ssh"), "lab-slurm", USER, 2222))


def test_ssh_reads_the_configuration_as_meant(tmp_path: Path) -> None:
    folder = tmp_path / '50% of "it"'
    config = tmp_path / "config"
    config.write_text(ssh.client_config(folder, "lab-slurm", USER, 2222))
    said = subprocess.run(["ssh", "-G", "-F", config, "lab-slurm"], capture_output=True, text=True, check=True).stdout
    assert {"hostname 127.0.0.1", "port 2222", "user pod", "stricthostkeychecking true"} <= set(said.splitlines())
    assert f'userknownhostsfile {tmp_path}/50% of "it"/known_hosts' in said.splitlines()
    assert ssh.port_in(config) == 2222
    assert ssh.port_in(tmp_path / "none") == 0


def test_a_file_never_has_more_rights_than_it_shall_have(tmp_path: Path) -> None:
    path = tmp_path / "key"
    path.write_text("old")
    path.chmod(0o644)
    write(path, "new", 0o400)
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("new", 0o400)


def test_a_missing_package_is_told_with_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Refusal) as caught:
        packages.check_packages({"coreutils": "ls", "slurmd": "no-such-slurmd", "munge": "no-such-munged"})
    assert str(caught.value) == (
        "this machine lacks slurmd, munge\n\n"
        "hint: install with: sudo apt-get install -y --no-install-recommends slurmd munge"
    )


def test_without_root_the_line_with_sudo_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setenv("PODWRIGHT_HOME", "/my home")
    monkeypatch.setattr("shutil.which", lambda name, path=None: f"/env/bin/{name}")
    with pytest.raises(Refusal) as caught:
        packages.check_root(["lab", "up", "slurm"])
    assert str(caught.value) == (
        "a lab needs root: it makes namespaces, and users that exist only in them\n\n"
        "hint: sudo env 'PODWRIGHT_HOME=/my home' /env/bin/podwright lab up slurm"
    )


def test_a_lab_that_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path))
    with pytest.raises(Refusal) as caught:
        home.the_lab(None)
    assert (
        str(caught.value)
        == "there is no lab\n\nhint: `podwright lab up slurm` or `podwright lab up kubernetes` starts one"
    )


def test_of_several_labs_one_must_be_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path))
    for name in ("one", "two"):
        folder = home.folder_of(name)
        folder.mkdir(parents=True)
        slurm.shape.write(folder, SlurmLabShape(name=name), USER)
    with pytest.raises(Refusal, match="there are several labs"):
        home.the_lab(None)
    assert home.the_lab("two").shape.name == "two"
    assert home.wanted_shape(SlurmLabShape(name="two"), {"nodes": None, "gpus": 2}) == SlurmLabShape(name="two", gpus=2)


def test_whoever_called_sudo_owns_the_labs(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PODWRIGHT_HOME", "XDG_DATA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SUDO_UID", "1")
    monkeypatch.setattr("pwd.getpwuid", lambda uid: type("Entry", (), {"pw_dir": "/home/ann"}))
    assert home.home() == Path("/home/ann/.local/share/podwright")


def test_a_lab_is_kept_among_the_known_pods_until_it_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("SUDO_UID", raising=False)
    lab = slurm.SlurmLab(home.make_home() / "lab-slurm", SlurmLabShape(), USER)
    lab.folder.mkdir()
    lab.pod_file.write_text("name: lab-slurm\n")
    home.make_known(lab)
    known = tmp_path / "home" / "pods" / "lab-slurm.yaml"
    assert known.read_text() == "name: lab-slurm\n"
    home.forget("lab-slurm")
    assert not known.exists()
