"""The archive of a mirror: what is bad in one is found, and what it serves is what was put in."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import threading
import time
import urllib.request
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from podwright.bringup.apply import authority, signing
from podwright.bringup.mirror import archive, collect, wheels
from podwright.bringup.mirror.server import ArchiveServer, ServerCertificate
from podwright.bringup.plan.hosts import plan
from podwright.files.whole import add_to_tar
from podwright.spec import Refusal, load_pod
from tests.paths import CASES
from tests.real.clients import BIN

LAYER, CONFIG = b"a layer\n" * 1000, b'{"architecture": "amd64"}'
TYPE = "application/vnd.oci.image"


def put(folder: Path, content: bytes) -> dict[str, object]:
    digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
    path = folder / archive.blob_path(digest)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return {"digest": digest, "size": len(content)}


def image(folder: Path) -> str:
    """Writes an image of one layer; gives the digest of its manifest."""
    parts = {"config": put(folder, CONFIG), "layers": [put(folder, LAYER)]}
    manifest = {"schemaVersion": 2, "mediaType": f"{TYPE}.manifest.v1+json", **parts}
    return str(put(folder, json.dumps(manifest).encode())["digest"])


@pytest.fixture(scope="module")
def keys() -> dict[str, str]:
    return {**signing.new_key("small"), **authority.new("podwright small")}


@pytest.fixture
def made(tmp_path: Path, keys: dict[str, str]) -> Path:
    folder = tmp_path / "content"
    (folder / "packages").mkdir(parents=True)
    (folder / "packages" / "a_1_all.deb").write_bytes(b"package " * 500)
    images = {"registry.example/base/tool:1": image(folder)}
    archive.write_archive(tmp_path / "pod.tar", "small", folder, images, keys)
    return tmp_path / "pod.tar"


def test_a_whole_archive_is_good(made: Path) -> None:
    checked = archive.verify(made)
    assert (checked.files, checked.bad) == (4, ())
    assert checked.bytes == 4000 + len(LAYER) + len(CONFIG) + len(json.dumps(json.loads(manifest_of(made))))


def manifest_of(made: Path) -> bytes:
    digest = image(made.parent / "again")
    return (made.parent / "again" / archive.blob_path(digest)).read_bytes()


@pytest.mark.parametrize("what", [b"package package", b"a layer\na layer"])
def test_a_flipped_byte_is_found(made: Path, what: bytes) -> None:
    content = bytearray(made.read_bytes())
    content[content.index(what) + 3] ^= 1
    made.write_bytes(content)
    (bad,) = archive.verify(made).bad
    assert bad["what"] == "has other bytes than the index says"


def test_an_index_that_was_changed_or_that_another_signed_is_found(made: Path, keys: dict[str, str]) -> None:
    other = signing.new_key("small")
    own = archive.verify(made, lambda pod: keys["archive_public"])
    assert (own.bad, own.is_known, archive.verify(made).is_known) == ((), True, False)
    expected = ({"path": "index.json", "what": "is not signed by the key of small"},)
    assert archive.verify(made, lambda pod: other["archive_public"]).bad == expected
    # Whoever changes a package changes its digest in the index, too.
    content = made.read_bytes()
    made.write_bytes(content.replace(hashlib.sha256(b"package " * 500).hexdigest().encode(), b"0" * 64))
    assert archive.verify(made).bad == expected


def test_an_archive_that_nobody_signed_is_refused_with_what_makes_another(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "old.tar", "w") as old:
        add_to_tar(old, archive.INDEX, archive.ArchiveIndex("adas").text().encode())
    with pytest.raises(Refusal, match=r"old.tar is not signed[^`]*`podwright mirror make adas --out old.tar"):
        archive.verify(tmp_path / "old.tar")
    file = str(tmp_path / "old.tar")
    done = subprocess.run(
        [str(BIN / "podwright"), "mirror", "serve", file], capture_output=True, text=True, check=False
    )
    assert (done.returncode, "is not signed" in done.stderr) == (2, True), done.stderr


def test_a_large_part_is_never_held_as_a_whole(tmp_path: Path, keys: dict[str, str]) -> None:
    """Whoever asks for a layer as if it were a manifest gets it as it is."""
    folder = tmp_path / "content"
    layer = b'{"mediaType": "' + b"x" * archive.MANIFEST_BYTES + b'"}'
    digest = str(put(folder, layer)["digest"])
    broken = str(put(folder, b"[1")["digest"])
    archive.write_archive(tmp_path / "pod.tar", "small", folder, {}, keys)
    with served(tmp_path / "pod.tar") as place:
        for each in (digest, broken):
            with urllib.request.urlopen(f"http://{place}/v2/x/manifests/{each}") as answer:
                assert answer.headers["Content-Type"] == f"{TYPE}.manifest.v1+json"


def test_a_missing_image_is_found_and_so_is_a_missing_layer(tmp_path: Path, keys: dict[str, str]) -> None:
    folder = tmp_path / "content"
    digest = image(folder)
    named = {"registry.example/base/tool:1": digest, "registry.example/gone:2": f"sha256:{'0' * 64}"}
    (folder / archive.blob_path(f"sha256:{hashlib.sha256(LAYER).hexdigest()}")).unlink()
    archive.write_archive(tmp_path / "pod.tar", "small", folder, named, keys)
    assert archive.verify(tmp_path / "pod.tar").bad == (
        {"path": "registry.example/base/tool:1", "what": "is missing 1 of its parts"},
        {"path": "registry.example/gone:2", "what": "is missing: its manifest is not there"},
    )


def test_an_archive_that_was_cut_off_lacks_what_came_later(made: Path) -> None:
    content = made.read_bytes()
    made.write_bytes(content[: content.index(b"package package") + 1000])
    bad = archive.verify(made).bad
    assert {"path": "packages/a_1_all.deb", "what": "is missing"} in bad


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "x"
    file.write_text("no tar")
    with pytest.raises(Refusal, match="mirror make"):
        archive.verify(file)


@pytest.fixture(autouse=True)
def no_other_authorities(monkeypatch: pytest.MonkeyPatch) -> None:
    """What this machine's environment names would count before what pip is told."""
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)


