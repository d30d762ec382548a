"""Serves a page of metrics: over TLS to who has the token, or to this machine alone.

It is asked by strangers, too: a request has 8 KiB and 5 seconds, and few are answered at a time.
"""

from __future__ import annotations

import argparse
import hmac
import ipaddress
import socket
import socketserver
import ssl
import sys
import threading
import time
from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple

from .page import OPEN_METRICS, PLAIN

MAX_REQUEST_BYTES, MAX_AT_ONCE = 8192, 8
PATIENCE_S = 5.0
"""How long a client has for its handshake and its request, and for taking the answer."""
_END = b"\r\n\r\n"
_WORDS = {200: "OK", 400: "Bad Request", 401: "Unauthorized", 404: "Not Found", 405: "Method Not Allowed"}


class Guard(NamedTuple):
    """Who may read the page: by which certificate it is served, and the token that a reader must show."""

    certificate: str = ""
    key: str = ""
    token: str = ""

    @property
    def is_whole(self) -> bool:
        """Return whether it may stand on a network: neither the page nor the token is seen by others."""
        return bool(self.certificate and self.key and self.token)

    @classmethod
    def of_files(cls, certificate: str, key: str, token_file: str) -> "Guard":
        """Return it with the token that stands in a file: on a command line everybody of the host would read it."""
        if not token_file:
            return cls(certificate, key)
        with open(token_file, encoding="utf-8") as file:
            token = file.read().strip()
        if not token:
            raise ValueError("%s: there is no token in it" % token_file)
        return cls(certificate, key, token)


class GuardedServer(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """Lets strangers no further than a handshake, and few of them at a time."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True
    request_queue_size = 32

    def __init__(
        self,
        place: Tuple[str, int],
        client: Callable[[Any, Any, Any], socketserver.BaseRequestHandler],
        guard: Optional[Guard] = None,
    ) -> None:
        self.guard = guard or Guard()
        if not (self.guard.is_whole or is_loopback(place[0])):
            raise ValueError("%s is on a network: serving there needs a certificate, its key and a token" % place[0])
        self.address_family = socket.AF_INET6 if ":" in place[0] else socket.AF_INET
        self._free = threading.BoundedSemaphore(MAX_AT_ONCE)
        self._tls = _context(self.guard) if self.guard.certificate else None
        super().__init__(place, client)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread of its own, or hang up where there are enough."""
        if not self._free.acquire(blocking=False):
            self.shutdown_request(request)
            return
        try:
            super().process_request(request, client_address)
        except RuntimeError:  # no thread is to be had
            self._free.release()
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Shake hands here, so that a client that does not takes nobody else's time."""
        try:
            request.settimeout(PATIENCE_S)
            if self._tls is not None:
                request = self._tls.wrap_socket(request, server_side=True)
            super().process_request_thread(request, client_address)
        except OSError:
            self.shutdown_request(request)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Keep the journal free of clients that went away; a fault of ours is told."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class MetricsServer(GuardedServer):
    """Answers `GET /metrics` with what `text` returns, given whether OpenMetrics is wanted."""

    def __init__(self, place: Tuple[str, int], text: Callable[[bool], str], guard: Optional[Guard] = None) -> None:
        self.text = text
        super().__init__(place, _Client, guard)


class _Client(socketserver.BaseRequestHandler):
    server: MetricsServer

    def handle(self) -> None:
        head = self._read()
        code = 400 if head is None else _judged(head, self.server.guard.token)
        if head is None or code != 200:
            self._answer(code, "%s\n" % _WORDS[code], PLAIN)
            return
        open_metrics = "application/openmetrics-text" in head.fields.get("accept", "")
        self._answer(code, self.server.text(open_metrics), OPEN_METRICS if open_metrics else PLAIN)

    def _read(self) -> Optional["_Request"]:
        end, data = time.monotonic() + PATIENCE_S, b""
        while _END not in data:
            left_s = end - time.monotonic()
            if left_s <= 0 or len(data) >= MAX_REQUEST_BYTES:
                return None
            self.request.settimeout(left_s)
            more = self.request.recv(MAX_REQUEST_BYTES - len(data))
            if not more:
                return None
            data += more
        return _parsed(data.split(_END, 1)[0].decode("latin-1"))

    def _answer(self, code: int, text: str, kind: str) -> None:
        body = text.encode()
        lines = ["HTTP/1.1 %d %s" % (code, _WORDS[code]), "Content-Type: %s" % kind, "Content-Length: %d" % len(body)]
        if code == 401:
            lines.append('WWW-Authenticate: Bearer realm="metrics"')
        self.request.settimeout(PATIENCE_S)
        self.request.sendall("\r\n".join([*lines, "Connection: close", "", ""]).encode() + body)


class _Request(NamedTuple):
    method: str
    path: str
    fields: Dict[str, str]


def _parsed(head: str) -> Optional[_Request]:
    first, *rest = head.split("\r\n")
    words = first.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        return None
    fields = {}
    for line in rest:
        name, _, value = line.partition(":")
        fields[name.strip().lower()] = value.strip()
    return _Request(words[0], words[1].split("?", 1)[0], fields)


def _judged(request: _Request, token: str) -> int:
    if not is_known(request.fields.get("authorization", ""), token):
        return 401
    if request.path != "/metrics":
        return 404
    return 200 if request.method == "GET" else 405


def is_known(shown: str, token: str) -> bool:
    """Return whether a client showed the token; how long that takes says nothing of it."""
    kind, _, given = shown.partition(" ")
    is_token = hmac.compare_digest(given.strip().encode("latin-1"), token.encode())
    return not token or (is_token and kind.lower() == "bearer")


def _context(guard: Guard) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(guard.certificate, guard.key)
    return context


def is_loopback(address: str) -> bool:
    """Return whether only this machine reaches an address."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return address == "localhost"


def place_of(text: str) -> Tuple[str, int]:
    """Return address and port of ADDRESS:PORT; brackets stand around an address with colons."""
    address, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 65536):
        raise ValueError("%s: is no ADDRESS:PORT" % text)
    return address.strip("[]") or "127.0.0.1", int(port)


def add_place(parser: argparse.ArgumentParser, usual: str) -> None:
    """Add what every exporter takes: where it is asked, and by whom it may be."""
    parser.add_argument("--listen", default=usual, help="address and port (default: %(default)s)")
    parser.add_argument("--certificate", default="", help="certificate by which the page is served")
    parser.add_argument("--key", default="", help="its key")
    parser.add_argument("--token", default="", help="file with the token that a reader must show")
