"""NFS, the clock, NVIDIA's part, a second controller, Enroot: whole hosts as golden files, and what owners say."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from podwright.bringup.apply import ansible
from podwright.bringup.plan.hosts import plan
from podwright.bringup.plan.site import site_of
from podwright.bringup.plan.stages import base, mirror, nvidia, storage
from podwright.bringup.plan.template import text_of
from podwright.spec import Refusal, load_pod
from podwright.spec.provisioning import NvidiaSettings
from tests.fixtures.hosts import told
from tests.paths import CASES

CASE = CASES / "bringup" / "hosts" / "whole"
POD = load_pod(CASE / "pod.yaml")


@pytest.mark.parametrize("host", ["m1", "m2", "g1"])
def test_a_host(host: str, golden: Callable[[Path, str], None]) -> None:
    golden(CASE / "expected" / f"{host}.txt", told(plan(POD)[host]))


def test_a_host_without_gpus_says_why_it_gets_nothing_of_nvidias() -> None:
    plans = plan(POD)
    assert plans["m1"].skipped == {"nvidia": "it has no GPUs"}
    assert plans["g1"].skipped == {}
    assert not [name for name in plans["m1"].steps if name.startswith("nvidia.")]


@pytest.mark.parametrize(
    ("tools", "done"),
    [
        pytest.param({}, True, id="no SELinux"),
        pytest.param({"selinuxenabled": "exit 1"}, True, id="not in force"),
        pytest.param({"selinuxenabled": "exit 0", "getsebool": 'echo "$1 --> off"'}, False, id="off"),
        pytest.param({"selinuxenabled": "exit 0", "getsebool": 'echo "$1 --> on"'}, True, id="on"),
    ],
)
def test_selinux_is_told_of_gpus_where_it_is_in_force(tmp_path: Path, tools: dict[str, str], done: bool) -> None:
    """Its programs are played: no system here has it."""
    for name, line in tools.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    (command,) = plan(POD)["g1"].steps["nvidia.tools"].commands
    environ = {"PATH": f"{tmp_path}:/usr/bin:/bin"}
    looked = subprocess.run(command.check, env=environ, capture_output=True, text=True, check=False)
    assert (command.sees in looked.stdout) is done


@pytest.mark.parametrize(("size", "parts"), [("1g.10gb", 7), ("2g.20gb", 3), ("3g.40gb", 2), ("7g.80gb", 1)])
def test_a_gpu_is_cut_into_as_many_parts_as_it_has(size: str, parts: int) -> None:
    assert f'"mig-devices": {{"{size}": {parts}}}' in nvidia.mig_text(NvidiaSettings(mig=size))


def test_few_gpus_without_a_switch_need_no_fabric_manager(tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text((CASE / "pod.yaml").read_text().replace("count: 8", "count: 4"))
    step = nvidia.driver(site_of(load_pod(path)), "g1")
    assert step is not None
    assert "nvidia-fabricmanager" not in step.packages


def test_a_second_controller_needs_a_folder_that_both_see(tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    lines = [line for line in (CASE / "pod.yaml").read_text().splitlines() if "kind: nfs" not in line]
    path.write_text("\n".join(lines).replace("storage:\nschedulers", "schedulers"))
    with pytest.raises(Refusal, match="a backup controller needs a file system that both see"):
        plan(load_pod(path))


@pytest.mark.parametrize(
    ("mount", "name"), [("/data", "data.mount"), ("/srv/home-a", "srv-home\\x2da.mount"), ("/a/b/", "a-b.mount")]
)
def test_a_mount_has_the_name_that_systemd_gives_it(mount: str, name: str) -> None:
    escaped = subprocess.run(
        ["systemd-escape", "--path", "--suffix=mount", mount], capture_output=True, text=True, check=True
    )
    assert storage.unit_name(mount) == escaped.stdout.strip() == name


def test_apt_asks_an_archive_on_site_itself_and_all_others_through_the_mirror(tmp_path: Path) -> None:
    """apt-config says what apt reads out of the file."""
    path = tmp_path / "pod.yaml"
    text = (CASE / "pod.yaml").read_text().replace("services: [", "services: [mirror, ")
    path.write_text(text.replace("bringup:\n", "bringup:\n  archive: https://10.0.0.9:3142\n"))
    step = mirror.client(site_of(load_pod(path)), "g1")
    assert step is not None
    config = tmp_path / "apt.conf"
    config.write_text(step.files[0].text)
    read = subprocess.run(["apt-config", "-c", str(config), "dump"], capture_output=True, text=True, check=True).stdout
    assert 'Acquire::http::Proxy "http://10.0.0.1:3142";' in read
    assert 'Acquire::https::Proxy::10.0.0.9 "DIRECT";' in read


def test_lustre_is_mounted_where_its_server_is_named(tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    fast = '  - {name: fast, kind: lustre, mount: /fast, server: "10.0.0.9@o2ib:/fast"}\n'
    path.write_text((CASE / "pod.yaml").read_text().replace("schedulers:\n", f"{fast}schedulers:\n"))
    step = plan(load_pod(path))["g1"].steps["storage.mounts"]
    assert step.packages == ("nfs-common", "lustre-client-modules-dkms", "lustre-client-utils")
    unit = next(file.text for file in step.files if file.path.endswith("/fast.mount"))
    assert "What=10.0.0.9@o2ib:/fast\nWhere=/fast\nType=lustre\nOptions=flock,noatime,_netdev\n" in unit


def test_owners_take_what_is_written(tmp_path: Path) -> None:
    clock = base.time(site_of(POD), "m1")
    assert clock is not None
    accepted(tmp_path, clock.files[0].text, ["chronyd", "-p", "-f"])
    text = storage.exports_text(POD.bringup.exports)
    read_exports(tmp_path, text)
    with pytest.raises(AssertionError, match="unknown keyword"):
        read_exports(tmp_path, text.replace("no_subtree_check", "no_subtree_chek"))


def accepted(folder: Path, text: str, command: list[str]) -> None:
    file = folder / "file"
    file.write_text(text)
    done = subprocess.run([*command, str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def read_exports(folder: Path, text: str) -> None:
    """Has exportfs read an exports file, in a view of the system of its own; a kernel that serves NFS it needs not."""
    file = folder / "exports"
    file.write_text(text)
    (folder / "state").mkdir(exist_ok=True)
    line = f"mount --bind {file} /etc/exports && mount --bind {folder}/state /var/lib/nfs && exportfs -r"
    done = subprocess.run(["unshare", "--mount", "sh", "-c", line], capture_output=True, text=True, check=False)
    wrong = [each for each in done.stderr.splitlines() if "does not exist" not in each and "stat" not in each]
    assert wrong == [], done.stderr


def test_a_new_release_of_slurm_comes_in_slurms_own_order(tmp_path: Path) -> None:
    """Plays come one after the other: what accounts first, then who controls, then a second one, then nodes."""
    path = tmp_path / "pod.yaml"
    path.write_text((CASE / "pod.yaml").read_text().replace("bringup:\n", 'bringup:\n  versions: {slurm: "24.11"}\n'))
    pod = load_pod(path)
    plans = plan(pod)
    texts = ansible.project_files(pod, plans, {})
    plays = [play["name"] for play in yaml.safe_load(texts[ansible.PLAYBOOK])]
    hosts = json.loads(texts[ansible.INVENTORY])["all"]["hosts"]
    order = []
    for play in plays:
        for host, facts in hosts.items():
            asked = facts["podwright_steps"].get(play, {"packages": []})["packages"]
            order += [(name, host) for name in asked if name.startswith(("slurmdbd", "slurmctld", "slurmd"))]
    assert order == [
        ("slurmdbd=24.11*", "m1"),
        ("slurmctld=24.11*", "m1"),
        ("slurmctld=24.11*", "m2"),
        ("slurmd=24.11*", "g1"),
        ("slurmd=24.11*", "g2"),
    ]
    pinned = next(file.text for file in plans["g1"].files() if file.path.endswith("podwright-slurm"))
    accepted_pin(tmp_path, pinned)
    assert plan(POD)["g1"].releases() == {}


def test_a_site_without_a_network_has_its_archive_as_the_only_source(tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    text = (CASE / "pod.yaml").read_text().partition("  sources:")[0]
    path.write_text(text.replace("bringup:\n", "bringup:\n  archive: https://10.0.0.9:3142\n"))
    texts = {file.path: file.text for file in plan(load_pod(path))["g1"].files() if "/apt/sources" in file.path}
    folder = "/etc/apt/sources.list.d"
    names = ("debian.sources", "podwright-archive.sources")
    assert sorted(texts) == ["/etc/apt/sources.list", *(f"{folder}/{name}" for name in names)]
    (tmp_path / "parts").mkdir()
    for name in names:
        (tmp_path / "parts" / name).write_text(texts[f"{folder}/{name}"])
    (tmp_path / "sources.list").write_text(texts["/etc/apt/sources.list"])
    options = [f"Dir::Etc::sourcelist={tmp_path}/sources.list", f"Dir::Etc::sourceparts={tmp_path}/parts"]
    command = ["apt-get", "update", "--print-uris", *(f"--option={each}" for each in options)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    places = {row.split("'")[1].rpartition("/")[0] for row in done.stdout.splitlines()}
    assert places == {"https://10.0.0.9:3142/packages/."}


def test_an_archive_without_tls_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    text = (CASE / "pod.yaml").read_text()
    path.write_text(text.replace("bringup:\n", "bringup:\n  archive: http://10.0.0.9:3142\n"))
    with pytest.raises(Refusal) as refused:
        load_pod(path)
    assert "like `https://10.0.0.1:3142`" in str(refused.value)


def accepted_pin(folder: Path, text: str) -> None:
    """Has apt read what is pinned; a word that it does not know it names."""
    file = folder / "preferences"
    file.write_text(text)
    command = ["apt-cache", "policy", f"--option=Dir::Etc::preferences={file}", "slurmd"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_enroot_keeps_each_users_images_apart() -> None:
    assert text_of("enroot.conf").count("user-$(id -u)") == 3
