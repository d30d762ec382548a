"""The archive of a mirror: what is bad in one is found, and what it serves is what was put in."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from podwright.bringup.mirror import archive, collect, wheels
from podwright.bringup.mirror.server import ArchiveServer
from podwright.spec import Refusal, load_pod
from tests.paths import CASES

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


@pytest.fixture
def made(tmp_path: Path) -> Path:
    folder = tmp_path / "content"
    (folder / "packages").mkdir(parents=True)
    (folder / "packages" / "a_1_all.deb").write_bytes(b"package " * 500)
    images = {"registry.example/base/tool:1": image(folder)}
    archive.write_archive(tmp_path / "pod.tar", "small", folder, images)
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


def test_a_missing_image_is_found_and_so_is_a_missing_layer(tmp_path: Path) -> None:
    folder = tmp_path / "content"
    digest = image(folder)
    named = {"registry.example/base/tool:1": digest, "registry.example/gone:2": f"sha256:{'0' * 64}"}
    (folder / archive.blob_path(f"sha256:{hashlib.sha256(LAYER).hexdigest()}")).unlink()
    archive.write_archive(tmp_path / "pod.tar", "small", folder, named)
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


@contextmanager
def served(made: Path) -> Iterator[str]:
    with ArchiveServer(made, "127.0.0.1", 0) as server:
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


def test_pip_fetches_from_an_archive_what_pip_fetched_into_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real pip both times: the first archive is its only source when it makes the second one."""
    content = tmp_path / "content"
    wheel(content / "python", "toy_tool", "Requires-Dist: toy-part\n")
    part = wheel(content / "python", "toy_part")
    archive.write_archive(tmp_path / "first.tar", "small", content, {})
    with served(tmp_path / "first.tar") as place:
        monkeypatch.setenv("PIP_INDEX_URL", f"http://{place}/simple/")
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


def test_all_packages_of_all_hosts_are_wanted() -> None:
    names = collect.packages_of(load_pod(CASES / "bringup" / "hosts" / "small" / "pod.yaml"))
    assert {"apt-cacher-ng", "slurmctld", "slurmd", "prometheus"} <= set(names)


def test_another_release_than_the_hosts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(Refusal, match="and the pod's hosts trixie"):
        collect.fetch_packages(["munge"], "debian-13", tmp_path)


@pytest.mark.slow
def test_apt_takes_packages_from_an_archive_and_refuses_one_that_was_changed(tmp_path: Path) -> None:
    """The real apt: it fetches from this machine's sources, and then from the archive alone."""
    folder = tmp_path / "content"
    debs = collect.fetch_packages(["munge"], "debian-12", folder)
    assert {"munge", "libmunge2", "libc6"} <= {path.name.partition("_")[0] for path in debs}
    archive.write_archive(tmp_path / "pod.tar", "small", folder, {})
    assert archive.verify(tmp_path / "pod.tar").bad == ()
    with served(tmp_path / "pod.tar") as place:
        assert installs(tmp_path / "apt", place).returncode == 0
        changed = bytearray((tmp_path / "pod.tar").read_bytes())
        munge = next(path for path in debs if path.name.startswith("munge_"))
        start = changed.index(munge.read_bytes()[:64])
        changed[start + 5000] ^= 1
        (tmp_path / "pod.tar").write_bytes(changed)
        done = installs(tmp_path / "apt", place)
    assert done.returncode != 0
    assert "Hash Sum mismatch" in done.stderr


def installs(folder: Path, place: str) -> subprocess.CompletedProcess[str]:
    """Has an apt that knows nothing but the archive fetch a package."""
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("lists/partial", "archives/partial"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    (folder / "sources.list").write_text(f"deb [trusted=yes] http://{place}/packages ./\n")
    places = {
        "Dir::Etc::sourcelist": folder / "sources.list",
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State::lists": folder / "lists",
        "Dir::State::status": folder / "status",
        "Dir::Cache::archives": folder / "archives",
        "Dir::Cache::pkgcache": "",
        "Dir::Cache::srcpkgcache": "",
        "APT::Sandbox::User": "root",
        "Acquire::http::Proxy": "DIRECT",
    }
    options = [f"--option={name}={value}" for name, value in places.items()]
    done = subprocess.run(["apt-get", "update", *options], capture_output=True, text=True, check=False)
    if done.returncode:
        return done
    command = ["apt-get", "install", "--yes", "--download-only", "--no-install-recommends", *options, "munge"]
    return subprocess.run(command, capture_output=True, text=True, check=False)
