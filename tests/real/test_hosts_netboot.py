"""A bare host becomes the server that others boot from, by `pod up`, and another host asks it as firmware would."""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from podwright.bringup.plan.boot_scripts import boot_files
from podwright.bringup.plan.installer_answers import done_line
from podwright.bringup.plan.netboot import NetbootPlaces, base_url, hyphens
from podwright.bringup.plan.site import Site, site_of
from podwright.spec import load_pod
from tests.paths import ROOT
from tests.real.clients import Client
from tests.real.hosts_bench import ON_HOSTS, Bench, changed
from tests.real.labs import aloud, hosts_lab

# The first mark of a kind counts.
pytestmark = [pytest.mark.timeout(3600, func_only=True), *ON_HOSTS, pytest.mark.nightly]
MAC = "52:54:00:77:00:02"
STRANGER = "52:54:00:77:00:99"
FILES = f"{NetbootPlaces().root}/files"
POD = """\
name: lab-hosts
nodes:
  - hosts: n1
    model: {{title: The server, sockets: 1, cores: 4, threads: 4, memory: 4GiB}}
    roles: [management]
  - hosts: n2
    model: {{title: A host that boots from it, sockets: 1, cores: 4, threads: 4, memory: 4GiB}}
    macs: ["52:54:00:77:00:02"]
services: [netboot]
bringup:
  netboot:
    first: 10.77.9.1
    last: 10.77.9.50
    netmask: 255.255.0.0
    source: http://10.77.0.1/0
    install: {install}
    keys: [ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIExample admin@example]
"""
FIRMWARE = (ROOT / "tests" / "fixtures" / "firmware.py").read_text()
"""A program that asks as firmware does; hosts have Python, and nothing else of ours."""


@pytest.fixture(scope="module")
def bench(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Bare hosts: nothing is brought up yet."""
    with hosts_lab(say=aloud(pytestconfig), nodes=2) as lab:
        folder = tmp_path_factory.mktemp("netboot")
        yield Bench(lab, Client(folder, lab.pod_file), folder)


def up(bench: Bench, install: str) -> Site:
    """Brings the server up; a second time nothing changes, and no host differs."""
    bench.file = bench.folder / f"{install}.yaml"
    bench.file.write_text(POD.format(install=install))
    assert changed(bench.up())["n1"] > 0
    assert changed(bench.up()) == {"n1": 0, "n2": 0}
    assert {host: entry["drift"] for host, entry in bench.status().items()} == {"n1": [], "n2": []}
    assert bench.pod("plan")["changes"] == 0
    assert bench.on("n1", "systemctl is-active dnsmasq nginx").split() == ["active", "active"]
    return site_of(load_pod(bench.home / "pods" / "lab-hosts.yaml"))


def asked(bench: Bench, *words: str) -> Any:
    """Gives what the server answers when n2 asks for it."""
    return json.loads(bench.on("n2", f"python3 -c {shlex.quote(FIRMWARE)} {shlex.join(words)}"))


def digest_on(bench: Bench, path: str) -> str:
    """Gives the SHA-256 of a file on the server."""
    return bench.on("n1", f"sha256sum {path}").split()[0]


def check_files(bench: Bench, site: Site) -> None:
    """What is planned is what is served, byte by byte."""
    for path, text in boot_files(site).items():
        assert asked(bench, "http", f"{base_url(site)}/{path}") == hashlib.sha256(text.encode()).hexdigest(), path


def state(bench: Bench) -> str:
    """Gives how far n2 is, as `pod nodes` says."""
    return str(bench.pod("nodes")["hosts"]["n2"]["state"])


def test_the_server_gives_addresses_and_loaders_and_sends_hosts_to_the_installer(bench: Bench) -> None:
    site = up(bench, "installer")
    server, url = site.addresses["n1"], base_url(site)
    assert state(bench) == "absent"
    offer = {"address": site.addresses["n2"], "server": server}
    # Firmware asks for a loader of its kind, and the loader, which says that it is iPXE, for its script.
    for kind, file in {"0": "undionly.kpxe", "7": "snponly.efi", "ipxe": f"{url}/boot.ipxe"}.items():
        assert asked(bench, "dhcp", MAC, kind) == {**offer, "file": file}
    assert asked(bench, "dhcp", STRANGER, "0")["address"].startswith("10.77.9.")
    for loader in ("undionly.kpxe", "snponly.efi"):
        assert asked(bench, "tftp", server, loader) == digest_on(bench, f"/usr/lib/ipxe/{loader}")
    check_files(bench, site)
    for name in ("linux", "initrd.gz"):
        kernel = digest_on(bench, f"{NetbootPlaces().installer}/{name}")
        assert asked(bench, "http", f"{url}/installer/{name}") == kernel
    assert state(bench) == "installing"


def test_a_host_that_says_it_is_done_is_sent_to_its_disk_until_it_is_installed_anew(bench: Bench) -> None:
    """After what the test above has brought up: n2 says what an installer says last."""
    site = site_of(load_pod(bench.home / "pods" / "lab-hosts.yaml"))
    assert "204 No Content" in bench.on("n2", f"bash -c {shlex.quote(done_line(site, MAC))}")
    assert state(bench) == "installed"
    assert asked(bench, "http", f"{base_url(site)}/done/{hyphens(MAC)}.ipxe")
    # What a host has put there is no drift.
    assert bench.status()["n1"] == {"state": "ok", "drift": []}
    # A token is good for once; who has seen it cannot use it after the host is to be installed again.
    assert "404 Not Found" in bench.on("n2", f"bash -c {shlex.quote(done_line(site, MAC))}")
    bench.pod("nodes", "--install", "n2", "--yes")
    assert bench.lab.run("n1", f"test -e {NetbootPlaces().root}/done/{hyphens(MAC)}.ipxe").returncode == 1
    assert "204 No Content" in bench.on("n2", f"bash -c {shlex.quote(done_line(site, MAC))}")


def test_the_server_makes_an_image_once_and_gives_it_whole(bench: Bench) -> None:
    site = up(bench, "image")
    check_files(bench, site)
    url = f"{base_url(site)}/files"
    script = dict(line.split()[1:] for line in bench.on("n1", f"cat {FILES}/image.ipxe").splitlines()[1:])
    assert asked(bench, "http", f"{url}/image.ipxe") == digest_on(bench, f"{FILES}/image.ipxe")
    assert asked(bench, "http", f"{url}/{script['image']}/root.squashfs") == script["digest"]
    for name in ("vmlinuz", "initrd"):
        kernel = digest_on(bench, f"{FILES}/{script['image']}/{name}")
        assert asked(bench, "http", f"{url}/{script['image']}/{name}") == kernel
    # Neither half an image nor an old one lies beside it.
    assert sorted(bench.on("n1", f"ls -A {FILES}").split()) == sorted([script["image"], "image.ipxe", "recipe"])
