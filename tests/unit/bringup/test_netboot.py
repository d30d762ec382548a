"""What hosts without a system are given, and how far they are by what the server saw."""

from __future__ import annotations

import getpass
import json
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path

import jsonschema
import pytest
import yaml

from podwright.bringup.apply.boot_progress import NodeState, node_states
from podwright.bringup.apply.vault import Vault
from podwright.bringup.plan.boot_image.recipe import image_command, recipe_files
from podwright.bringup.plan.boot_scripts import boot_files
from podwright.bringup.plan.hosts import plan
from podwright.bringup.plan.installer_answers import finish_lines
from podwright.bringup.plan.netboot import NetbootPlaces, dnsmasq_text, nginx_text
from podwright.bringup.plan.site import Site, site_of
from podwright.spec import Refusal, load_pod
from tests.fixtures.hosts import told
from tests.fixtures.sshd import ssh_config
from tests.paths import CASES, ROOT
from tests.real.clients import BIN, Client

__all__ = ["ssh_config"]

CASE = CASES / "bringup" / "netboot"
MACS = ("52:54:00:88:00:01", "52:54:00:88:00:02")
SCRIPT = "mac/52-54-00-88-00-01.ipxe"


@pytest.fixture
def site() -> Site:
    return site_of(load_pod(CASE / "pod.yaml"))


def changed(folder: Path, **words: str) -> Site:
    """Gives the case's site with some of its words replaced."""
    text = (CASE / "pod.yaml").read_text()
    for before, after in words.items():
        text = text.replace(before.replace("_", "-"), after)
    path = folder / "pod.yaml"
    path.write_text(text)
    return site_of(load_pod(path))


def test_the_server(golden: Callable[[Path, str], None], site: Site) -> None:
    golden(CASE / "expected" / "m1.txt", told(plan(site.pod, only="netboot")["m1"]))
    assert plan(site.pod, only="netboot")["g1"].steps == {}


@pytest.mark.parametrize(("os", "name"), [("ubuntu-24.04", "g1/user-data"), ("rhel-9", "g1.ks")])
def test_answers_of_other_installers(tmp_path: Path, os: str, name: str, golden: Callable[[Path, str], None]) -> None:
    other = changed(tmp_path, **{"os: debian_12": f"os: {os}\n    source: http://10.88.0.1/{os}"})
    files = boot_files(other)
    golden(CASE / "expected" / f"{os}.txt", files[f"answers/{name}"] + files["mac/52-54-00-88-00-01.ipxe"])


@pytest.mark.parametrize("install", ["image", "image-on-disk"])
def test_hosts_that_boot_the_image(tmp_path: Path, install: str, golden: Callable[[Path, str], None]) -> None:
    more = "packages: [nfs-common]\n    arguments: console=ttyS1 iommu=pt"
    site = changed(tmp_path, **{"os: debian_12": f"install: {install}\n    {more}"})
    texts = [f"--- {path}\n{text}" for path, text in boot_files(site).items() if "g1" in path or path == SCRIPT]
    step = plan(site.pod, only="netboot")["m1"].steps["netboot.system"]
    (command,) = step.commands
    build = " ".join(word if word != command.sees else "RECIPE" for word in command.run)
    golden(CASE / "expected" / f"{install}.txt", "".join(texts) + f"--- packages {' '.join(step.packages)}\n{build}\n")


def test_another_recipe_makes_another_image(tmp_path: Path, site: Site) -> None:
    image = changed(tmp_path, **{"os: debian_12": "install: image"})
    more = changed(tmp_path, **{"os: debian_12": "install: image\n    packages: [nfs-common]"})
    assert len({image_command(each, NetbootPlaces()).sees for each in (image, more)}) == 2
    assert image_command(image, NetbootPlaces()) == image_command(site, NetbootPlaces())


def test_the_programs_of_the_image_are_what_their_shells_take(tmp_path: Path) -> None:
    image = changed(tmp_path, **{"os: debian_12": "install: image-on-disk"})
    scripts = {file.path: file.text for file in recipe_files() if file.mode == "0755"}
    scripts |= {path: text for path, text in boot_files(image).items() if path.endswith(".sh")}
    assert len(scripts) == 8
    for path, text in scripts.items():
        shell = "sh" if text.startswith("#!/bin/sh") or "initramfs" in path else "bash"
        done = subprocess.run([shell, "-n"], input=text, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, ""), path


