"""The files of a lab of hosts: disks, ways in, and the pod that the lab is."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from podwright.lab.hosts import files, shape
from podwright.lab.hosts.shape import HostsLabShape
from podwright.lab.user import LabUser
from podwright.spec import Refusal, load_pod

USER = LabUser("pod", 20001, 20001)


@pytest.fixture
def written(tmp_path: Path) -> Path:
    files.write_all(tmp_path, HostsLabShape(nodes=3), USER, Path("/image"), 20022)
    return tmp_path


def resolved(folder: Path, host: str) -> dict[str, str]:
    """Gives what ssh itself reads from the configuration."""
    command = ["ssh", "-G", "-F", str(folder / "ssh" / "config"), host]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    return dict(line.split(" ", 1) for line in lines if " " in line)


def test_ssh_finds_the_first_host_on_the_loopback_and_the_others_through_it(written: Path) -> None:
    first, third = resolved(written, "n1"), resolved(written, "n3")
    assert (first["hostname"], first["port"], first["user"]) == ("127.0.0.1", "20022", "root")
    assert "proxyjump" not in first
    assert (third["hostname"], third["proxyjump"], third["hostkeyalias"]) == ("10.77.1.3", "n1", "n3")
    assert third["stricthostkeychecking"] == "true"


def test_each_disk_has_its_own_name_and_key_and_lets_the_lab_in(written: Path) -> None:
    disks = [written / "disks" / host / "written" for host in ("n1", "n2")]
    names = [(disk / "etc" / "hostname").read_text() for disk in disks]
    keys = [(disk / "etc" / "ssh" / "ssh_host_ed25519_key").read_text() for disk in disks]
    assert names == ["n1\n", "n2\n"]
    assert keys[0] != keys[1]
    own = (written / "ssh" / "id_ed25519.pub").read_text()
    assert (disks[0] / "root" / ".ssh" / "authorized_keys").read_text() == own
    known = (written / "ssh" / "known_hosts").read_text().splitlines()
    assert [line.split()[0] for line in known] == ["n1", "n2", "n3"]


def test_more_hosts_leave_the_disks_that_are_there(written: Path) -> None:
    before = (written / "ssh" / "known_hosts").read_text()
    files.write_all(written, HostsLabShape(nodes=4), USER, Path("/image"), 20022)
    after = (written / "ssh" / "known_hosts").read_text()
    assert after.startswith(before)
    assert after != before


def test_the_pod_of_a_lab_says_how_its_hosts_are_reached(written: Path) -> None:
    pod = load_pod(written / "pod.yaml")
    assert (pod.name, pod.schedulers) == ("lab-hosts", ())
    assert pod.nodes[0].addresses == ("10.77.1.1", "10.77.1.2", "10.77.1.3")
    assert pod.bringup.ssh_config == str(written / "ssh" / "config")
    assert [(account.name, account.uid) for account in pod.bringup.users] == [("pod", 20001)]
    assert shape.read(written) == (HostsLabShape(nodes=3), USER)


def test_the_only_sources_of_a_host_are_the_labs_own(written: Path) -> None:
    lines = (written / "disks" / "n1" / "written" / "etc" / "apt" / "sources.list").read_text().splitlines()
    assert lines
    assert all(line.startswith("deb http://10.77.0.1:80/") for line in lines)


@pytest.mark.parametrize(("field", "value"), [("nodes", 0), ("nodes", 41), ("gpus", 17), ("name", "Lab")])
def test_a_shape_that_cannot_be_made_is_refused(field: str, value: object) -> None:
    with pytest.raises(Refusal):
        shape.check(HostsLabShape(**{field: value}))  # type: ignore[arg-type]
