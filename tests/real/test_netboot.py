"""A machine without a system boots from what is rendered: real dnsmasq and nginx, and a QEMU machine that netboots.

The machine is emulated in software. What stands for the installer's kernel is iPXE in the form of a Linux kernel: it is
small enough for every run of the tests, and ends there.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright.bringup.apply import authority
from podwright.bringup.plan.installer_answers import done_line
from podwright.bringup.plan.netboot import base_url
from podwright.bringup.plan.site import site_of
from podwright.spec import load_pod
from tests.paths import CASES
from tests.real.boot_bench import BootNetwork, boot_network, emulated
from tests.real.clients import until

pytestmark = [pytest.mark.netns, pytest.mark.slow]
CASE = CASES / "bringup" / "netboot"
KERNEL = Path("/usr/lib/ipxe/ipxe.lkrn")
MAC = "52:54:00:88:00:01"
SCRIPT = "/mac/52-54-00-88-00-01.ipxe"


@pytest.fixture
def network(tmp_path: Path) -> Iterator[BootNetwork]:
    with boot_network(site_of(load_pod(CASE / "pod.yaml")), tmp_path) as network:
        shutil.copy(KERNEL, f"{network.places.installer}/linux")
        (Path(network.places.installer) / "initrd.gz").write_text("nothing\n")
        yield network


def test_a_machine_gets_its_address_its_script_and_its_kernel_and_then_its_disk(network: BootNetwork) -> None:
    machine = network.start(*network.machine("g1"), name="g1")
    until(lambda: "/installer/initrd.gz" in paths(network), "the machine has what it boots")
    assert network.states()["g1"].state == "installing"
    state = network.states()["g1"]
    assert (state.mac, state.address) == (MAC, "10.88.0.11")
    assert paths(network)[:4] == ["/boot.ipxe", "/done/52-54-00-88-00-01.ipxe", SCRIPT, "/installer/linux"]
    sizes = {row[3]: int(row[5]) for row in network.requests() if row[4] == "200"}
    assert sizes["/installer/linux"] == KERNEL.stat().st_size
    machine.terminate()
    machine.wait()
    # What an installer does last, from the address that the host has.
    said = subprocess.run(
        network.as_host("g1", "bash", "-c", done_line(network.site, MAC)), capture_output=True, text=True, check=True
    )
    assert "204 No Content" in said.stdout
    assert network.states()["g1"].state == "installed"
    network.start(*network.machine("g1"), name="g1")
    until(
        lambda: ["/done/52-54-00-88-00-01.ipxe", "200"] in [row[3:5] for row in network.requests()], "sent to its disk"
    )


@pytest.mark.nightly
def test_a_machine_with_uefi_gets_the_same(network: BootNetwork) -> None:
    shutil.copy(KERNEL.with_name("ipxe.efi"), f"{network.places.installer}/linux")
    network.start(*network.machine("g1", firmware="uefi"), name="g1")
    assert emulated(lambda: "/installer/initrd.gz" in paths(network))
    assert network.states()["g1"].state == "installing"
    assert paths(network)[:4] == ["/boot.ipxe", "/done/52-54-00-88-00-01.ipxe", SCRIPT, "/installer/linux"]


@pytest.fixture
def secure(tmp_path: Path) -> Iterator[BootNetwork]:
    """The same, whose loaders come by HTTPS alone."""
    (tmp_path / "pod.yaml").write_text(
        (CASE / "pod.yaml").read_text().replace("  netboot:\n", "  netboot:\n    https: true\n")
    )
    with boot_network(site_of(load_pod(tmp_path / "pod.yaml")), tmp_path) as network:
        yield network


@pytest.mark.nightly
def test_firmware_takes_its_loader_from_the_server_that_the_pods_authority_knows(secure: BootNetwork) -> None:
    """The loader that it gets asks for its script; of another server's it would get none."""
    secure.start(*secure.machine("g1", firmware="uefi", knows=secure.ca), name="g1")
    assert emulated(lambda: SCRIPT in paths(secure))
    assert paths(secure)[0] == "/loaders/snponly.efi"


@pytest.mark.nightly
def test_firmware_takes_no_loader_from_a_server_of_another_authority(secure: BootNetwork) -> None:
    other = authority.new("another", kind=authority.RSA)["ca_certificate"]
    secure.start(*secure.machine("g1", firmware="uefi", knows=other), name="g1")
    serial = secure.folder / "g1.serial"
    assert emulated(
        lambda: serial.exists() and "Could not retrieve NBP file size" in serial.read_text(errors="replace")
    )
    assert "https://10.88.0.1:8443/loaders/snponly.efi" in serial.read_text(errors="replace")
    assert paths(secure) == []


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
    refused = subprocess.run(
        network.inside("bash", "-c", done_line(network.site, MAC)), capture_output=True, text=True, check=True
    )
    assert "204 No Content" not in refused.stdout
    assert not list(Path(f"{network.places.root}/done").iterdir())


def paths(network: BootNetwork) -> list[str]:
    return [row[3] for row in network.requests()]


def test_debians_loader_knows_no_tls() -> None:
    """Once it does, hosts may boot by HTTPS, and docs/bring-up.md says otherwise."""
    loader = Path("/usr/lib/ipxe/snponly.efi").read_bytes()
    assert (b"\0http\0" in loader, b"\0https\0" in loader) == (True, False)