def test_an_image_of_another_system_is_refused(tmp_path: Path) -> None:
    site = changed(tmp_path, **{"os: debian_12": "os: rhel-9\n    install: image"})
    with pytest.raises(Refusal, match=r"bringup.netboot.os: is rhel-9.*an image is made of Debian 12 alone"):
        plan(site.pod, only="netboot")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("packages: [nfs-common; reboot]", '"nfs-common; reboot" is not a package of Debian'),
        ("arguments: quiet || shell", '"quiet || shell" are no arguments of a kernel'),
    ],
)
def test_what_would_be_more_than_a_word_of_a_command_is_refused(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(Refusal) as refused:
        changed(tmp_path, **{"os: debian_12": line})
    assert message in str(refused.value)


@pytest.mark.parametrize("user", ["admin", "root"])
def test_autoinstall_is_what_its_schema_allows(tmp_path: Path, user: str) -> None:
    words = {"os: debian_12": "os: ubuntu-24.04\n    source: http://10.88.0.1/ubuntu", "user: admin": f"user: {user}"}
    answers = yaml.safe_load(boot_files(changed(tmp_path, **words))["answers/g1/user-data"])["autoinstall"]
    schema = jsonschema.Draft202012Validator(json.loads((CASE / "autoinstall-schema.json").read_text()))
    assert [error.message for error in schema.iter_errors(answers)] == []
    answers["ssh"]["allow-password"] = answers["ssh"].pop("allow-pw")
    (error,) = schema.iter_errors(answers)
    assert "'allow-password' was unexpected" in error.message


def test_owners_take_the_files(tmp_path: Path, site: Site) -> None:
    (tmp_path / "root").mkdir()
    places = NetbootPlaces(
        root=f"{tmp_path}/root", log=f"{tmp_path}/log", run=str(tmp_path), leases=f"{tmp_path}/leases"
    )
    conf = tmp_path / "dnsmasq.conf"
    conf.write_text(dnsmasq_text(site, places))
    tested = subprocess.run(
        ["/usr/sbin/dnsmasq", "--test", f"--conf-file={conf}"], capture_output=True, text=True, check=False
    )
    assert (tested.returncode, tested.stderr.strip()) == (0, "dnsmasq: syntax check OK."), tested.stderr
    web = tmp_path / "nginx.conf"
    # Whether the address is this machine's is no matter of its words.
    web.write_text(nginx_text(site, places).replace("listen 10.88.0.1:8080", "listen 127.0.0.1:18080"))
    tested = subprocess.run(
        ["/usr/sbin/nginx", "-t", "-q", "-c", str(web)], capture_output=True, text=True, check=False
    )
    assert tested.returncode == 0, tested.stderr


def test_debconf_takes_the_preseed(tmp_path: Path, site: Site) -> None:
    file = tmp_path / "preseed.cfg"
    file.write_text(boot_files(site)["answers/g1.cfg"])
    done = subprocess.run(
        ["debconf-set-selections", "--checkonly", str(file)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_the_last_command_of_an_installer_is_what_bash_takes(site: Site) -> None:
    line = next(row for row in boot_files(site)["answers/g1.cfg"].splitlines() if "late_command" in row)
    command = line.partition(" string in-target ")[2]
    words = shlex.split(command)
    assert words[:2] == ["bash", "-c"]
    subprocess.run(["bash", "-n", "-c", words[2]], check=True)
    assert "admin@example" in words[2]


def test_a_host_that_is_not_the_bring_ups_own_is_told_by_its_address(site: Site) -> None:
    """dnsmasq's and nginx's own forms, as the real ones write them."""
    leases = (
        f"1763400000 {MACS[0]} 10.88.0.11 g1 01:{MACS[0]}\n"
        "1763400000 52:54:00:99:00:07 10.88.0.201 * 01:52:54:00:99:00:07\n"
    )
    boot = "2026-11-17T18:00:00+00:00 10.88.0.11 GET /mac/52-54-00-88-00-01.ipxe 200 120\n"
    states = node_states(site, leases, boot, [])
    assert states == {
        "m1": NodeState("unknown", None, "10.88.0.1"),
        "g1": NodeState("booting", MACS[0], "10.88.0.11", "2026-11-17T18:00:00+00:00"),
        "g2": NodeState("absent", MACS[1], "10.88.0.12"),
        "52:54:00:99:00:07": NodeState("discovered", "52:54:00:99:00:07", "10.88.0.201"),
    }


@pytest.mark.parametrize(
    ("leased", "paths", "done", "state"),
    [
        (False, [], [], "absent"),
        (True, [], [], "seen"),
        (True, ["/boot.ipxe", "/mac/52-54-00-88-00-01.ipxe"], [], "booting"),
        (True, ["/mac/52-54-00-88-00-01.ipxe", "/installer/linux", "/answers/g1.cfg"], [], "installing"),
        (True, ["/answers/g1.cfg"], ["52-54-00-88-00-01.ipxe"], "installed"),
        (True, ["/answers/g1.cfg", "/mac/52-54-00-88-00-01.ipxe"], [], "booting"),
        (True, ["/files/image.ipxe", "/files/image-1/root.squashfs", "/hosts/g1.sh"], [], "booting"),
        (True, ["/hosts/g1.sh", "/running"], [], "running"),
        (True, ["/hosts/g1.sh", "/running", "/mac/52-54-00-88-00-01.ipxe"], [], "booting"),
        (True, ["/hosts/g1.sh", "/answers/g1.done.sh"], [], "installing"),
        (True, ["/done/52-54-00-88-00-01.ipxe", "/running"], ["52-54-00-88-00-01.ipxe"], "running"),
        (True, ["/running", "/done/52-54-00-88-00-01.ipxe"], ["52-54-00-88-00-01.ipxe"], "installed"),
    ],
)
def test_a_host_goes_from_state_to_state(
    site: Site, leased: bool, paths: list[str], done: list[str], state: str
) -> None:
    leases = f"1763400000 {MACS[0]} 10.88.0.11 g1 *\n" if leased else ""
    requests = "".join(f"2026-11-17T18:00:00+00:00 10.88.0.11 GET {path} 200 9\n" for path in paths)
    assert node_states(site, leases, requests, done)["g1"].state == state


def test_what_was_not_found_shows_nothing(site: Site) -> None:
    missing = "2026-11-17T18:00:00+00:00 10.88.0.11 GET /mac/52-54-00-88-00-01.ipxe 404 9\nhalf a line"
    assert node_states(site, "", missing, [])["g1"].state == "absent"


def test_the_command_asks_the_server_and_wants_approval_to_install_anew(tmp_path: Path, ssh_config: Path) -> None:
    """The server is this machine, behind a real sshd; no host has come to it."""
    text = (CASE / "pod.yaml").read_text().replace("hosts: m1,", "hosts: loop,")
    section = f"bringup:\n  ssh_config: {ssh_config}\n"
    file = tmp_path / "pod.yaml"
    file.write_text(text.replace("bringup:\n  user: admin\n", section + f"  user: {getpass.getuser()}\n"))
    client = Client(tmp_path)
    hosts = json.loads(client.ask("pod", "nodes", str(file), "--json"))["hosts"]
    assert {name: entry["state"] for name, entry in hosts.items()} == {
        "loop": "unknown",
        "g1": "absent",
        "g2": "absent",
    }
    command = [str(BIN / "podwright"), "pod", "nodes", str(file), "--install", "g1"]
    done = subprocess.run(
        command, env=client.environ, cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "which nobody approved" in done.stderr) == (2, True), done.stderr


def test_without_its_section_the_place_in_the_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "pod.yaml"
    path.write_text((CASE / "pod.yaml").read_text().partition("  netboot:\n")[0])
    with pytest.raises(Refusal, match=r"pod.yaml:\d+:\d+: bringup.netboot: is missing"):
        plan(load_pod(path))


def test_no_password_is_in_any_answer(tmp_path: Path, site: Site) -> None:
    assert "passwd/user-password-crypted password *" in boot_files(site)["answers/g1.cfg"]
    assert "NOPASSWD" in "\n".join(finish_lines(site, MACS[0]))


def test_loaders_come_by_https_where_the_pod_says_so(tmp_path: Path) -> None:
    text = (CASES / "bringup" / "netboot" / "pod.yaml").read_text()
    (tmp_path / "pod.yaml").write_text(text.replace("  netboot:\n", "  netboot:\n    https: true\n"))
    sites = {"plain": site_of(load_pod(CASES / "bringup" / "netboot" / "pod.yaml"))}
    sites["https"] = site_of(load_pod(tmp_path / "pod.yaml"))
    dhcp = {name: dnsmasq_text(site, NetbootPlaces()) for name, site in sites.items()}
    assert ("tftp" in dhcp["plain"], "https" in dhcp["plain"]) == (True, False)
    assert ("tftp" in dhcp["https"], "snponly.efi" in dhcp["https"]) == (False, True)
    assert "dhcp-boot=tag:!ipxe,tag:arch16,https://10.88.0.1:8443/loaders/snponly.efi\n" in dhcp["https"]
    web = {name: nginx_text(site, NetbootPlaces()) for name, site in sites.items()}
    assert ("ssl" in web["plain"], "listen 10.88.0.1:8443 ssl;" in web["https"]) == (False, True)
    steps = {name: plan(site.pod)["m1"].steps["netboot.server"] for name, site in sites.items()}
    secrets = {name: [file.secret for file in step.files if file.secret] for name, step in steps.items()}
    expected = ["netboot_ca_certificate", "netboot_certificate", "netboot_key"]
    assert (secrets["plain"], secrets["https"]) == ([], expected)


def test_the_server_of_loaders_is_known_by_an_authority_of_its_own(tmp_path: Path) -> None:
    text = (CASES / "bringup" / "netboot" / "pod.yaml").read_text()
    (tmp_path / "pod.yaml").write_text(text.replace("  netboot:\n", "  netboot:\n    https: true\n"))
    site = site_of(load_pod(tmp_path / "pod.yaml"))
    vault = Vault(tmp_path / "vault.yml", tmp_path / "vault.key")
    first = vault.fill(site).values
    for name in ("netboot_ca_certificate", "netboot_certificate"):
        (tmp_path / name).write_text(first[name])
    command = [
        "openssl",
        "verify",
        "-CAfile",
        "netboot_ca_certificate",
        "-verify_ip",
        "10.88.0.1",
        "netboot_certificate",
    ]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert "ca_key" in first
    again = vault.fill(site, rotate=["netboot_ca_key"]).values
    same = [again[name] == first[name] for name in ("netboot_ca_certificate", "netboot_certificate", "ca_certificate")]
    assert same == [False, False, True]
