"""Machines without a system boot the pod's image over the network, and are hosts of the pod then.

Real dnsmasq and nginx, the image that the server's own recipe makes of Debian's packages, and machines that QEMU
emulates in software.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright.bringup.plan.boot_image.recipe import FOLDER, image_command, recipe_files
from podwright.bringup.plan.netboot import NetbootPlaces, machines
from podwright.bringup.plan.site import Site, site_of
from podwright.lab import caches
from podwright.spec import load_pod
from tests.real.boot_bench import BootNetwork, boot_network, emulated
from tests.real.clients import BIN, Client
from tests.real.controllers import LOGIN, controller

pytestmark = [
    pytest.mark.netns,
    pytest.mark.nightly,
    pytest.mark.xdist_group("netboot"),
    pytest.mark.timeout(7200, func_only=True),
]
MEMORY_MIB = 1536
NODE_MEMORY_MIB = 2560
"""For a node without a disk: the image, what is written over it, and the free GiB that Slurm's hooks want of /tmp."""
POD = """\
name: boot
nodes:
  - {hosts: m1, model: {sockets: 1, cores: 8, threads: 16, memory: 64GiB}, roles: [management], addresses: [10.88.0.1]}
  - hosts: g[1-2]
    model: {sockets: 1, cores: 2, threads: 2, memory: 1GiB}
    addresses: [10.88.0.11, 10.88.0.12]
    macs: ["52:54:00:88:00:01", "52:54:00:88:00:02"]
services: [netboot]
"""
# What starts in such a machine may take minutes, and each letter on its console costs it time.
NETBOOT = """\
bringup:
  user: admin
  ssh_config: {folder}/ssh_config
  netboot:
    first: 10.88.0.200
    last: 10.88.0.250
    interface: pxe0
    disk: /dev/vda
    arguments: console=ttyS0,115200n8 mitigations=off systemd.show_status=error systemd.default_timeout_start_sec=900
    install: {install}
    packages: [{packages}]
    keys: [{key}]
"""
FIRMWARE = "test -d /sys/firmware/efi && echo uefi || echo bios"
# A host that comes from the image has other keys whenever it boots.
SSH_CONFIG = """\
Host g1
  HostName 10.88.0.11
Host g2
  HostName 10.88.0.12
Host *
  IdentityFile {folder}/key
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
"""


def site_with(folder: Path, install: str, packages: str = "", cluster: str = "", more: str = "") -> Site:
    """Gives the pod with its image, and with a key whose other half lies in the folder."""
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "key")], check=True)
    (folder / "ssh_config").write_text(SSH_CONFIG.format(folder=folder))
    key = (folder / "key.pub").read_text().strip()
    file = folder / "pod.yaml"
    file.write_text(POD + cluster + NETBOOT.format(folder=folder, install=install, packages=packages, key=key) + more)
    return site_of(load_pod(file))


