"""As much of WebSocket as a command in a container and a port of one take: messages over an open connection.

The first byte of each message is its channel. Of a command it says whether this is stdin, stdout, stderr, or how it
ended; of a port, whether it is what came or what went wrong.
"""

from __future__ import annotations

import base64
import json
import os
import socket
import struct
from collections.abc import Mapping
from typing import Any

from podwright.clients.reasons import last_line

PROTOCOL = "v4.channel.k8s.io"
STDIN, STDOUT, STDERR, STATUS = range(4)
BINARY, CLOSE, PING, PONG = 2, 8, 9, 10
PIECE_BYTES = 64 * 1024
LONG_SIZES = {126: 2, 127: 8}
"""Marks in the place of a size that say in how many bytes the size itself follows."""


class CommandFailed(OSError):
    """A command in a container did not end well, or could not be started."""


class NotBegun(CommandFailed):
    """There is no such container, or its node cannot be reached."""


class WebSocket:
    """A connection that was opened for one command, or to one port."""

    def __init__(self, sock: socket.socket, target: str, headers: Mapping[str, str]) -> None:
        self._sock, self._rest = sock, b""
        self._open(target, headers)

    def _open(self, target: str, headers: Mapping[str, str]) -> None:
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [
            f"GET {target} HTTP/1.1",
            "Host: kubernetes",
            "Connection: Upgrade",
            "Upgrade: websocket",
            "Sec-WebSocket-Version: 13",
            f"Sec-WebSocket-Key: {key}",
            f"Sec-WebSocket-Protocol: {PROTOCOL}",
            *(f"{name}: {value}" for name, value in headers.items()),
        ]
        self._sock.sendall("\r\n".join([*lines, "", ""]).encode())
        while b"\r\n\r\n" not in self._rest:
            self._more()
        head, _, self._rest = self._rest.partition(b"\r\n\r\n")
        if b" 101 " not in head.split(b"\r\n")[0]:
            raise NotBegun(_refusal(head, self._rest))

    def exchange(self, given: bytes) -> bytes:
        """Give the command its input and take all it prints. It must know by itself where its input ends."""
        self.send(STDIN, given)
        out, err = bytearray(), bytearray()
        while True:
            message = self.receive()
            if message is None:
                raise CommandFailed(err.decode("utf-8", "replace").strip() or "the connection was closed")
            channel, data = message
            if channel == STDOUT:
                out += data
            elif channel == STDERR:
                err += data
            elif channel == STATUS:
                _check(data, bytes(err))
                return bytes(out)

    def send(self, channel: int, data: bytes) -> None:
        """Send something on a channel, in pieces."""
        for at in range(0, len(data), PIECE_BYTES):
            self._send(BINARY, bytes([channel]) + data[at : at + PIECE_BYTES])

    def receive(self) -> tuple[int, bytes] | None:
        """Return the next message and its channel; None where the other side has closed."""
        while True:
            kind, data = self._receive()
            if kind == CLOSE:
                return None
            if data:
                return data[0], data[1:]

    def has_more(self) -> bool:
        """Return whether something has come that nobody took, so that waiting for the socket would be in vain."""
        pending = getattr(self._sock, "pending", lambda: 0)
        return bool(self._rest) or pending() > 0

    def _send(self, kind: int, data: bytes) -> None:
        """Send one frame; a client must mask what it sends."""
        mask = os.urandom(4)
        size = len(data)
        head = bytes([0x80 | kind])
        if size < 126:
            head += bytes([0x80 | size])
        elif size < 65536:
            head += struct.pack(">BH", 0x80 | 126, size)
        else:
            head += struct.pack(">BQ", 0x80 | 127, size)
        whole = (mask * (size // 4 + 1))[:size]
        masked = (int.from_bytes(data, "big") ^ int.from_bytes(whole, "big")).to_bytes(size, "big")
        self._sock.sendall(head + mask + masked)

    def _receive(self) -> tuple[int, bytes]:
        """Return one message, put together from its frames; a ping may come between them."""
        parts, first = bytearray(), 0
        while True:
            a, b = self._take(2)
            size = b & 0x7F
            if size >= 126:
                size = int.from_bytes(self._take(LONG_SIZES[size]), "big")
            data, kind = self._take(size), a & 0x0F
            if kind == CLOSE:
                return kind, data
            if kind == PING:
                self._send(PONG, data)
            if kind >= CLOSE:
                continue
            first = first or kind
            parts += data
            if a & 0x80:
                return first, bytes(parts)

    def _take(self, size: int) -> bytes:
        while len(self._rest) < size:
            self._more()
        taken, self._rest = self._rest[:size], self._rest[size:]
        return taken

    def _more(self) -> None:
        data = self._sock.recv(1 << 18)
        if not data:
            raise CommandFailed("the connection was closed")
        self._rest += data


def _check(data: bytes, err: bytes) -> None:
    status: dict[str, Any] = json.loads(data)
    if status.get("status") != "Success":
        raise CommandFailed(last_line(err.decode("utf-8", "replace"), str(status.get("message", "it failed"))))


def _refusal(head: bytes, rest: bytes) -> str:
    try:
        return str(json.loads(rest)["message"])
    except (ValueError, KeyError, TypeError):
        return head.split(b"\r\n")[0].decode("utf-8", "replace")
