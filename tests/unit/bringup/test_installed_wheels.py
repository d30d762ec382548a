"""Python packages of an archive on a host: what its key signed is installed, and before that no pip is started."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from podwright.bringup.apply import authority, signing
from podwright.bringup.mirror import archive, wheels
from podwright.bringup.on_host import wheels as on_host
from podwright.bringup.plan.hosts import plan
from podwright.spec import load_pod
from tests.paths import CASES
from tests.unit.bringup.test_mirror import served, wheel


@pytest.fixture(scope="module")
def keys() -> dict[str, str]:
    return {**signing.new_key("small"), **authority.new("podwright small")}


@dataclass
class WheelHost:
    """A host that trusts a key and an authority, and a site whose archive it asks."""

    folder: Path
    keys: Mapping[str, str]

    def __post_init__(self) -> None:
        (self.folder / "keys").mkdir()
        (self.folder / "keys" / on_host.AUTHORITY).write_text(self.keys["ca_certificate"])
        (self.folder / "keys" / on_host.KEY).write_text(self.keys["archive_public"])
        self.content = self.folder / "content"
        wheel(self.content / "python", "toy_tool", "Requires-Dist: toy-part\n")
        wheel(self.content / "python", "toy_part")
        wheels.write_requirements(self.content, self.keys)

    @property
    def environment(self) -> Path:
        return self.folder / "environment"

    @property
    def listed(self) -> Path:
        return self.content / wheels.REQUIREMENTS

    def install(self, *names: str, by: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Serve what is there, signed as a whole by whoever serves, and install from it."""
        made = self.folder / "pod.tar"
        archive.write_archive(made, "small", self.content, {}, by or self.keys)
        with served(made, by or self.keys) as place:
            return self.run("install", f"https://{place}", *names)

    def run(self, verb: str, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, on_host.__file__, verb, str(self.environment), str(self.folder / "keys"), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def said(self, *names: str) -> str:
        """What `up` and `status` see."""
        return self.run("check", "https://archive.example", *names).stdout.strip()


@pytest.fixture
def host(tmp_path: Path, keys: dict[str, str]) -> WheelHost:
    return WheelHost(tmp_path, keys)


def test_what_the_key_signed_is_installed_and_what_is_changed_since_is_seen(host: WheelHost) -> None:
    assert "is not there" in host.said("toy.tool")
    done = host.install("toy.tool==1.0")
    assert (done.returncode, done.stdout) == (0, "as planned\n"), done.stderr
    python = host.environment / "bin" / "python3"
    subprocess.run([str(python), "-c", "import toy_tool, toy_part"], check=True)
    assert host.said("toy.tool==1.0") == "as planned"
    assert host.said("toy-tool", "toy-other") == "toy-other is not there"
    subprocess.run([str(python), "-m", "pip", "uninstall", "--quiet", "--yes", "toy_part"], check=True)
    assert host.said("toy-tool") == "toy-part is not there, not 1.0"
    # Whoever serves puts another wheel of the same version there.
    wheel(host.content / "python", "toy_part", "Requires-Dist: evil\n")
    done = host.install("toy-tool")
    assert (done.returncode, "DO NOT MATCH THE HASHES" in done.stderr) == (1, True), done.stderr
    assert host.said("toy-tool") == "toy-part is not there, not 1.0"
    kept = host.environment / on_host.REQUIREMENTS
    kept.write_text(kept.read_text() + "evil==1.0\n")
    assert host.said("toy-tool") == f"{kept} is not signed by the key of the pod's archive"


def test_a_list_that_was_changed_starts_no_pip(host: WheelHost) -> None:
    host.listed.write_text(host.listed.read_text().replace("sha256:", "sha256:0", 1))
    done = host.install("toy-tool")
    assert (done.returncode, "is not signed by the key" in done.stderr) == (1, True), done.stderr
    assert not host.environment.exists()


def test_a_list_that_another_key_signed_starts_no_pip(host: WheelHost, keys: dict[str, str]) -> None:
    other = {**keys, **signing.new_key("small")}
    wheels.write_requirements(host.content, other)
    done = host.install("toy-tool", by=other)
    assert (done.returncode, "is not signed by the key" in done.stderr) == (1, True), done.stderr
    assert not host.environment.exists()


def test_a_list_without_its_signature_starts_no_pip(host: WheelHost) -> None:
    (host.content / f"{wheels.REQUIREMENTS}.asc").unlink()
    done = host.install("toy-tool")
    assert (done.returncode, "requirements.txt.asc: HTTP Error 404" in done.stderr) == (1, True), done.stderr
    assert not host.environment.exists()


def test_a_server_of_another_authority_is_asked_for_nothing(host: WheelHost, keys: dict[str, str]) -> None:
    done = host.install("toy-tool", by={**keys, **authority.new("another")})
    assert (done.returncode, "CERTIFICATE_VERIFY_FAILED" in done.stderr) == (1, True), done.stderr
    assert not host.environment.exists()


def test_a_package_that_the_archive_does_not_have_is_named(host: WheelHost) -> None:
    done = host.install("toy-tool", "toy_other")
    assert (done.returncode, done.stderr.strip().endswith("has no toy-other: make it again")) == (1, True), done.stderr


def test_hosts_get_packages_where_there_is_an_archive(tmp_path: Path) -> None:
    text = (CASES / "bringup" / "hosts" / "whole" / "pod.yaml").read_text()
    given = {"alone": "  wheels: [numpy]\n", "archive": "  archive: https://10.0.0.1:3142\n"}
    both = "".join(given.values())
    steps = {}
    for name, more in {**given, "both": both}.items():
        (tmp_path / name).write_text(text.replace("bringup:\n", f"bringup:\n{more}"))
        steps[name] = plan(load_pod(tmp_path / name))["g1"].steps
    assert ["base.python" in steps[name] for name in ("alone", "archive", "both")] == [False, False, True]
    [command] = steps["both"]["base.python"].commands
    words = ("/opt/podwright/python", "/etc/apt/keyrings", "https://10.0.0.1:3142", "numpy")
    assert command.run == ("/usr/bin/python3", "/usr/lib/podwright/wheels.py", "install", *words)
