"""S3 as a source: a real server is scanned, chosen from and staged, throttled and with broken connections."""

from __future__ import annotations

import hashlib
import io
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

import podwright
from podwright import launch
from podwright.data import FurtherRoots, ScanRequest, StatsRequest
from podwright.data.catalog.dataset import open_dataset
from podwright.data.catalog.scan import scan
from podwright.data.catalog.store import Store
from podwright.data.requests import NO_FURTHER
from podwright.data.selecting.select import Choice, make_selection
from podwright.launch import Session
from podwright.pilot.data.sources import SourceFailed, SourceFile, fetch, look
from podwright.runs import Home
from podwright.spec.problems import Refusal
from tests.fixtures.a2d2 import write_scenes
from tests.fixtures.s3 import KEYS, S3Server, s3_server
from tests.real.test_staging import seen, workload

# The time of a test alone: the first one's fixture may build the server from source.
pytestmark = [pytest.mark.nightly, pytest.mark.timeout(300, func_only=True), pytest.mark.xdist_group("s3")]
SIZE = 100_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        for number in range(8):
            path = server.root / "frames" / f"set {number % 2}" / f"{number}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(hashlib.sha256(str(number).encode()).digest() * (SIZE // 32))
        yield server


@pytest.fixture
def environ(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    for name, value in server.environ.items():
        monkeypatch.setenv(name, value)
    return server.environ


def read(server: S3Server, source: str, keys: dict[str, str]) -> bytes:
    site, file = {"endpoint": server.environ["AWS_ENDPOINT_URL"], "region": "us-east-1"}, io.BytesIO()
    facts = look(source, site, keys)
    fetch(SourceFile(source, SIZE, facts.etag), site, keys, file)
    return file.getvalue()


def test_the_pilot_reads_with_its_own_signature(server: S3Server) -> None:
    source = "s3://frames/set%201/3.png"
    assert read(server, source, KEYS) == (server.root / "frames" / "set 1" / "3.png").read_bytes()
    with pytest.raises(SourceFailed, match=r"403.*name AWS_ACCESS_KEY_ID"):
        read(server, source, {})
    with pytest.raises(SourceFailed, match="403"):
        read(server, source, {**KEYS, "AWS_SECRET_ACCESS_KEY": "wrong"})
    with pytest.raises(SourceFailed, match="404"):
        read(server, "s3://frames/none", KEYS)


def test_a_throttled_and_broken_connection_gives_the_file_in_the_end(server: S3Server) -> None:
    server.slow, server.broken = 2, 0
    source = "s3://frames/set%200/2.png"
    expected = (server.root / "frames" / "set 0" / "2.png").read_bytes()
    assert read(server, source, KEYS) == expected
    server.broken = 2
    assert read(server, source, KEYS) == expected
    assert (server.slow, server.broken) == (0, 0)


def test_a_bucket_is_scanned_chosen_from_and_staged_to_two_nodes(
    server: S3Server, environ: dict[str, str], tmp_path: Path
) -> None:
    session = Session(Home.open(tmp_path / "home"))
    store = Store(session.home.path)
    server.slow = 1
    scanned = scan(store, "s3://frames", "far")
    assert (scanned.files, scanned.size_bytes, scanned.changed) == (8, 8 * (SIZE // 32 * 32), 8)
    assert scan(store, "s3://frames", "far").changed == 0
    with open_dataset(store, "far") as opened:
        assert opened.count(opened.condition('path~"set 1"'))[0] == 4
    make_selection(store, "far", Choice("some", where='path~"set 1"'))
    with pytest.raises(Refusal, match="keys that the run does not name"):
        launch.start(session, workload(tmp_path, "selection:some"))
    before = server.bytes_out
    secrets = "[AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY]"
    run = launch.start(session, workload(tmp_path, "selection:some", secrets=secrets))
    record = run.wait(120)
    assert (record.state, record.reason) == ("succeeded", "")
    assert {line.split()[1] for line in seen(run)} == {"4"}
    sent = server.bytes_out - before
    assert 4 * SIZE * 0.99 < sent < 4 * SIZE * 1.1  # the files once, with what HTTP says around them
    for path in run.folder.path.rglob("*"):
        if path.is_file():
            assert environ["AWS_SECRET_ACCESS_KEY"].encode() not in path.read_bytes()


def test_what_cannot_be_listed_is_refused_with_the_reason(
    server: S3Server, environ: dict[str, str], tmp_path: Path
) -> None:
    store = Store(tmp_path / "home")
    with pytest.raises(Refusal, match="gs:// is no source that nodes can read"):
        scan(store, "gs://bucket", "x")
    with pytest.raises(Refusal, match="must hold no password"):
        scan(store, "https://me:secret@host/x", "x")
    with pytest.raises(Refusal, match="cannot be listed"):
        scan(store, "s3://nothing-here", "x")
    assert "AWS_ENDPOINT_URL" in os.environ


def test_a_bucket_is_counted_summed_and_chosen_from_as_a_folder(
    server: S3Server, environ: dict[str, str], tmp_path: Path
) -> None:
    """The same tree in a folder, in a bucket, and half here and half there."""
    tree = write_scenes(server.root / "scenes", scenes=4, frames=2)
    catalog = podwright.catalog(Session(Home.open(tmp_path / "home")))
    half = tmp_path / "half"
    for number, scene in enumerate(sorted(path for path in tree.iterdir() if path.is_dir())):
        shutil.copytree(scene, (half if number < 2 else server.root / "rest") / scene.name)
    rest = FurtherRoots(("s3://rest",), ("s3a",))
    roots = {"folder": (tree, NO_FURTHER), "bucket": ("s3://scenes", NO_FURTHER), "both": (half, rest)}
    server.slow = 2
    documents, digests = {}, {}
    for name, (root, further) in roots.items():
        catalog.scan(ScanRequest(root, name, checksums=True, further=further))
        documents[name] = {**catalog.stats(StatsRequest(name)).as_json(), "dataset": ""}
        choice = Choice(name=f"of-{name}", split="train=0.5,test=0.5", representative=True, seed=1)
        digests[name] = catalog.select(name, choice).digest
        assert catalog.sql(name, "select count(*) from files where sha256 is null").rows == [[0]], name
    assert documents["folder"]["images"] == 8
    assert documents["bucket"] == documents["folder"]
    assert digests["bucket"] == digests["folder"]
    assert documents["both"] == documents["folder"]
    staged = catalog.stage("of-bucket", tmp_path / "staged")
    assert staged.files == 24
    for path in (path for path in tree.rglob("*") if path.is_file()):
        assert (tmp_path / "staged" / path.relative_to(tree)).read_bytes() == path.read_bytes()
