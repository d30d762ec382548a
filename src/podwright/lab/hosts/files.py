"""The files of a lab of hosts: its scripts, its keys, and what each bare disk says of its host."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path

from podwright.files.whole import whole_path
from podwright.lab import cgroups, debian, mask, scripts, ssh
from podwright.lab.folder import keep, write
from podwright.lab.hosts import shape
from podwright.lab.hosts.shape import SHARED, HostsLabShape
from podwright.lab.scripts import INSIDE
from podwright.lab.user import LabUser

MIRROR_PORT = 80
_FOLDERS = ("bin", "disks", "log", "pids", "run", "shared", "ssh")
_SYSTEM = (Path("/"), Path("/usr"))


def write_all(folder: Path, wanted: HostsLabShape, user: LabUser, image: Path, port: int) -> None:
    """Write everything; may be repeated, also with more hosts, and what says that there is a lab comes last."""
    for name in _FOLDERS:
        (folder / name).mkdir(exist_ok=True, mode=0o755)
    (folder / "shared").chmod(0o1777)
    covers = mask.veils([folder], lambda _: True, always=[Path("/run")])
    write(folder / "bin" / scripts.START_SCRIPT, scripts.start_script(folder))
    write(folder / "bin" / scripts.HUB_SCRIPT, scripts.hub_script(folder, covers, {}))
    write(folder / "bin" / scripts.MACHINE_SCRIPT, scripts.machine_script(boot_lines(folder, image)))
    ssh.make_user_key(folder / "ssh" / "id_ed25519", user)
    for host in wanted.hosts():
        write_disk(folder, host, wanted.gpus)
    write_access(folder, wanted, port)
    key = (folder / "ssh" / "id_ed25519.pub").read_text().strip()
    write(folder / "pod.yaml", shape.pod_text(folder, wanted, user, key))
    keep(folder, shape.KIND, shape=asdict(wanted), user=asdict(user))


def boot_lines(folder: Path, image: Path) -> str:
    """Return the lines that boot a host on its disk, in the namespaces and the control groups of its machine.

    It is the master of its network, which is its machine's alone: a server of addresses starts nowhere else.
    """
    groups = f"/sys/fs/cgroup/*/{cgroups.tree(folder)}/$1 /sys/fs/cgroup/{cgroups.tree(folder)}/$1"
    bound = " ".join(f"--bind-ro={path}" for path in bound_folders())
    return f"""\
for group in {groups}; do
	[ ! -e "$group/cgroup.procs" ] || echo 0 >"$group/cgroup.procs"
done
disk={INSIDE}/disks/$1
mkdir -p "$disk/work" "$disk/root"
mount -n -t overlay -o "lowerdir={image},upperdir=$disk/written,workdir=$disk/work" overlay "$disk/root"
setsid systemd-nspawn --quiet --boot --directory="$disk/root" --machine="$1" --register=no --keep-unit \\
	--network-namespace-path=/proc/self/ns/net --capability=CAP_NET_ADMIN --resolv-conf=off --timezone=off \\
	--console=pipe --suppress-sync=yes \\
	--bind={INSIDE}/shared:{SHARED} {bound} </dev/null >>"{INSIDE}/log/boot-$1.log" 2>&1 &
"""


def bound_folders() -> list[Path]:
    """Return the folders of the environment that hosts see; a Python of the system is on their own disks."""
    return [path for path in mask.outermost(mask.needed_folders()) if path not in _SYSTEM]


def write_disk(folder: Path, host: str, gpus: int) -> None:
    """Write what a bare host has beyond the image, as an installer would leave it; a disk in use stays as it is."""
    disk = folder / "disks" / host / "written"
    if disk.exists():
        return
    with whole_path(disk) as part:
        for path in ("ssh", "apt/apt.conf.d", "profile.d", "tmpfiles.d"):
            (part / "etc" / path).mkdir(parents=True)
        (part / "root").mkdir(mode=0o755)
        (part / "root" / ".ssh").mkdir(mode=0o700)
        write(part / "etc" / "hostname", f"{host}\n")
        write(part / "etc" / "hosts", f"127.0.0.1 localhost\n127.0.1.1 {host}\n")
        write(part / "etc" / "apt" / "sources.list", sources_list())
        # This machine's source may be a snapshot, whose lists are past their date.
        write(part / "etc" / "apt" / "apt.conf.d" / "90lab", 'Acquire::Check-Valid-Until "false";\n')
        write(part / "etc" / "profile.d" / "lab.sh", f'PATH="{Path(sys.prefix) / "bin"}:$PATH"\n')
        # Slurm counts a GPU only when it is a device.
        devices = "".join(f"L /dev/nvidia{number} - - - - /dev/null\n" for number in range(gpus))
        write(part / "etc" / "tmpfiles.d" / "lab-gpus.conf", devices)
        write(part / "root" / ".ssh" / "authorized_keys", (folder / "ssh" / "id_ed25519.pub").read_text(), 0o600)
        ssh.make_key(part / "etc" / "ssh" / "ssh_host_ed25519_key")
        # Else the empty lists of the image would be taken for fresh ones.
        lists = part / "var" / "lib" / "apt" / "lists"
        lists.mkdir(parents=True)
        os.utime(lists, (0, 0))


def sources_list() -> str:
    """Return apt's sources of a host: those of this machine by number, through the lab's mirror."""
    lines = []
    for number, source in enumerate(debian.sources(debian.sources_file().read_text())):
        for suite in source.suites:
            place = f"http://{scripts.BRIDGE_ADDRESS}:{MIRROR_PORT}/{number}"
            lines.append(f"deb {place} {suite} {' '.join(source.components)}\n")
    return "".join(lines)


def write_access(folder: Path, wanted: HostsLabShape, port: int) -> None:
    """Write the ssh configuration: a door on the loopback to the first host, and through it to the others."""
    where = ssh.quoted(folder / "ssh")
    first, *others = wanted.addresses().items()
    lines = [f"Host {first[0]}", f"\tHostName {ssh.LOOPBACK}", f"\tPort {port}"]
    for host, address in others:
        lines += [f"Host {host}", f"\tHostName {address}", f"\tProxyJump {first[0]}"]
    for host in wanted.hosts():
        lines += [f"Host {host}", f"\tHostKeyAlias {host}"]
    lines += ["Host *", "\tUser root", f'\tIdentityFile "{where}/id_ed25519"', "\tIdentitiesOnly yes"]
    lines += [f'\tUserKnownHostsFile "{where}/known_hosts"', "\tGlobalKnownHostsFile /dev/null"]
    lines += ["\tStrictHostKeyChecking yes", "\tConnectTimeout 20"]
    write(folder / "ssh" / "config", "\n".join([*lines, ""]))
    keys = [f"{host} {_host_key(folder, host)}" for host in wanted.hosts()]
    write(folder / "ssh" / "known_hosts", "".join(keys))


def _host_key(folder: Path, host: str) -> str:
    return (folder / "disks" / host / "written" / "etc" / "ssh" / "ssh_host_ed25519_key.pub").read_text()
