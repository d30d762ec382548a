"""Code as one more layer of an image, in a real registry."""

from __future__ import annotations

import base64
import gzip
import io
import json
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podwright.clients.kubernetes.names import CODE_FILE
from podwright.clients.registry import INDEXES, MANIFESTS, Manifest, Registry, RegistryError, digest_of
from podwright.engines.kubernetes.code import send_code
from podwright.images.layer import prepare, send, tag_of, write_layer
from podwright.spec.problems import Refusal
from tests.unit.images.registry_server import PASSWORD, USER, registry_server

CODE = b"the code of a run" * 1000
OCI, DOCKER = MANIFESTS


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with registry_server(tmp_path_factory.mktemp("registry")) as address:
        yield address


@pytest.fixture(autouse=True)
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user who is logged in nowhere."""
    file = tmp_path / "auth.json"
    file.write_text("{}")
    monkeypatch.setenv("REGISTRY_AUTH_FILE", str(file))
    return file


def put_image(address: str, name: str, kind: str = OCI, **platform: str) -> Manifest:
    """An image of one layer, as a user's own would be."""
    there = Registry(address, name)
    layer = io.BytesIO()
    write_layer(layer, io.BytesIO(name.encode()), "/etc/name")
    unpacked = layer.getvalue()
    packed = gzip.compress(unpacked, mtime=0)
    row: dict[str, Any] = {"os": "linux", "architecture": "amd64", **platform, "config": {"User": "1000"}}
    row |= {"rootfs": {"type": "layers", "diff_ids": [digest_of(unpacked)]}, "history": [{"created_by": "test"}]}
    config = json.dumps(row).encode()
    for blob in (packed, config):
        there.put_blob(io.BytesIO(blob))
    types = {OCI: ("application/vnd.oci.image.config.v1+json", "application/vnd.oci.image.layer.v1.tar+gzip")}
    types[DOCKER] = (
        "application/vnd.docker.container.image.v1+json",
        "application/vnd.docker.image.rootfs.diff.tar.gzip",
    )
    named = [
        {"mediaType": media, "digest": digest_of(blob), "size": len(blob)}
        for media, blob in zip(types[kind], (config, packed), strict=True)
    ]
    raw = json.dumps({"schemaVersion": 2, "mediaType": kind, "config": named[0], "layers": named[1:]}).encode()
    made = Manifest(raw, kind)
    there.put_manifest("1", made)
    return made


def code_in(address: str, name: str, manifest: Manifest) -> bytes:
    """What a container would find, with every digest reckoned anew."""
    there = Registry(address, name)
    row = json.loads(manifest.raw)
    config = json.loads(there.blob(row["config"]["digest"]))
    unpacked = [gzip.decompress(there.blob(layer["digest"])) for layer in row["layers"]]
    assert [digest_of(one) for one in unpacked] == config["rootfs"]["diff_ids"]
    assert len(config["history"]) == len(unpacked) == 2
    assert config["config"] == {"User": "1000"}
    with tarfile.open(fileobj=io.BytesIO(unpacked[-1])) as archive:
        assert [(one.name, oct(one.mode)) for one in archive] == [
            ("podwright", "0o755"),
            ("podwright/code", "0o755"),
            ("podwright/code/code.tar", "0o444"),
        ]
        file = archive.extractfile("podwright/code/code.tar")
        assert file is not None
        return file.read()


@pytest.mark.parametrize("kind", [OCI, DOCKER])
def test_the_code_is_the_last_layer_of_the_image(registry: str, kind: str) -> None:
    name = "one" if kind == OCI else "two"
    base = put_image(registry, name, kind)
    made = prepare(f"{registry}/{name}:1", io.BytesIO(CODE), CODE_FILE)
    send(made)
    there = Registry(registry, name).manifest(made.tag)
    assert there is not None
    assert (there.kind, there.raw) == (kind, made.top.raw)
    assert made.image == f"{registry}/{name}@{there.digest}"
    assert code_in(registry, name, there) == CODE
    assert json.loads(there.raw)["layers"][:-1] == json.loads(base.raw)["layers"]


