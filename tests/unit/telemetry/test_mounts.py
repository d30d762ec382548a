"""File systems of the network and pauses of ports: out of the kernel's files and answers, as they are on real hosts."""

from __future__ import annotations

import struct
from pathlib import Path

from podwright.pilot.sensors.proc import Scope
from podwright.telemetry.exporter.ethtool import pause_samples, statistics
from podwright.telemetry.exporter.mounts import mount_reader, network_mounts, nfs_samples

MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
m1:/home /home nfs4 rw,vers=4.2 0 0
10.0.0.9@o2ib:/work /my\\040data lustre rw 0 0
sshfs /mnt/s fuse.sshfs rw 0 0
lxcfs /proc/x fuse.lxcfs rw 0 0
"""
MOUNTSTATS = """\
device rootfs mounted on / with fstype rootfs
device m1:/home mounted on /home with fstype nfs4 statvers=1.1
\topts:\trw,vers=4.2
\tper-op statistics
\t        NULL: 1 1 0 44 24 0 0 0 0
\t        READ: 1200 1200 0 230400 78643200 12 4800 6000 0
\t       WRITE: 10 10 0 1000 1000 1 20 30 0
device proc mounted on /proc with fstype proc
"""


def scope_of(root: Path, **files: str) -> Scope:
    for name, text in files.items():
        path = root / "proc" / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Scope(root=str(root), environ={})


def test_what_lies_elsewhere_is_found(tmp_path: Path) -> None:
    scope = scope_of(tmp_path, mounts=MOUNTS)
    assert network_mounts(scope) == [("/home", "nfs4"), ("/mnt/s", "fuse.sshfs"), ("/my data", "lustre")]
    assert network_mounts(scope_of(tmp_path / "other")) == []


def test_a_file_system_says_its_room(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    samples = {sample.name: sample for sample in mount_reader(scope_of(tmp_path), "/home", "nfs4")(0.0)}
    assert samples["podwright_storage_bytes"].labels == (("mountpoint", "/home"), ("fstype", "nfs4"))
    assert samples["podwright_storage_bytes"].value >= samples["podwright_storage_free_bytes"].value > 0


def test_nfs_counts_operations_and_their_time(tmp_path: Path) -> None:
    found = {
        (sample.name.rpartition("storage_")[2], dict(sample.labels)["operation"]): sample.value
        for sample in nfs_samples(scope_of(tmp_path, self__mountstats=MOUNTSTATS))
    }
    assert found == {
        ("operations_total", "read"): 1200,
        ("operation_seconds_total", "read"): 6.0,
        ("operations_total", "write"): 10,
        ("operation_seconds_total", "write"): 0.03,
    }


def kernel(interface: str, request: bytes) -> bytes:
    """Answers as a driver with four statistics does."""
    names = ("rx_packets", "rx_prio3_pause_duration", "rx_prio3_pause", "rx_prio4_pause_duration")
    (command,) = struct.unpack("=I", request[:4])
    if interface != "eth2":
        raise OSError("no such device")
    if command == 0x37:
        return request[:16] + struct.pack("=I", len(names))
    if command == 0x1B:
        return request[:12] + b"".join(name.encode().ljust(32, b"\0") for name in names)
    return request[:8] + struct.pack("=4Q", 7, 2_500_000, 9, 0)


def test_pauses_are_told_by_priority(tmp_path: Path) -> None:
    port = tmp_path / "sys" / "class" / "infiniband" / "mlx5_2"
    (port / "ports" / "1").mkdir(parents=True)
    (port / "ports" / "1" / "state").write_text("4: ACTIVE\n")
    for interface in ("eth2", "gone0"):
        (port / "device" / "net" / interface).mkdir(parents=True)
    samples = pause_samples(Scope(root=str(tmp_path), environ={}), kernel)
    assert [(dict(sample.labels)["priority"], sample.value) for sample in samples] == [("3", 2.5), ("4", 0.0)]
    assert dict(samples[0].labels)["interface"] == "eth2"


def test_a_driver_without_statistics_has_none() -> None:
    assert statistics("eth2", lambda interface, request: request[:16] + struct.pack("=I", 0)) == {}
