"""Speaking to an API server: a small one that answers what a test tells it to."""

from __future__ import annotations

import base64
import hashlib
import json
import socket
import struct
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from podwright.clients.kubernetes.api import Api, ApiError, Away
from podwright.clients.kubernetes.kubeconfig import Entry
from podwright.clients.kubernetes.listing import Listing
from podwright.clients.kubernetes.websocket import CommandFailed, WebSocket

Answers = list[tuple[int, Any]]


class Server(ThreadingHTTPServer):
    """Gives its answers one after the other, and keeps what it was asked."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: Answers = []
        self.asked: list[tuple[str, str, Any]] = []


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Server

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.asked.append((self.command, self.path, json.loads(body) if body else None))
        status, data = self.server.answers.pop(0)
        raw = data if isinstance(data, bytes) else json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    do_GET = do_POST = do_PATCH = do_DELETE = answer

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.shutdown()
    thread.join()
    made.server_close()


def entry_at(port: int) -> Entry:
    folder = Path("/")
    return Entry("test", {"server": f"http://127.0.0.1:{port}/base"}, {"token": "abc"}, None, folder, folder)


@pytest.fixture
def api(server: Server) -> Iterator[Api]:
    made = Api(entry_at(server.server_address[1]), pauses_s=(0.0, 0.0))
    yield made
    made.close()


def test_a_server_that_is_busy_is_asked_again(server: Server, api: Api) -> None:
    server.answers = [(503, b"busy"), (429, {}), (200, {"a": 1})]
    assert api.get("/version") == {"a": 1}
    assert [path for _, path, _ in server.asked] == ["/base/version"] * 3
    assert api.requests == 3


def test_a_refusal_is_given_in_its_own_words(server: Server, api: Api) -> None:
    server.answers = [(403, {"reason": "Forbidden", "message": "you may not"}), (200, {"major": "1"})]
    with pytest.raises(ApiError, match="you may not") as caught:
        api.get("/x")
    assert (caught.value.status, caught.value.reason) == (403, "Forbidden")


def test_a_server_that_has_just_begun_is_asked_again(server: Server, api: Api) -> None:
    forbidden = (403, {"reason": "Forbidden", "message": "you may not"})
    server.answers = [forbidden, forbidden, (200, {"a": 1})]
    assert api.get("/x") == {"a": 1}
    assert [path for _, path, _ in server.asked] == ["/base/x", "/base/version", "/base/x"]


def test_a_server_that_has_come_back_may_have_some_rights_still_to_read(server: Server, api: Api) -> None:
    """What everybody may ask is allowed before the rights that one namespace gives to one user."""
    forbidden = (403, {"reason": "Forbidden", "message": "you may not"})
    server.answers = [(503, b"starting"), forbidden, (200, {"a": 1})]
    assert api.get("/x") == {"a": 1}
    server.answers = [(503, b"starting"), forbidden, forbidden, (200, {"major": "1"})]
    with pytest.raises(ApiError, match="you may not"):
        api.get("/x")


def test_what_is_not_there_is_none_and_may_be_deleted(server: Server, api: Api) -> None:
    server.answers = [(404, {}), (404, {})]
    assert api.find("/x") is None
    api.delete("/x", "Foreground")
    assert server.asked[1][2]["propagationPolicy"] == "Foreground"


def test_a_list_comes_page_by_page(server: Server, api: Api) -> None:
    first = {"metadata": {"continue": "more", "resourceVersion": "7"}, "items": [{"n": 1}]}
    last = {"metadata": {"resourceVersion": "7"}, "items": [{"n": 2}]}
    server.answers = [(200, first), (200, last)]
    assert api.items("/pods", labelSelector="a=b") == ([{"n": 1}, {"n": 2}], "7")
    assert server.asked[1][1] == "/base/pods?limit=500&continue=more&labelSelector=a%3Db"


def test_objects_are_applied_with_our_name(server: Server, api: Api) -> None:
    server.answers = [(200, {"ok": True})]
    api.apply("/x", {"kind": "Job"}, dry=True)
    asked = server.asked[0]
    assert asked == ("PATCH", "/base/x?fieldManager=podwright&force=true&dryRun=All", {"kind": "Job"})


def test_a_server_that_is_not_there_is_away() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        made = Api(entry_at(port), pauses_s=(0.0,))
        with pytest.raises(Away, match=f"http://127.0.0.1:{port}/base cannot be reached: connection refused"):
            made.get("/version")
        assert made.requests == 2


def test_a_list_stays_when_the_server_is_away(server: Server, api: Api) -> None:
    row = {"metadata": {"name": "a"}}
    server.answers = [(200, {"metadata": {"resourceVersion": "1"}, "items": [row]}), *[(503, b"")] * 3]
    listing = Listing(api, "/pods", "a=b")
    assert listing.read() == {"a": row}
    listing.forget()
    with pytest.raises(ApiError):
        listing.read()
    assert listing.read() == {"a": row}


def websocket_answer(key: str) -> bytes:
    digest = hashlib.sha1(key.encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
    accept = base64.b64encode(digest).decode()
    return f"HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: {accept}\r\n\r\n".encode()


def frame(kind: int, data: bytes, final: bool = True) -> bytes:
    head = (0x80 if final else 0) | kind
    if len(data) < 126:
        return bytes([head, len(data)]) + data
    return struct.pack(">BBH", head, 126, len(data)) + data


def exchange(given: bytes, frames: list[bytes]) -> tuple[bytes, bytes]:
    """(what the client sent after the greeting, what it took for the answer)"""
    ours, theirs = socket.socketpair()
    sent: list[bytes] = []

    def serve() -> None:
        head = theirs.recv(65536)
        key = next(line for line in head.decode().split("\r\n") if line.startswith("Sec-WebSocket-Key: "))[19:]
        theirs.sendall(websocket_answer(key) + b"".join(frames[:1]))
        sent.append(theirs.recv(1 << 20))
        theirs.sendall(b"".join(frames[1:]))

    thread = threading.Thread(target=serve)
    thread.start()
    with ours, theirs:
        ours.settimeout(10)
        try:
            out = WebSocket(ours, "/exec", {"Authorization": "Bearer abc"}).exchange(given)
        finally:
            thread.join()
    return sent[0], out


def unmasked(raw: bytes) -> bytes:
    mask, data = raw[2:6], raw[6:]
    return bytes(byte ^ mask[index % 4] for index, byte in enumerate(data))


DONE = frame(2, b'\x03{"status": "Success"}')


def test_a_command_in_a_container_gets_its_input_and_gives_its_output() -> None:
    long = b"x" * 300
    parts = [frame(2, b"\x01" + long[:100], final=False), frame(9, b"ping"), frame(0, long[100:])]
    sent, out = exchange(b"asked\n", [frame(2, b"\x01one "), *parts, frame(2, b"\x02a warning"), DONE])
    assert out == b"one " + long
    assert unmasked(sent[:12]) == b"\x00asked"[: len(unmasked(sent[:12]))]


def test_a_command_that_fails_says_its_last_line() -> None:
    failed = frame(2, b'\x03{"status": "Failure", "message": "command terminated with exit code 1"}')
    with pytest.raises(CommandFailed, match="no such file"):
        exchange(b"x", [frame(2, b"\x02first\nno such file\n"), failed])
    with pytest.raises(CommandFailed, match="exit code 1"):
        exchange(b"x", [failed])


def test_a_closed_connection_is_no_answer() -> None:
    with pytest.raises(CommandFailed, match="the connection was closed"):
        exchange(b"x", [frame(8, b"")])
