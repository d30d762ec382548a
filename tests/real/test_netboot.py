"""A machine without a system boots from what is rendered: real dnsmasq and nginx, and a QEMU machine that netboots.

The machine is emulated in software. What stands for the installer's kernel is iPXE in the form of a Linux kernel: it is
small enough for every run of the tests, and ends there.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from podwright.bringup.answers import finish_lines
from podwright.bringup.bootscripts import boot_files
from podwright.bringup.netboot import NetbootPlaces, base_url, dnsmasq_text, nginx_text
from podwright.bringup.nodes import NodeState, node_states
from podwright.bringup.site import Site, site_of
from podwright.spec import load_pod
from tests.paths import CASES
from tests.real.clients import until

pytestmark = [pytest.mark.netns, pytest.mark.slow]
CASE = CASES / "bringup" / "netboot"
KERNEL = Path("/usr/lib/ipxe/ipxe.lkrn")
MAC = "52:54:00:88:00:01"
SCRIPT = "/mac/52-54-00-88-00-01.ipxe"


@dataclass
class BootNetwork:
    """A network of its own with the server, as bring-up sets it up."""

    site: Site
    name: str
    folder: Path
    places: NetbootPlaces
    stack: ExitStack

    def inside(self, *command: str) -> list[str]:
        return ["ip", "netns", "exec", self.name, *command]

    def start(self, *command: str) -> subprocess.Popen[bytes]:
        """Starts a program in the network; it ends with the test."""
        log = (self.folder / f"{Path(command[0]).name}.out").open("wb")
        process = subprocess.Popen(self.inside(*command), stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.stack.callback(log.close)
        self.stack.callback(process.wait)
        self.stack.callback(process.terminate)
        return process

    def boot(self) -> subprocess.Popen[bytes]:
        """Switches the machine on."""
        return self.start(
            "qemu-system-x86_64",
            *("-accel", "tcg", "-m", "256", "-display", "none", "-nodefaults", "-no-reboot", "-boot", "n"),
            *("-serial", f"file:{self.folder}/serial"),
            *("-netdev", "tap,id=n0,ifname=tap0,script=no,downscript=no"),
            *("-device", f"virtio-net-pci,netdev=n0,mac={MAC},bootindex=1"),
        )

    def states(self) -> dict[str, NodeState]:
        leases, log = Path(self.places.leases), Path(self.places.log)
        texts = [path.read_text() if path.exists() else "" for path in (leases, log)]
        done = [path.name for path in Path(f"{self.places.root}/done").iterdir()]
        return node_states(self.site, texts[0], texts[1], done)


@pytest.fixture
def network(tmp_path: Path) -> Iterator[BootNetwork]:
    site = site_of(load_pod(CASE / "pod.yaml"))
    # The server's own user passes through here.
    tmp_path.chmod(0o755)
    places = NetbootPlaces(
        root=f"{tmp_path}/http",
        installer=f"{tmp_path}/installer",
        leases=f"{tmp_path}/leases",
        log=f"{tmp_path}/requests",
        run=str(tmp_path),
        user="root",
    )
    for path, text in boot_files(site).items():
        file = Path(places.root) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    for folder in ("done", ".part"):
        (Path(places.root) / folder).mkdir()
    Path(places.installer).mkdir()
    shutil.copy(KERNEL, f"{places.installer}/linux")
    (Path(places.installer) / "initrd.gz").write_text("nothing\n")
    with ExitStack() as stack:
        network = BootNetwork(site, f"pxe{os.getpid()}", tmp_path, places, stack)
        wire(network, stack)
        conf, web = tmp_path / "dnsmasq.conf", tmp_path / "nginx.conf"
        conf.write_text(dnsmasq_text(site, places))
        web.write_text(nginx_text(site, places))
        network.start("dnsmasq", "--keep-in-foreground", "--user=root", "--pid-file=", f"--conf-file={conf}")
        network.start("nginx", "-c", str(web), "-g", "daemon off;")
        yield network


def wire(network: BootNetwork, stack: ExitStack) -> None:
    """Makes a network with a bridge that the server listens on, and a port for the machine."""

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True)

    ip("netns", "add", network.name)
    stack.callback(ip, "netns", "del", network.name)
    ip("-n", network.name, "link", "set", "lo", "up")
    ip("-n", network.name, "link", "add", "pxe0", "type", "bridge", "forward_delay", "0")
    ip("-n", network.name, "addr", "add", "10.88.0.1/24", "dev", "pxe0")
    ip("-n", network.name, "link", "set", "pxe0", "up")
    ip("-n", network.name, "tuntap", "add", "tap0", "mode", "tap")
    ip("-n", network.name, "link", "set", "tap0", "master", "pxe0", "up")


def requests(network: BootNetwork) -> list[list[str]]:
    path = Path(network.places.log)
    return [line.split() for line in path.read_text().splitlines()] if path.exists() else []


def test_a_machine_gets_its_address_its_script_and_its_kernel_and_then_its_disk(network: BootNetwork) -> None:
    machine = network.boot()
    until(lambda: "/installer/initrd.gz" in paths(network), "the machine has what it boots")
    assert network.states()["g1"].state == "installing"
    state = network.states()["g1"]
    assert (state.mac, state.address) == (MAC, "10.88.0.11")
    assert paths(network)[:4] == ["/boot.ipxe", "/done/52-54-00-88-00-01.ipxe", SCRIPT, "/installer/linux"]
    sizes = {row[3]: int(row[5]) for row in requests(network) if row[4] == "200"}
    assert sizes["/installer/linux"] == KERNEL.stat().st_size
    machine.terminate()
    machine.wait()
    # What an installer does last, from the address that the host has.
    said = subprocess.run(
        network.inside("bash", "-c", finish_lines(network.site, MAC)[-1]), capture_output=True, text=True, check=True
    )
    assert "201 Created" in said.stdout
    assert network.states()["g1"].state == "installed"
    network.boot()
    until(
        lambda: ["/done/52-54-00-88-00-01.ipxe", "200"] in [row[3:5] for row in requests(network)], "sent to its disk"
    )


PUT = """\
import sys, urllib.error, urllib.request
for path in sys.argv[2:]:
    request = urllib.request.Request(sys.argv[1] + path, b"x", method="PUT")
    try:
        print(urllib.request.urlopen(request).status)
    except urllib.error.HTTPError as error:
        print(error.code)
"""


def test_nobody_puts_anything_else(network: BootNetwork) -> None:
    refused = ["/boot.ipxe", SCRIPT, "/done/../boot.ipxe", "/done/x.ipxe", "/installer/linux"]
    command = network.inside("python3", "-c", PUT, base_url(network.site), *refused)

    def answers() -> list[str]:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout.split() if done.returncode == 0 else []

    assert set(until(answers, "the server answers")) <= {"403", "405"}


def paths(network: BootNetwork) -> list[str]:
    return [row[3] for row in requests(network)]
