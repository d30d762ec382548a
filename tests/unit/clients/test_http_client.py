"""What every HTTP client of ours has in common: who gets the password, how much is taken, why it failed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from podwright.clients.http_client import (
    ErrorAnswer,
    HttpClient,
    TooLarge,
    Unencrypted,
    Unreached,
    basic,
    check_step,
    is_loopback,
    no_proxy,
    request_of,
)


class Handler(BaseHTTPRequestHandler):
    """Answers by the path, and notes what it was sent."""

    server: Server

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        self.server.seen.append((self.path, self.headers.get("Authorization"), self.rfile.read(length)))
        status, _, name = self.path.strip("/").partition("-")
        self.send_response(int(status))
        if name:
            self.send_header("Location", f"/{name}")
        self.end_headers()
        self.wfile.write(b"x" * 100)

    do_POST = do_GET

    def log_message(self, *_: object) -> None:
        """Stay silent."""


class Server(HTTPServer):
    """A server on this machine's loopback."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.seen: list[tuple[str, str | None, bytes]] = []

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/{path}"


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def test_an_answer_within_its_bound_comes_whole(server: Server) -> None:
    client = HttpClient("refused", 10, no_proxy())
    _, data = client.ask(request_of(server.url("200"), "POST", b"body", authorization=basic("ada:pw")), 100)
    assert data == b"x" * 100
    assert server.seen == [("/200", "Basic YWRhOnB3", b"body")]


def test_an_answer_beyond_its_bound_is_refused(server: Server) -> None:
    with pytest.raises(TooLarge):
        HttpClient("refused", 10, no_proxy()).ask(request_of(server.url("200")), 99)


def test_an_error_has_status_and_the_first_bytes(server: Server) -> None:
    with pytest.raises(ErrorAnswer, match=r"^not found$") as raised:
        HttpClient("followed", 10, no_proxy()).ask(request_of(server.url("404")), 100)
    assert (raised.value.status, raised.value.body) == (404, b"x" * 100)


def test_whoever_stays_is_not_led_on(server: Server) -> None:
    with pytest.raises(ErrorAnswer) as raised:
        HttpClient("refused", 10, no_proxy()).ask(request_of(server.url("302-200")), 100)
    assert raised.value.status == 302
    assert [path for path, _, _ in server.seen] == ["/302-200"]


def test_a_password_is_not_led_on(server: Server) -> None:
    HttpClient("encrypted", 10, no_proxy()).ask(request_of(server.url("302-200"), authorization="Basic x"), 100)
    assert [(path, secret) for path, secret, _ in server.seen] == [("/302-200", "Basic x"), ("/200", None)]


def test_a_server_that_is_not_there_says_so_in_words() -> None:
    with pytest.raises(Unreached, match=r"^connection refused$"):
        HttpClient("followed", 10, no_proxy()).ask(request_of("http://127.0.0.1:1/"), 100)


def test_no_step_leaves_https() -> None:
    check_step("https://a.example/x", "https://b.example/y")
    with pytest.raises(Unencrypted, match=r"^a\.example leads from https to http://b\.example, "):
        check_step("https://a.example/x", "http://b.example/y")


@pytest.mark.parametrize("host", ["localhost", "localhost:5000", "127.0.0.1:80", "[::1]:80"])
def test_this_machine_is_known_by_its_names(host: str) -> None:
    assert is_loopback(host)
    assert not is_loopback("registry.example:5000")
