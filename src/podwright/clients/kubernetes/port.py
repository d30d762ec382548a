"""A port of a container, reached through the API server: a socket here, messages there."""

from __future__ import annotations

import select
import socket
import threading
from contextlib import ExitStack, closing, suppress

from podwright.clients.kubernetes.websocket import CommandFailed, WebSocket

DATA = 0
"""The channel of what the port sends and is sent; the other one says what went wrong there."""
CHUNK_BYTES = 1 << 16


def socket_of(line: WebSocket, sock: socket.socket, held: ExitStack) -> socket.socket:
    """Return a socket that is the port's, until one side closes; `held` is let go of then."""
    ours, theirs = socket.socketpair()
    threading.Thread(target=_carry, args=(line, sock, theirs, held), daemon=True).start()
    return ours


def _carry(line: WebSocket, sock: socket.socket, inner: socket.socket, held: ExitStack) -> None:
    """Carry both directions in one thread: a TLS connection may not be read and written at the same time.

    The first message of each channel is the number of the port.
    """
    greeted: set[int] = set()
    with held, closing(inner), suppress(OSError, CommandFailed):
        while True:
            ready = [sock]
            if not line.has_more():
                ready, _, _ = select.select([sock, inner], [], [])
            if sock in ready:
                message = line.receive()
                if message is None or (message[0] != DATA and message[0] in greeted):
                    return
                if message[0] in greeted:
                    inner.sendall(message[1])
                greeted.add(message[0])
            if inner in ready:
                data = inner.recv(CHUNK_BYTES)
                if not data:
                    return
                line.send(DATA, data)
