"""The page over HTTP: who may read it, and that strangers take little of it."""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
import threading
from collections.abc import Iterator

import pytest

from podwright.telemetry.server import MAX_AT_ONCE, MAX_REQUEST_BYTES, Guard, MetricsServer
from tests.unit.telemetry.conftest import TOKEN


@contextlib.contextmanager
def served(guard: Guard | None = None) -> Iterator[int]:
    with MetricsServer(("127.0.0.1", 0), lambda open_metrics: "open\n" if open_metrics else "plain\n", guard) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield server.server_address[1]
        server.shutdown()


def asked(link: http.client.HTTPConnection, path: str = "/metrics", **fields: str) -> tuple[int, str]:
    link.request("GET", path, headers=fields)
    answer = link.getresponse()
    return answer.status, answer.read().decode()


def test_this_machine_reads_it_without_anything() -> None:
    with served() as port:
        assert asked(http.client.HTTPConnection("127.0.0.1", port)) == (200, "plain\n")
        wanted = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"
        assert asked(http.client.HTTPConnection("127.0.0.1", port), Accept=wanted) == (200, "open\n")
        assert asked(http.client.HTTPConnection("127.0.0.1", port), "/etc/passwd")[0] == 404


@pytest.mark.parametrize("missing", ["certificate", "key", "token"])
def test_nothing_is_served_on_a_network_without_certificate_key_and_token(guard: Guard, missing: str) -> None:
    with pytest.raises(ValueError, match=r"0\.0\.0\.0 is on a network: serving there needs a certificate"):
        MetricsServer(("0.0.0.0", 0), lambda _: "", guard._replace(**{missing: ""}))


@pytest.mark.parametrize(
    ("shown", "code"),
    [
        ({"Authorization": f"Bearer {TOKEN}"}, 200),
        ({"Authorization": f"bearer {TOKEN}"}, 200),
        ({}, 401),
        ({"Authorization": f"Basic {TOKEN}"}, 401),
        ({"Authorization": f"Bearer {TOKEN}x"}, 401),
        ({"Authorization": "Bearer "}, 401),
        ({"Authorization": "Bearer \xff"}, 401),
    ],
)
def test_over_tls_only_who_has_the_token_reads_it(guard: Guard, shown: dict[str, str], code: int) -> None:
    context = ssl.create_default_context(cafile=guard.certificate)
    with served(guard) as port:
        status, text = asked(http.client.HTTPSConnection("127.0.0.1", port, context=context), **shown)
    assert status == code
    assert ("plain" in text) == (code == 200)


def test_with_a_certificate_plain_http_gets_nothing(guard: Guard) -> None:
    with served(guard) as port, pytest.raises((http.client.HTTPException, OSError)):
        asked(http.client.HTTPConnection("127.0.0.1", port), Authorization=f"Bearer {TOKEN}")


def test_a_long_request_is_not_read_to_its_end() -> None:
    with served() as port, socket.create_connection(("127.0.0.1", port)) as link:
        link.sendall(b"GET /metrics HTTP/1.1\r\nX: " + b"x" * (MAX_REQUEST_BYTES - 26))
        assert link.recv(64).startswith(b"HTTP/1.1 400 ")


def test_who_says_nothing_takes_no_more_than_the_places_there_are() -> None:
    with served() as port, contextlib.ExitStack() as opened:
        silent = [opened.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(MAX_AT_ONCE)]
        # One more is hung up on; when a silent one has gone its place is free again.
        with socket.create_connection(("127.0.0.1", port)) as refused:
            assert refused.recv(1) == b""
        silent[0].sendall(b"GET /metrics HTTP/1.1\r\n\r\n")
        assert silent[0].recv(64).startswith(b"HTTP/1.1 200 ")
        while silent[0].recv(4096):
            pass
        assert wait_for_a_place(port) == (200, "plain\n")


def wait_for_a_place(port: int) -> tuple[int, str]:
    """Ask until a thread that has answered is gone: it hangs up before it gives its place back."""
    while True:
        with contextlib.suppress(http.client.RemoteDisconnected, ConnectionError):
            return asked(http.client.HTTPConnection("127.0.0.1", port))