def test_equal_code_on_an_equal_image_is_sent_once(registry: str) -> None:
    put_image(registry, "once")
    first = prepare(f"{registry}/once:1", io.BytesIO(CODE), CODE_FILE)
    assert first.blobs
    send(first)
    again = prepare(f"{registry}/once:1", io.BytesIO(CODE), CODE_FILE)
    assert (again.image, again.tag, again.blobs) == (first.image, first.tag, ())
    other = prepare(f"{registry}/once:1", io.BytesIO(CODE + b"!"), CODE_FILE)
    assert other.tag != first.tag
    pinned = prepare(f"{registry}/once@{Registry(registry, 'once').manifest('1').digest}", io.BytesIO(CODE), CODE_FILE)  # type: ignore[union-attr]
    assert pinned.image == first.image


def test_an_image_of_several_platforms_gets_it_on_each(registry: str) -> None:
    rows = []
    for machine in ("amd64", "arm64"):
        one = put_image(registry, "many", architecture=machine)
        row = {"mediaType": OCI, "digest": one.digest, "size": len(one.raw)}
        rows.append({**row, "platform": {"os": "linux", "architecture": machine}})
    extra = {**rows[0], "platform": {"os": "unknown", "architecture": "unknown"}}
    index = {"schemaVersion": 2, "mediaType": INDEXES[0], "manifests": [*rows, extra]}
    there = Registry(registry, "many")
    there.put_manifest("all", Manifest(json.dumps(index).encode(), INDEXES[0]))
    made = prepare(f"{registry}/many:all", io.BytesIO(CODE), CODE_FILE)
    send(made)
    found = there.manifest(made.tag)
    assert found is not None
    assert found.kind == INDEXES[0]
    parts = json.loads(found.raw)["manifests"]
    assert [part["platform"]["architecture"] for part in parts] == ["amd64", "arm64"]
    for part in parts:
        inner = there.manifest(part["digest"])
        assert inner is not None
        assert code_in(registry, "many", inner) == CODE


def test_an_image_that_is_not_there(registry: str) -> None:
    with pytest.raises(RegistryError, match="there is no image"):
        prepare(f"{registry}/none:1", io.BytesIO(CODE), CODE_FILE)


def test_the_image_must_be_the_one_that_was_planned(registry: str) -> None:
    put_image(registry, "moved")
    with pytest.raises(Refusal, match="was changed just now"):
        send_code(f"{registry}/moved:1", io.BytesIO(CODE), f"{registry}/moved@sha256:0")
    made = prepare(f"{registry}/moved:1", io.BytesIO(CODE), CODE_FILE)
    send_code(f"{registry}/moved:1", io.BytesIO(CODE), made.image)
    assert Registry(registry, "moved").manifest(made.tag) is not None


def test_a_registry_that_wants_a_password(tmp_path: Path, nobody: Path) -> None:
    login = {"auths": {}}
    with registry_server(tmp_path, closed=True) as address:
        with pytest.raises(RegistryError) as caught:
            prepare(f"{address}/own:1", io.BytesIO(CODE), CODE_FILE)
        assert caught.value.status == 401
        key = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        login["auths"] = {address: {"auth": key}}
        nobody.write_text(json.dumps(login))
        put_image(address, "own")
        made = prepare(f"{address}/own:1", io.BytesIO(CODE), CODE_FILE)
        send(made)
        found = Registry(address, "own").manifest(made.tag)
        assert found is not None
        assert code_in(address, "own", found) == CODE


def test_a_registry_that_takes_nothing(tmp_path: Path) -> None:
    with registry_server(tmp_path) as address:
        put_image(address, "base")
    with registry_server(tmp_path, read_only=True) as address:
        made = prepare(f"{address}/base:1", io.BytesIO(CODE), CODE_FILE)
        with pytest.raises(Refusal) as caught:
            send_code(f"{address}/base:1", io.BytesIO(CODE), made.image)
    told = str(caught.value)
    assert told.startswith(f"code: {address} does not take the code as a layer of {address}/base:1: ")
    assert "hint: leave things out with .podwrightignore, put them into the image" in told
    assert caught.value.exit_code == 2


def test_a_registry_that_is_away() -> None:
    with pytest.raises(RegistryError, match=r"127\.0\.0\.1:1 cannot be reached: connection refused"):
        prepare("127.0.0.1:1/own:1", io.BytesIO(CODE), CODE_FILE)


def test_the_tag_says_what_is_in_it() -> None:
    tag = tag_of("sha256:1", "sha256:2")
    assert tag == tag_of("sha256:1", "sha256:2")
    assert len({tag, tag_of("sha256:2", "sha256:2"), tag_of("sha256:1", "sha256:1")}) == 3
