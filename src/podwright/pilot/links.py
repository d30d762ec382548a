"""Authenticated message links between pilots: a mutual HMAC handshake over the run's token, then signed JSON lines."""

from __future__ import annotations

import json
import os
import socket
import time
from typing import Any, Dict, List, Optional, Tuple

from .protocol import PORT_TRIES, join_ports, mac, parse_line, same_mac

LINE_BYTES = 256 * 1024
HANDSHAKE_S = 5.0


class Broken(Exception):
    """The other side is gone, or is not who it says it is."""


class Unreachable(Broken):
    """No answer of any kind: a cut network, a name that is not known yet."""


class Link:
    """One connection after its handshake. Messages are few and small, so a full buffer means a dead peer."""

    def __init__(self, sock: socket.socket, key: bytes, ours: str) -> None:
        self.sock = sock
        self._key = key
        self._ours, self._theirs = ours, {"leader": "member", "member": "leader"}[ours]
        self._sent = self._received = 0
        self._rest = b""
        self.alive = True
        sock.setblocking(False)

    def send(self, message: Dict[str, Any]) -> None:
        """Send a message, signed with its place in the stream; `alive` turns False when the peer does not take it."""
        body = json.dumps(message)
        line = json.dumps([body, mac(self._key, self._ours, self._sent, body)]).encode() + b"\n"
        self._sent += 1
        try:
            if self.alive and self.sock.send(line) != len(line):
                self.alive = False
        except OSError:
            self.alive = False

    def receive(self) -> List[Dict[str, Any]]:
        """Return what has come; `alive` turns False at the end of the stream or on a line that is not signed right."""
        try:
            data = self.sock.recv(65536)
        except BlockingIOError:
            return []
        except OSError:
            data = b""
        self._rest += data
        *lines, self._rest = self._rest.split(b"\n")
        if not data or len(self._rest) > LINE_BYTES:
            self.alive = False
        return [message for message in map(self._open, lines) if message is not None]

    def _open(self, line: bytes) -> Optional[Dict[str, Any]]:
        try:
            body, sign = json.loads(line)
            if same_mac(sign, mac(self._key, self._theirs, self._received, body)):
                self._received += 1
                return parse_line(body)
        except (ValueError, TypeError, AttributeError, RecursionError):
            pass
        self.alive = False
        return None

    def close(self) -> None:
        self.alive = False
        self.sock.close()


def listen(bind: str, run: str) -> socket.socket:
    """Return the leader's socket, on the first of the run's ports that is free."""
    last: Optional[OSError] = None
    for port in join_ports(run):
        sock = socket.socket(_family(bind), socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            sock.bind((bind, port))
            sock.listen(1024)
            sock.setblocking(False)
            return sock
        except OSError as error:
            last = error
            sock.close()
    raise Broken(f"no port to listen on for the other nodes: {last}")


def free_port(bind: str) -> int:
    """Return a port nobody uses now, for MASTER_PORT; fresh for each attempt, so that no old rank is met there."""
    with socket.socket(_family(bind), socket.SOCK_STREAM) as sock:
        sock.bind((bind, 0))
        return int(sock.getsockname()[1])


def _family(address: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in address else socket.AF_INET


def accept(sock: socket.socket, token: bytes, instance: str) -> Tuple[Link, Dict[str, Any]]:
    """Shake hands on the leader's side: challenge, check, prove ourselves; return the link and the member's facts."""
    sock.settimeout(HANDSHAKE_S)
    mine = os.urandom(16).hex()
    _say(sock, {"nonce": mine, "instance": instance})
    answer = _hear(sock)
    body, theirs = str(answer.get("join")), str(answer.get("nonce"))
    if not same_mac(str(answer.get("mac")), mac(token, "join", mine, theirs, body)):
        raise Broken("its token is not this run's")
    _say(sock, {"mac": mac(token, "welcome", mine, theirs)})
    facts = parse_line(body.encode())
    if facts is None:
        raise Broken("it sent no facts")
    return Link(sock, _key(token, mine, theirs), "leader"), facts


def find_leader(leader: str, run: str, token: bytes, facts: Dict[str, Any]) -> Tuple[Link, str]:
    """Look for it on all of the run's ports in turn; a host that does not answer at all is not asked eight times."""
    for index in range(PORT_TRIES):
        try:
            return connect(leader, run, token, facts, index)
        except Unreachable:
            raise
        except Broken:
            continue
    raise Broken(f"no leader of {run} at {leader}")


def connect(leader: str, run: str, token: bytes, facts: Dict[str, Any], port_index: int) -> Tuple[Link, str]:
    """Shake hands on the member's side, at one of the run's ports; return the link and which leader answered."""
    port = join_ports(run)[port_index % len(join_ports(run))]
    try:
        sock = socket.create_connection((leader, port), timeout=HANDSHAKE_S)
    except ConnectionRefusedError as error:
        raise Broken(str(error)) from None
    except OSError as error:
        raise Unreachable(str(error)) from None
    try:
        hello = _hear(sock)
        theirs, mine, body = str(hello.get("nonce")), os.urandom(16).hex(), json.dumps(facts)
        _say(sock, {"join": body, "nonce": mine, "mac": mac(token, "join", theirs, mine, body)})
        if not same_mac(str(_hear(sock).get("mac")), mac(token, "welcome", theirs, mine)):
            raise Broken("its token is not this run's")
        return Link(sock, _key(token, theirs, mine), "member"), str(hello.get("instance"))
    except (Broken, OSError, ValueError) as error:
        sock.close()
        raise Broken(str(error)) from None


def _key(token: bytes, leader: str, member: str) -> bytes:
    return mac(token, "key", leader, member).encode()


def _say(sock: socket.socket, row: Dict[str, Any]) -> None:
    sock.sendall(json.dumps(row).encode() + b"\n")


def _hear(sock: socket.socket) -> Dict[str, Any]:
    """Read one line, byte by byte: nothing of what follows the handshake may be swallowed."""
    deadline = time.monotonic() + HANDSHAKE_S
    data = b""
    while not data.endswith(b"\n"):
        piece = sock.recv(1)
        if not piece or len(data) > 8192 or time.monotonic() > deadline:
            raise Broken("no handshake")
        data += piece
    row = parse_line(data)
    if row is None:
        raise Broken("no handshake")
    return row
