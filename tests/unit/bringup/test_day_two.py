"""Day two through the door with hand-made parts: a host leaves, services go, a backup is taken and put back."""

from __future__ import annotations

import hashlib
import io
import json
import stat
import tarfile
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, BinaryIO, cast

import pytest
import yaml

from podwright.bringup import Bringup, BringupParts
from podwright.bringup.apply import ansible
from podwright.bringup.plan.hosts import plan
from podwright.bringup.plan.removal import without
from podwright.bringup.plan.site import Site, site_of
from podwright.clients.ssh import Answer as SshAnswer
from podwright.clients.ssh import Feed
from podwright.spec import Pod, Refusal, load_pod
from tests.unit.bringup.test_bringup import MANAGER, POD, Bench, FakeVault
from tests.unit.bringup.test_bringup import bench as bench
from tests.unit.bringup.test_bringup import pod as pod


def test_a_host_is_drained_then_out_of_the_others_then_off(bench: Bench, pod: Pod) -> None:
    result = bench.bringup(pod).remove("g3")
    assert bench.happened == [("drain", ["g3"]), ("apply", [MANAGER, "g1", "g2", "g4"]), ("apply", ["g3"])]
    assert [run.playbook for run in bench.runs] == ["site.yml", "remove.yml"]
    assert result.as_json()["changes"] == 5
    known = yaml.safe_load(bench.saved[pod.name])
    assert known["nodes"][1]["hosts"] == "g[1-2,4]"
    assert known["nodes"][1]["addresses"] == ["10.0.1.1", "10.0.1.2", "10.0.1.4"]
    assert known["schedulers"][0]["hosts"] == "g[1-2,4]"


def test_no_file_of_the_others_names_a_host_that_left(pod: Pod) -> None:
    for each in plan(without(site_of(pod), "g3")).values():
        assert [file.path for file in each.files() if "g3" in file.text or "10.0.1.3" in file.text] == []


def test_others_that_fail_leave_the_host_as_it_is_and_the_pod_known_with_it(bench: Bench, pod: Pod) -> None:
    """It stays drained: whoever calls again goes on from there."""
    bench.failing = {"g1"}
    result = bench.bringup(pod).remove("g3")
    assert [run.playbook for run in bench.runs] == ["site.yml"]
    assert ([fault.host for fault in result.progress.faults], bench.saved) == (["g1"], {})


def test_a_host_that_does_not_answer_any_more_is_out_all_the_same(bench: Bench, pod: Pod) -> None:
    bench.failing = {"g3"}
    result = bench.bringup(pod).remove("g3")
    assert list(bench.saved) == [pod.name]
    assert [fault.host for fault in result.progress.faults] == ["g3"]


@pytest.mark.parametrize(
    ("host", "said"),
    [("m1", "m1 is the pod's controller, login, registry"), ("g9", "not in the pod"), ("g[1-2]", "is 2 hosts")],
)
def test_a_host_that_the_pod_needs_is_refused(bench: Bench, pod: Pod, host: str, said: str) -> None:
    with pytest.raises(Refusal) as refused:
        bench.bringup(pod).remove(host)
    assert said in str(refused.value)
    assert bench.happened == []


