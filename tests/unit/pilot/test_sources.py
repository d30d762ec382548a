"""What files are read from, and what bad servers do to it."""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright.pilot.data import sources
from podwright.pilot.data.sources import SourceFailed, SourceFile, fetch, look, s3_request
from tests.fixtures.counted import CountedServer, counted

DATA = bytes(range(256)) * 20_000


@pytest.fixture
def server(tmp_path: Path) -> Iterator[CountedServer]:
    (tmp_path / "a b.bin").write_bytes(DATA)
    with counted(tmp_path) as server:
        yield server


def read(source: str, size: int = len(DATA), etag: str = "") -> bytes:
    file = io.BytesIO()
    sha256 = fetch(SourceFile(source, size, etag), {}, {}, file, sleep=lambda seconds: None)
    assert sha256 == hashlib.sha256(file.getvalue()).hexdigest()
    return file.getvalue()


def test_a_server_that_is_busy_and_breaks_off_gives_the_file_in_the_end(server: CountedServer) -> None:
    server.busy, server.broken = 3, 3
    assert read(f"{server.address}/a%20b.bin") == DATA
    # What came before a break is not read again.
    assert server.sent_bytes == len(DATA)


def test_a_server_that_stays_busy_is_given_up(server: CountedServer) -> None:
    server.busy = 1000
    with pytest.raises(SourceFailed, match="503"):
        read(f"{server.address}/a%20b.bin")
    assert len(server.requests) == sources.MAX_TRIES


def test_a_file_that_is_not_there_is_not_asked_for_again(server: CountedServer) -> None:
    with pytest.raises(SourceFailed, match="404"):
        read(f"{server.address}/c.bin")
    assert len(server.requests) == 1


def test_a_file_that_is_another_by_now_is_refused(server: CountedServer, tmp_path: Path) -> None:
    address = f"{server.address}/a%20b.bin"
    facts = look(address, {}, {})
    assert facts.size == len(DATA)
    assert read(address, etag=facts.etag) == DATA
    (tmp_path / "a b.bin").write_bytes(DATA[::-1])
    with pytest.raises(SourceFailed, match="its ETag is another"):
        read(address, etag=facts.etag)
    (tmp_path / "a b.bin").write_bytes(DATA + b"more")
    with pytest.raises(SourceFailed, match="more than the"):
        read(address)


def test_a_path_is_read_byte_by_byte_and_its_version_is_held(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/odd \xff\n%.bin"
    with open(path, "wb") as file:  # noqa: PTH123 - paths are bytes
        file.write(DATA)
    source = Path(os.fsdecode(path)).as_uri()
    facts = look(source, {}, {})
    assert read(source, etag=facts.etag) == DATA
    os.utime(path)
    with pytest.raises(SourceFailed, match="not what it was"):
        read(source, etag=facts.etag)
    os.unlink(path)  # noqa: PTH108 - paths are bytes
    with pytest.raises(SourceFailed, match="no such file"):
        read(source)


def test_s3_is_signed_as_amazon_says() -> None:
    """The signature of the documentation's GET without a range: AWS, "Signature Calculations", with our headers."""
    environ = {
        "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
    }
    url, headers = s3_request(
        "GET", "s3://examplebucket/a%20b/c.txt", {"region": "eu-central-1"}, environ, 1369353600.0
    )
    assert url == "https://s3.eu-central-1.amazonaws.com/examplebucket/a%20b/c.txt"
    assert headers["x-amz-date"] == "20130524T000000Z"
    assert "Credential=AKIAIOSFODNN7EXAMPLE/20130524/eu-central-1/s3/aws4_request" in headers["authorization"]
    assert "SignedHeaders=host;x-amz-content-sha256;x-amz-date" in headers["authorization"]
    assert all(environ["AWS_SECRET_ACCESS_KEY"] not in value for value in headers.values())


def test_s3_without_keys_is_not_signed() -> None:
    url, headers = s3_request("GET", "s3://bucket/key", {"endpoint": "http://127.0.0.1:9/"}, {}, 0.0)
    assert (url, headers) == ("http://127.0.0.1:9/bucket/key", {})


def test_a_source_that_breaks_off_again_and_again_is_patiently_read_on(server: CountedServer) -> None:
    """More often than a silent one is asked: there was progress each time."""
    server.broken = sources.MAX_TRIES + 2
    assert read(f"{server.address}/a%20b.bin") == DATA
