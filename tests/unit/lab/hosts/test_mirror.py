"""The mirror of a lab of hosts, with apt's own fetcher and a real source on the loopback."""

from __future__ import annotations

import functools
import http.server
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright.lab.debian import PackageSource, sources
from podwright.lab.hosts.mirror import PackageServer


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""


@pytest.fixture
def upstream(tmp_path: Path) -> Iterator[str]:
    """Gives the address of a source that has one package and one list."""
    root = tmp_path / "upstream"
    for name, text in (("pool/a/a_1+b2~c.deb", "package"), ("dists/x/InRelease", "list 1"), ("secret", "no")):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(root)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def mirror(tmp_path: Path, upstream: str) -> Iterator[str]:
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    port = listening.getsockname()[1]
    server = PackageServer(listening.detach(), tmp_path / "cache", [upstream])
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{port}"
    server.shutdown()
    server.server_close()


def get(url: str, **headers: str) -> tuple[int, bytes]:
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers)) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, b""


def test_a_package_is_fetched_once_and_served_by_any_spelling(mirror: str, tmp_path: Path) -> None:
    assert get(f"{mirror}/0/pool/a/a_1%2bb2%7ec.deb") == (200, b"package")
    (tmp_path / "upstream" / "pool" / "a" / "a_1+b2~c.deb").unlink()
    assert get(f"{mirror}/0/pool/a/a_1+b2~c.deb") == (200, b"package")
    assert get(f"{mirror}/0/pool/a/a_1+b2~c.deb", Range="bytes=4-") == (206, b"age")


def test_nothing_but_packages_and_lists_is_served(mirror: str) -> None:
    paths = ("/0/secret", "/0/pool/../secret", "/0/pool/%2e%2e/secret", "/1/pool/a/a.deb", "/0/pool/none.deb", "/")
    assert [get(mirror + path)[0] for path in paths] == [404] * len(paths)


def test_a_list_that_cannot_be_fetched_anew_is_still_served(mirror: str, tmp_path: Path) -> None:
    import os

    assert get(f"{mirror}/0/dists/x/InRelease") == (200, b"list 1")
    kept = next((tmp_path / "cache").rglob("InRelease"))
    (tmp_path / "upstream" / "dists" / "x" / "InRelease").write_text("list 2")
    assert get(f"{mirror}/0/dists/x/InRelease") == (200, b"list 1")
    os.utime(kept, (0, 0))
    assert get(f"{mirror}/0/dists/x/InRelease") == (200, b"list 2")
    os.utime(kept, (0, 0))
    (tmp_path / "upstream" / "dists" / "x" / "InRelease").unlink()
    assert get(f"{mirror}/0/dists/x/InRelease") == (200, b"list 2")


def test_both_forms_of_apts_sources_are_read() -> None:
    old = "# none\ndeb [arch=amd64 trusted=yes] http://m.example/debian bookworm main contrib\ndeb-src http://x y z\n"
    new = (
        "Types: deb\n# a comment\nURIs: http://m.example/debian\nSuites: bookworm bookworm-updates\nComponents: main\n"
    )
    off = "\nTypes: deb\nURIs: http://off.example\nSuites: x\nEnabled: no\n"
    assert sources(old) == [PackageSource("http://m.example/debian", ("bookworm",), ("main", "contrib"))]
    assert sources(new + off) == [PackageSource("http://m.example/debian", ("bookworm", "bookworm-updates"), ("main",))]