def test_the_only_host_of_a_scheduler_is_refused(bench: Bench, tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text(POD.read_text().replace('kind: slurm, hosts: "g[1-2]"', "kind: slurm, hosts: g2"))
    with pytest.raises(Refusal, match="g2 is the only host of slurm"):
        bench.bringup(load_pod(path)).remove("g2")


def test_what_leads_to_a_service_goes_with_it_and_keys_go_with_a_host(pod: Pod) -> None:
    hosts = json.loads(ansible.project_files(pod, plan(pod), {})[ansible.INVENTORY])["all"]["hosts"]
    assert hosts["g1"]["podwright_leaves"] == ["/etc/apt/apt.conf.d/80podwright-mirror"]
    assert "/etc/munge/munge.key" in hosts["g1"]["podwright_keys"]
    assert not [path for host in hosts.values() for path in host["podwright_keys"] if path.startswith("/home")]


@dataclass
class Disk:
    """Streams that keep what hosts have in memory; gpg is real."""

    there: dict[str, bytes] = field(default_factory=dict)
    lines: list[tuple[str, str]] = field(default_factory=list)
    code: int = 0

    def fetch(self, site: Site, host: str, line: str, to: BinaryIO) -> SshAnswer:
        self.lines.append((host, line.split()[0]))
        to.write(f"what {line.split()[0]} says\n".encode() * 1000)
        return SshAnswer(self.code, b"", "the disk is full")

    def give(self, site: Site, host: str, line: str, feed: Feed) -> SshAnswer:
        with tempfile.TemporaryFile() as to:
            feed(cast(BinaryIO, to))
            to.seek(0)
            self.there[line.split()[0]] = to.read()
        return SshAnswer(0, b"", "")


@pytest.fixture
def vault(bench: Bench) -> FakeVault:
    """What this machine keeps of the pod, and the key that is kept elsewhere."""
    bench.folder.mkdir(parents=True)
    bench.vault.key_file.write_text("a key that is not in it\n")
    bench.vault.file.write_text("$ANSIBLE_VAULT;1.1;AES256\n6162\n")
    (bench.folder / "drains.jsonl").write_text('{"t": 1}\n')
    return bench.vault


def door(bench: Bench, pod: Pod, disk: Disk) -> Bringup:
    parts = BringupParts(bench.vault, bench, bench, bench.play, lambda asked: bench, disk)
    return Bringup(pod, parts, bench.progress.append)


def test_a_backup_comes_back_on_fresh_hosts_with_all_that_this_machine_kept(
    bench: Bench, pod: Pod, vault: FakeVault, tmp_path: Path
) -> None:
    out, disk = tmp_path / "pod.backup", Disk()
    result = door(bench, pod, disk).backup(out)
    assert result.parts == ["pod", "vault", "journal_drains", "accounting", "slurm", "registry"]
    assert result.as_json()["digest"] == f"sha256:{hashlib.sha256(out.read_bytes()).hexdigest()}"
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    vault.file.unlink()
    (bench.folder / "drains.jsonl").unlink()
    back = door(bench, pod, disk).restore(out)
    assert back.as_json() == {"parts": result.parts, "hosts": {"m1": ["accounting", "slurm", "registry"]}}
    assert disk.there["mariadb"] == b"what mariadb-dump says\n" * 1000
    assert vault.file.read_text().startswith("$ANSIBLE_VAULT")
    assert (bench.folder / "drains.jsonl").read_text() == '{"t": 1}\n'
    assert bench.happened == [("apply", [MANAGER, "g1", "g2", "g3", "g4"])]
    stopped = [line.split()[2] for _, line in bench.lines if line.startswith("systemctl stop")]
    started = [line.split()[2] for _, line in bench.lines if line.startswith("systemctl start")]
    assert stopped == ["docker-registry", "slurmctld", "slurmdbd"]
    assert started == ["slurmdbd", "slurmctld", "docker-registry"]
    assert not (bench.folder / "restoring").exists()


def test_nothing_of_a_backup_can_be_read_without_the_key(
    bench: Bench, pod: Pod, vault: FakeVault, tmp_path: Path
) -> None:
    out = tmp_path / "pod.backup"
    door(bench, pod, Disk()).backup(out)
    whole = out.read_bytes()
    for secret in (b"a key that is not in it", b"what mariadb-dump says", b"ANSIBLE_VAULT", b"name: small"):
        assert secret not in whole
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".podwright")] == []
    vault.key_file.write_text("another key\n")
    with pytest.raises(Refusal, match=r"is .*key the key that it was written with") as refused:
        door(bench, pod, Disk()).restore(out)
    assert refused.value.exit_code == 2


@pytest.mark.parametrize("how", ["cut", "swapped", "other pod", "no backup"])
def test_a_backup_that_is_not_as_it_was_written_is_refused(
    bench: Bench, pod: Pod, vault: FakeVault, tmp_path: Path, how: str
) -> None:
    out = tmp_path / "pod.backup"
    door(bench, pod, Disk()).backup(out)
    said = {"cut": "use another copy", "swapped": "is not as it was written", "no backup": "use another copy"}
    if how == "cut":
        out.write_bytes(out.read_bytes()[:-11_000])
    elif how == "no backup":
        out.write_text("something else")
    elif how == "swapped":
        swap(out, "slurm", "registry")
    else:
        pod = pod.model_copy(update={"name": "other"})
        said[how] = "it is the backup of small, not of other"
    with pytest.raises(Refusal) as refused:
        door(bench, pod, Disk()).restore(out)
    assert said[how] in str(refused.value)
    assert bench.happened == []


def swap(file: Path, one: str, other: str) -> None:
    """Gives two parts of a backup each other's names."""
    with tarfile.open(file) as archive:
        texts = {member.name: cast(IO[bytes], archive.extractfile(member)).read() for member in archive}
    texts[one], texts[other] = texts[other], texts[one]
    with tarfile.open(file, "w") as archive:
        for name, text in texts.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text))


def test_a_pod_that_lives_is_refused_and_one_that_was_ended_on_its_way_goes_on(
    bench: Bench, pod: Pod, vault: FakeVault, tmp_path: Path
) -> None:
    out, disk = tmp_path / "pod.backup", Disk()
    door(bench, pod, disk).backup(out)
    bench.says = "slurmctld\n"
    with pytest.raises(Refusal, match="the pod lives: slurmctld of m1"):
        door(bench, pod, disk).restore(out)
    assert (disk.there, bench.happened) == ({}, [])
    bench.says, bench.failing = "", {"g1"}
    assert door(bench, pod, disk).restore(out).hosts == {}
    bench.says, bench.failing = "slurmctld\n", set()
    assert door(bench, pod, disk).restore(out).hosts == {"m1": ["accounting", "slurm", "registry"]}


def test_a_host_that_fails_leaves_no_half_backup(bench: Bench, pod: Pod, vault: FakeVault, tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="m1: the disk is full"):
        door(bench, pod, Disk(code=1)).backup(tmp_path / "pod.backup")
    assert not list(tmp_path.glob("*.backup")) + list(tmp_path.glob(".podwright*"))


def test_where_up_never_ran_there_is_nothing_to_back_up(bench: Bench, pod: Pod, tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="small has no vault here"):
        door(bench, pod, Disk()).backup(tmp_path / "pod.backup")
