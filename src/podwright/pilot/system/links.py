"""Authenticated message links between pilots: a mutual HMAC handshake over the run's token, then signed JSON lines."""

from __future__ import annotations

import json
import os
import socket
import time
from contextlib import suppress
from typing import Any, Dict, List, Optional, Tuple

from ..protocol import PORT_TRIES, join_ports, mac, parse_line, same_mac
from .listener import open_socket

LINE_BYTES = 256 * 1024
HANDSHAKE_S = 5.0


class Broken(Exception):
    """The other side is gone, or is not who it says it is."""


class Unreachable(Broken):
    """No answer of any kind: a cut network, a name that is not known yet."""


def sign(key: bytes, sender: str, number: int, row: Dict[str, Any]) -> bytes:
    """Return a message as a line, signed with who sends it and its number in the stream."""
    body = json.dumps(row)
    return json.dumps([body, mac(key, sender, number, body)]).encode() + b"\n"


def verify(key: bytes, sender: str, number: int, line: bytes) -> Optional[Dict[str, Any]]:
    """Return the message of a line; raise Broken for one that is not signed right."""
    with suppress(ValueError, TypeError, AttributeError, RecursionError):
        body, signature = json.loads(line)
        if same_mac(signature, mac(key, sender, number, body)):
            return parse_line(body)
    raise Broken("a line is not signed right")


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
        line = sign(self._key, self._ours, self._sent, message)
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
            row = verify(self._key, self._theirs, self._received, line)
        except Broken:
            self.alive = False
            return None
        self._received += 1
        return row

    @property
    def address(self) -> str:
        """Return where the other side is, as it is seen from here; nothing once it is gone."""
        try:
            return str(self.sock.getpeername()[0])
        except OSError:
            return ""

    def close(self) -> None:
        self.alive = False
        self.sock.close()


def listen(bind: str, run: str) -> socket.socket:
    """Return the leader's socket, on the first of the run's ports that is free."""
    last: Optional[OSError] = None
    for port in join_ports(run):
        try:
            return open_socket(family_of(bind), (bind, port))
        except OSError as error:
            last = error
    raise Broken(f"no port to listen on for the other nodes: {last}")


def free_port(bind: str) -> int:
    """Return a port nobody uses now, for MASTER_PORT; fresh for each attempt, so that no old rank is met there."""
    with socket.socket(family_of(bind), socket.SOCK_STREAM) as sock:
        sock.bind((bind, 0))
        return int(sock.getsockname()[1])


def family_of(address: str) -> socket.AddressFamily:
    """Return the kind of an address: with a colon it is one of IPv6."""
    return socket.AF_INET6 if ":" in address else socket.AF_INET


class Greeting:
    """The leader's side of a handshake: a challenge, and what the answer is worth. It waits for nobody."""

    def __init__(self, token: bytes, instance: str) -> None:
        self._token, self._instance = token, instance
        self._nonce = os.urandom(16).hex()

    @property
    def challenge(self) -> Dict[str, Any]:
        """Return what is said first."""
        return {"nonce": self._nonce, "instance": self._instance}

    def check(self, line: bytes) -> Tuple[Dict[str, Any], bytes, Dict[str, Any]]:
        """Return the welcome, which proves ourselves, the key of the link and the member's facts; else raise Broken."""
        answer = parse_line(line) or {}
        body, theirs = str(answer.get("join")), str(answer.get("nonce"))
        proof = (self._nonce, theirs, self._instance)
        if not same_mac(str(answer.get("mac")), mac(self._token, "join", *proof, body)):
            raise Broken("its token is not this run's")
        facts = parse_line(body.encode())
        if facts is None:
            raise Broken("it sent no facts")
        return {"mac": mac(self._token, "welcome", *proof)}, _key(self._token, self._nonce, theirs), facts


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
    sock, key, instance = dial((leader, port), token, facts, HANDSHAKE_S)
    return Link(sock, key, "member"), instance


def dial(
    address: Tuple[str, int], token: bytes, facts: Dict[str, Any], timeout_s: float
) -> Tuple[socket.socket, bytes, str]:
    """Connect and shake hands; return the socket, the key of what follows, and who answered."""
    try:
        sock = socket.create_connection(address, timeout=timeout_s)
    except ConnectionRefusedError as error:
        raise Broken(str(error)) from None
    except OSError as error:
        raise Unreachable(str(error)) from None
    try:
        return (sock, *shake_hands(sock, token, facts))
    except (Broken, OSError, ValueError) as error:
        sock.close()
        raise Broken(str(error)) from None


def shake_hands(sock: socket.socket, token: bytes, facts: Dict[str, Any]) -> Tuple[bytes, str]:
    """Shake hands on the side of who came; return the key of what follows, and who answered."""
    hello = _hear(sock)
    theirs, mine, body = str(hello.get("nonce")), os.urandom(16).hex(), json.dumps(facts)
    # Which leader it is stands in both proofs: nobody in between can make it another one.
    instance = str(hello.get("instance"))
    proof = (theirs, mine, instance)
    say(sock, {"join": body, "nonce": mine, "mac": mac(token, "join", *proof, body)})
    if not same_mac(str(_hear(sock).get("mac")), mac(token, "welcome", *proof)):
        raise Broken("its token is not this run's")
    return _key(token, theirs, mine), instance


def _key(token: bytes, leader: str, member: str) -> bytes:
    return mac(token, "key", leader, member).encode()


def say(sock: socket.socket, row: Dict[str, Any]) -> None:
    """Send one line of a handshake: a new connection has room for it, and one that has not is given up."""
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