def with_image(network: BootNetwork) -> BootNetwork:
    """Puts the image where the server looks for it; it is made once for each recipe, as the server makes it."""
    command = image_command(network.site, NetbootPlaces())
    kept = caches.folder("bootimages") / command.sees
    if not (kept / "recipe").exists():
        kept.mkdir(parents=True, exist_ok=True)
        recipe = network.folder / "recipe"
        for file in recipe_files():
            path = recipe / file.path.removeprefix(f"{FOLDER}/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(file.text)
            path.chmod(int(file.mode, 8))
        places = {FOLDER: str(recipe), f"{NetbootPlaces().root}/files": str(kept)}
        subprocess.run([elsewhere(word, places) for word in command.run], check=True)
    (Path(network.places.root) / "files").symlink_to(kept)
    return network


def elsewhere(word: str, places: dict[str, str]) -> str:
    """Gives a word of a command with places of the server replaced by the test's own."""
    for place, other in places.items():
        word = word.replace(place, other)
    return word


def blank_disk(folder: Path, gib: int) -> Path:
    disk = folder / "disk"
    with disk.open("wb") as file:
        file.truncate(gib << 30)
    return disk


@pytest.fixture
def stateless(tmp_path: Path) -> Iterator[BootNetwork]:
    with boot_network(site_with(tmp_path, "image"), tmp_path) as network:
        yield with_image(network)


def test_a_machine_without_a_disk_boots_the_image_and_takes_the_pods_key(stateless: BootNetwork) -> None:
    stateless.start(*stateless.machine("g1", MEMORY_MIB), name="g1")
    stateless.reaches("g1", "running")
    assert stateless.ssh("g1", "hostname; findmnt -no FSTYPE /; sudo id -u").split() == ["g1", "overlay", "0"]
    assert stateless.ssh("g1", "systemctl is-system-running --wait || systemctl --failed").strip() == "running"


def test_a_damaged_image_is_not_booted(stateless: BootNetwork) -> None:
    files = Path(stateless.places.root) / "files"
    kept = files.resolve()
    files.unlink()
    (name,) = [path.name for path in kept.glob("image-*")]
    (files / name).mkdir(parents=True)
    for path in ("image.ipxe", f"{name}/vmlinuz", f"{name}/initrd"):
        (files / path).symlink_to(kept / path)
    (files / name / "root.squashfs").write_bytes(b"no image")
    stateless.start(*stateless.machine("g1", MEMORY_MIB), name="g1")
    serial = stateless.folder / "g1.serial"
    assert emulated(lambda: serial.exists() and b"podwright: the image is damaged" in serial.read_bytes())
    assert stateless.states()["g1"].state == "booting"


def test_a_controller_switches_the_machine_on_and_it_boots_from_the_network(stateless: BootNetwork) -> None:
    machine = stateless.inside(*stateless.machine("g1", MEMORY_MIB))
    (mac, _), *_ = machines(stateless.site).items()
    system = {"uuid": "27946b59-9e44-4fa7-8e91-f3527a1ef091", "name": "g1", "nics": [{"mac": mac}], "command": machine}
    with controller(stateless.folder, [{**system, "power_state": "Off"}]) as url:
        file = stateless.folder / "powered.yaml"
        bmc = f"    bmc: {{address: ['{url}', '{url}'], secret: BMC_LOGIN}}\n    addresses: [10.88.0.11"
        file.write_text((stateless.folder / "pod.yaml").read_text().replace("    addresses: [10.88.0.11", bmc))
        client = Client(stateless.folder)
        client.environ["BMC_LOGIN"] = LOGIN
        client.ask("pod", "power", str(file), "on", "--boot", "pxe", "--limit", "g1", "--yes")
        stateless.reaches("g1", "running")
        assert stateless.ssh("g1", "hostname").strip() == "g1"
        client.ask("pod", "power", str(file), "force-off", "--limit", "g1", "--yes")
        power = json.loads(client.ask("pod", "power", str(file), "--limit", "g1", "--json"))["hosts"]["g1"]
        assert power["power"] == "off"


@pytest.mark.parametrize("firmware", ["bios", "uefi"])
def test_the_image_is_installed_unattended_and_the_disk_boots(tmp_path: Path, firmware: str) -> None:
    disk = blank_disk(tmp_path, 8)
    with boot_network(site_with(tmp_path, "image-on-disk"), tmp_path) as network:
        with_image(network).start(*network.machine("g1", MEMORY_MIB, disk, firmware), name="g1")
        network.reaches("g1", "installing")
        network.reaches("g1", "installed", "running")
        network.reaches("g1", "running")
        seen = network.ssh("g1", f"hostname; findmnt -no FSTYPE,SOURCE /; cat /proc/cmdline; sudo id -u; {FIRMWARE}")
        host, root, arguments, user, started = seen.splitlines()
        assert (host, root.split(), user, started) == ("g1", ["ext4", "/dev/vda3"], "0", firmware)
        assert "mitigations=off" in arguments


CLUSTER = """\
storage:
  - {name: shared, kind: nfs, mount: /shared, server: "10.88.0.12:/srv/shared"}
schedulers:
  - {kind: slurm, hosts: g1, folder: "/shared/$USER/podwright"}
"""
ROLES = """\
  roles: {controller: g2, login: g2, storage: g2}
  exports: [{path: /srv/shared, to: [10.88.0.0/24]}]
"""
PACKAGES = (
    "libpmix-dev, mariadb-server, munge, nfs-common, nfs-kernel-server, slurm-client, slurmctld, slurmd, slurmdbd"
)
"""What these hosts would otherwise fetch, and there is nowhere to fetch from."""


def up(network: BootNetwork, *options: str) -> dict[str, int]:
    """Brings both machines up, from within their network; gives how much changed on each."""
    words = ("pod", "up", str(network.folder / "pod.yaml"), "--limit", "g[1-2]", "--json", *options)
    environ = {**os.environ, "PODWRIGHT_HOME": str(network.folder / "home"), "PATH": f"{BIN}:{os.environ['PATH']}"}
    command = network.inside(str(BIN / "podwright"), *words)
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return {host: counts["changed"] for host, counts in json.loads(done.stdout)["hosts"].items()}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BootNetwork]:
    """Gives two machines that run from the image; the second has a disk, since what lies in memory is not exported."""
    folder = tmp_path_factory.mktemp("pair")
    disk = blank_disk(folder, 1)
    with boot_network(site_with(folder, "image", PACKAGES, CLUSTER, ROLES), folder) as network:
        with_image(network).start(*network.machine("g1", NODE_MEMORY_MIB), name="g1")
        network.start(*network.machine("g2", NODE_MEMORY_MIB, disk), name="g2")
        for host in ("g1", "g2"):
            network.reaches(host, "running")
        network.ssh("g2", "sudo mkfs.ext4 -q /dev/vda && sudo mkdir /srv/shared && sudo mount /dev/vda /srv/shared")
        yield network


@pytest.mark.ansible
def test_a_machine_mounts_what_the_other_exports(pair: BootNetwork) -> None:
    assert set(up(pair, "--only", "storage")) == {"g1", "g2"}
    pair.ssh("g2", "echo from the server | sudo tee /srv/shared/greeting")
    seen = pair.ssh("g1", "findmnt -no FSTYPE /shared; cat /shared/greeting")
    assert seen.splitlines() == ["nfs4", "from the server"]


@pytest.mark.ansible
def test_a_machine_joins_slurm_as_a_node(pair: BootNetwork) -> None:
    up(pair)
    assert emulated(lambda: "idle" in pair.ssh("g2", "sinfo --noheader --format=%t"))
    assert pair.ssh("g2", "sudo srun --nodes=1 --ntasks=2 hostname").split() == ["g1", "g1"]
    assert emulated(lambda: "COMPLETED" in pair.ssh("g2", "sudo sacct --noheader --allocations --format=state"))
    assert up(pair) == {"g1": 0, "g2": 0}