@contextmanager
def served(made: Path, keys: Mapping[str, str] | None = None) -> Iterator[str]:
    """Serves an archive; by TLS where the keys of an authority are given."""
    certificate = None
    if keys is not None:
        pair = authority.sign(keys, "archive", ["127.0.0.1"])
        certificate = ServerCertificate(pair["archive_certificate"], pair["archive_key"])
    with ArchiveServer(made, "127.0.0.1", 0, certificate) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()


def test_an_image_that_is_served_is_fetched_with_the_same_digest(made: Path, tmp_path: Path) -> None:
    with served(made) as place:
        digest = collect.fetch_image(f"{place}/base/tool:1", tmp_path / "fetched")
        with pytest.raises(Refusal, match="has no image base/tool:2"):
            collect.fetch_image(f"{place}/base/tool:2", tmp_path / "fetched")
    assert digest == image(tmp_path / "again")
    blobs = [sorted(path.name for path in (tmp_path / name / archive.BLOBS).iterdir()) for name in ("fetched", "again")]
    assert blobs[0] == blobs[1]


def wheel(folder: Path, name: str, requires: str = "") -> Path:
    """Writes a Python package of one module, as pip takes it."""
    info = f"{name}-1.0.dist-info"
    entries = {
        f"{name}.py": "",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{requires}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    file = folder / f"{name}-1.0-py3-none-any.whl"
    file.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(file, "w") as zipped:
        for path, text in {**entries, f"{info}/RECORD": ""}.items():
            zipped.writestr(path, text)
    return file


def test_pip_fetches_from_an_archive_what_pip_fetched_into_it(
    tmp_path: Path, keys: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The real pip both times: the first archive is its only source when it makes the second one."""
    content = tmp_path / "content"
    wheel(content / "python", "toy_tool", "Requires-Dist: toy-part\n")
    part = wheel(content / "python", "toy_part")
    archive.write_archive(tmp_path / "first.tar", "small", content, {}, keys)
    (tmp_path / "ca.crt").write_text(keys["ca_certificate"])
    monkeypatch.setenv("PIP_CERT", str(tmp_path / "ca.crt"))
    with served(tmp_path / "first.tar", keys) as place:
        monkeypatch.setenv("PIP_INDEX_URL", f"https://{place}/simple/")
        fetched = wheels.fetch_wheels(["toy.tool==1.0"], "debian-12", tmp_path / "second")
        assert [path.name for path in fetched] == ["toy_part-1.0-py3-none-any.whl", "toy_tool-1.0-py3-none-any.whl"]
        assert fetched[0].read_bytes() == part.read_bytes()
        with pytest.raises(Refusal, match="No matching distribution found for toy-other"):
            wheels.fetch_wheels(["toy-other"], "debian-12", tmp_path / "third")
        changed = bytearray((tmp_path / "first.tar").read_bytes())
        changed[changed.index(b"Name: toy_part")] ^= 1
        (tmp_path / "first.tar").write_bytes(changed)
        with pytest.raises(Refusal, match="pip: THESE PACKAGES DO NOT MATCH THE HASHES"):
            wheels.fetch_wheels(["toy-part"], "debian-12", tmp_path / "fourth")
    (bad,) = archive.verify(tmp_path / "first.tar").bad
    assert bad["path"] == "python/toy_part-1.0-py3-none-any.whl"


def test_pip_takes_what_was_signed_for_and_refuses_another_wheel_and_another_authority(
    tmp_path: Path, keys: dict[str, str]
) -> None:
    content = tmp_path / "content"
    wheel(content / "python", "toy_tool")
    wheels.write_requirements(content, keys)
    wanted = (content / wheels.REQUIREMENTS).read_text()
    signature = (content / f"{wheels.REQUIREMENTS}.asc").read_text()
    assert signing.is_signed(keys["archive_public"], signature, wanted)
    assert not signing.is_signed(keys["archive_public"], signature, wanted.replace("sha256:", "sha256:0"))
    archive.write_archive(tmp_path / "pod.tar", "small", content, {}, keys)
    # The same version with other bytes, and an index that tells their digest: whoever serves could make it.
    wheel(content / "python", "toy_tool", "Requires-Dist: evil\n")
    archive.write_archive(tmp_path / "evil.tar", "small", content, {}, keys)
    (tmp_path / "requirements.txt").write_text(wanted)
    for name, certificate in {"ca": keys, "other": authority.new("another")}.items():
        (tmp_path / f"{name}.crt").write_text(certificate["ca_certificate"])

    def pip(made: str, ca: str) -> subprocess.CompletedProcess[str]:
        with served(tmp_path / made, keys) as place:
            words = [
                f"--index-url=https://{place}/simple/",
                f"--cert={tmp_path}/{ca}.crt",
                f"--dest={tmp_path}/{made}.d",
            ]
            words += ["--require-hashes", f"--requirement={tmp_path}/requirements.txt", "--no-deps", "--retries=0"]
            command = [sys.executable, "-m", "pip", "download", "--no-cache-dir", *words]
            return subprocess.run(command, capture_output=True, text=True, check=False)

    good = pip("pod.tar", "ca")
    assert good.returncode == 0, good.stdout + good.stderr
    assert "DO NOT MATCH THE HASHES" in pip("evil.tar", "ca").stderr
    refused = pip("pod.tar", "other")
    assert (refused.returncode, "CERTIFICATE_VERIFY_FAILED" in refused.stdout + refused.stderr) == (1, True)


def test_all_packages_of_all_hosts_are_wanted() -> None:
    names = collect.packages_of(load_pod(CASES / "bringup" / "hosts" / "small" / "pod.yaml"))
    assert {"apt-cacher-ng", "slurmctld", "slurmd", "prometheus"} <= set(names)


def test_another_release_than_the_hosts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="and the pod's hosts trixie"):
        collect.fetch_packages(["munge"], "debian-13", tmp_path)


@dataclass
class AptSite:
    """An apt that knows nothing but the archive, as `pod up` sets it up."""

    folder: Path
    keys: Mapping[str, str]
    trusts: Mapping[str, str]

    def run(self, made: Path, *verb: str) -> subprocess.CompletedProcess[str]:
        shutil.rmtree(self.folder, ignore_errors=True)
        for name in ("lists/partial", "archives/partial"):
            (self.folder / name).mkdir(parents=True)
        (self.folder / "status").touch()
        with served(made, self.keys) as place:
            options = self._options(place)
            done = subprocess.run(
                ["apt-get", "update", "--error-on=any", *options], capture_output=True, text=True, check=False
            )
            if done.returncode or not verb:
                return done
            return subprocess.run(["apt-get", *options, *verb], capture_output=True, text=True, check=False)

    def _options(self, place: str) -> list[str]:
        """Gives the files that a host gets, with other places."""
        text = (CASES / "bringup" / "hosts" / "whole" / "pod.yaml").read_text()
        (self.folder / "pod.yaml").write_text(text.replace("bringup:\n", f"bringup:\n  archive: https://{place}\n"))
        written = {}
        for file in plan(load_pod(self.folder / "pod.yaml"))["g1"].steps["base.sources"].files:
            name = Path(file.path).name
            written[name] = file.text or self.trusts[file.secret]
        for name, content in written.items():
            (self.folder / name).write_text(content.replace("/etc/apt/keyrings", str(self.folder)))
        places = {
            "Dir::Etc::sourcelist": self.folder / "podwright-archive.sources",
            "Dir::Etc::sourceparts": "/dev/null",
            "Dir::Etc::parts": "/dev/null",
            "Dir::State::lists": self.folder / "lists",
            "Dir::State::status": self.folder / "status",
            "Dir::Cache::archives": self.folder / "archives",
            "Dir::Cache::pkgcache": "",
            "Dir::Cache::srcpkgcache": "",
            "APT::Sandbox::User": "root",
            "Acquire::https::Proxy": "DIRECT",
            "Acquire::Retries": "0",
        }
        config = f"--config-file={self.folder}/70podwright-archive"
        return [config, *(f"--option={name}={value}" for name, value in places.items())]


def package(folder: Path, text: str) -> None:
    """Writes a package of one file as Debian's own program does, and the list that apt reads."""
    tree = folder / "tree"
    (tree / "DEBIAN").mkdir(parents=True)
    control = "Package: toy\nVersion: 1\nArchitecture: all\nMaintainer: nobody\nDescription: toy\n"
    (tree / "DEBIAN" / "control").write_text(control)
    (tree / "toy").write_text(text)
    place = folder / "packages"
    place.mkdir(exist_ok=True)
    subprocess.run(["dpkg-deb", "--build", str(tree), str(place / "toy_1_all.deb")], check=True, capture_output=True)
    shutil.rmtree(tree)
    collect.write_list(place)


FETCH = ("install", "--yes", "--download-only", "toy")


def test_apt_takes_what_the_pods_key_signed_and_nothing_else(tmp_path: Path, keys: dict[str, str]) -> None:
    """The real apt, with the files that a host gets."""
    content, made = tmp_path / "content", tmp_path / "pod.tar"
    content.mkdir()
    package(content, "good\n")
    collect.write_release(content, "small", keys, time.time())
    archive.write_archive(made, "small", content, {}, keys)
    apt = AptSite(tmp_path / "apt", keys, trusts=keys)
    good = apt.run(made, *FETCH)
    assert (good.returncode, [path.name for path in (apt.folder / "archives").glob("*.deb")]) == (0, ["toy_1_all.deb"])

    def refused(name: str) -> str:
        archive.write_archive(tmp_path / name, "small", content, {}, keys)
        done = apt.run(tmp_path / name, *FETCH)
        assert done.returncode != 0
        assert not list((apt.folder / "archives").glob("*.deb"))
        return done.stderr

    # Whoever serves changes a package; its list, too; what says which list is whole; or signs all of it himself.
    listed = (content / "packages" / "Packages").read_text()
    package(content, "evil\n")
    (content / "packages" / "Packages").write_text(listed)
    assert "toy_1_all.deb" in refused("package.tar")
    package(content, "evil\n")
    assert "Hash Sum mismatch" in refused("list.tar")
    release = content / "packages" / "InRelease"
    release.write_text(release.read_text().replace("Label: small", "Label: evil"))
    assert "is not signed" in refused("release.tar")
    collect.write_release(content, "small", signing.new_key("small"), time.time())
    assert "NO_PUBKEY" in refused("key.tar")
    release.unlink()
    assert "does not have a Release file" in refused("unsigned.tar")


def test_apt_refuses_a_server_of_another_authority(tmp_path: Path, keys: dict[str, str]) -> None:
    content, made = tmp_path / "content", tmp_path / "pod.tar"
    content.mkdir()
    package(content, "good\n")
    collect.write_release(content, "small", keys, time.time())
    archive.write_archive(made, "small", content, {}, keys)
    apt = AptSite(tmp_path / "apt", keys, trusts={**keys, **authority.new("another")})
    done = apt.run(made)
    assert done.returncode != 0
    assert "certificate" in done.stderr.lower()


@pytest.mark.slow
def test_packages_come_with_all_that_they_need(tmp_path: Path) -> None:
    debs = collect.fetch_packages(["munge"], "debian-12", tmp_path / "content")
    assert {"munge", "libmunge2", "libc6"} <= {path.name.partition("_")[0] for path in debs}
    assert "Package: libmunge2" in (tmp_path / "content" / "packages" / "Packages").read_text()
