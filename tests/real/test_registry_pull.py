"""A site's images: out of its archive, by TLS and password into the pod's registry, and from there into containerd.

All of them are real: the program that `up` runs on the registry's host, Debian's registry, Debian's containerd.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from podwright.bringup.apply import authority, signing
from podwright.bringup.apply.vault import Vault
from podwright.bringup.mirror import archive
from podwright.bringup.plan.hosts import plan
from podwright.bringup.plan.site import Site, site_of
from podwright.clients.http_client import basic
from podwright.spec import load_pod
from tests.paths import CASES, ROOT
from tests.real.clients import until
from tests.unit.bringup.test_mirror import image, served
from tests.unit.images.registry_server import PASSWORD, USER, registry_server

PROGRAM = ROOT / "src" / "podwright" / "bringup" / "on_host" / "registry_images.py"
NAME = "registry.example/base/tool:1"


@dataclass
class ImageSite:
    """A registry that wants a password, known by the pod's authority, and what the program is asked."""

    folder: Path
    registry: str
    asked: Path
    authority: Path

    def run(self, verb: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(PROGRAM), verb, str(self.asked)]
        return subprocess.run(command, capture_output=True, text=True, check=False)


@contextmanager
def site_with(folder: Path, images: list[list[str]]) -> Iterator[ImageSite]:
    keys = {**signing.new_key("small"), **authority.new("podwright small")}
    content = folder / "content"
    content.mkdir()
    archive.write_archive(folder / "pod.tar", "small", content, {NAME: image(content)}, keys)
    pair = authority.sign(keys, "registry", ["127.0.0.1"])
    trusted, login = folder / "ca.crt", folder / "login"
    trusted.write_text(keys["ca_certificate"])
    login.write_text(PASSWORD)
    both = (pair["registry_certificate"], pair["registry_key"])
    with served(folder / "pod.tar", keys) as place, registry_server(folder, closed=True, pair=both) as registry:
        asked = folder / "images.json"
        known = {"authority": str(trusted), "login": str(login), "user": USER, "images": images}
        asked.write_text(json.dumps({"registry": f"https://{registry}", "archive": f"https://{place}", **known}))
        yield ImageSite(folder, registry, asked, trusted)


def test_images_are_lacking_then_given_then_the_same(tmp_path: Path) -> None:
    with site_with(tmp_path, [["base/tool", "1"]]) as site:
        assert site.run("check").stdout == "missing base/tool:1\n"
        given = site.run("apply")
        assert (given.returncode, given.stdout, given.stderr) == (0, "given base/tool:1\n", "")
        assert site.run("check").stdout == "same\n"
        assert site.run("apply").stdout == ""


def test_what_an_archive_lacks_and_a_wrong_password_are_said_in_a_line(tmp_path: Path) -> None:
    with site_with(tmp_path, [["base/other", "1"]]) as site:
        said = site.run("apply")
        assert (said.returncode, said.stdout) == (1, "")
        assert said.stderr.endswith("has no image base/other:1\n")
        site.asked.write_text(site.asked.read_text().replace("base/other", "base/tool"))
        (tmp_path / "login").write_text("another")
        said = site.run("check")
        assert (said.returncode, said.stderr.count("\n")) == (1, 1)
        assert "answers 401 to HEAD base/tool/manifests/1" in said.stderr
        assert "another" not in said.stderr


@contextmanager
def containerd(folder: Path) -> Iterator[str]:
    """Gives the socket of a containerd of its own."""
    config = folder / "config.toml"
    config.write_text('version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n')
    # A socket's path may have a hundred characters.
    socket = Path(f"/run/pw-{folder.name[:20]}-{folder.stat().st_ino}.sock")
    places = [f"--root={folder / 'root'}", f"--state={folder / 'state'}", f"--address={socket}"]
    with (folder / "containerd.log").open("wb") as log:
        server = subprocess.Popen(["containerd", f"--config={config}", *places], stdout=log, stderr=log)
        try:
            until(lambda: ctr(str(socket), "version").returncode == 0, "containerd answers")
            yield str(socket)
        finally:
            server.terminate()
            server.wait()
            for left in (socket, Path(f"{socket}.ttrpc")):
                left.unlink(missing_ok=True)


def ctr(socket: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["ctr", f"--address={socket}", *words], capture_output=True, text=True, check=False)


def hosts_folder(site: Site, here: ImageSite, password: str) -> Path:
    """Writes what a host of a cluster has below /etc/containerd/certs.d, with this registry's place for the pod's."""
    vault = Vault(here.folder / "vault.yml", here.folder / "vault.key")
    values = vault.fill(site).values
    top = "/etc/containerd/certs.d/"
    folder = here.folder / password
    for file in plan(site.pod)["g1"].files():
        if file.path.startswith(top):
            assert (file.mode, file.text) == ("0600", "")
            text = values[file.secret].replace(values["registry_password"], password)
            assert "authorization" in text
            path = folder / file.path.removeprefix(top).replace(site.registry, here.registry)
            path.parent.mkdir(parents=True)
            path.write_text(placed(text, site, here, password))
    return folder


def placed(text: str, site: Site, here: ImageSite, password: str) -> str:
    """Gives a file of the pod's with this registry, its authority and its user."""
    lines = [
        f'    authorization = "{basic(f"{USER}:{password}")}"' if "authorization" in line else line
        for line in text.splitlines()
    ]
    here_text = "\n".join(lines).replace(f"/etc/containers/certs.d/{site.registry}/ca.crt", str(here.authority))
    return here_text.replace(site.registry, here.registry) + "\n"


@pytest.mark.netns
def test_containerd_pulls_by_the_registrys_own_name_and_by_any_publishers(tmp_path: Path) -> None:
    """With the hosts.toml that hosts get; a host with another password is refused."""
    site = site_of(load_pod(CASES / "bringup" / "kubeadm" / "pod.yaml"))
    with site_with(tmp_path, [["base/tool", "1"]]) as here, containerd(tmp_path) as socket:
        assert here.run("apply").returncode == 0
        known = hosts_folder(site, here, PASSWORD)
        for name in (f"{here.registry}/base/tool:1", "publisher.invalid/base/tool:1"):
            pulled = ctr(socket, "content", "fetch", f"--hosts-dir={known}", name)
            assert pulled.returncode == 0, pulled.stdout + pulled.stderr
        strange = hosts_folder(site, here, "another")
        refused = ctr(socket, "content", "fetch", f"--hosts-dir={strange}", f"{here.registry}/base/tool:1")
        assert refused.returncode != 0
        assert "401" in refused.stderr
