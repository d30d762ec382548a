"""How nodes of a run give each other data: a listening socket for each, proven by the run's token as joining is.

A question is a signed line: `have` (which contents are here, a bit for each) or the number of a content. The answer is
a signed line with the size of what follows, the bytes, and for a content that nobody knows the SHA-256 of a signed line
with that. Bytes are not encrypted: neither is what the ranks send each other.
"""

from __future__ import annotations

import hashlib
import os
import socket
import threading
from contextlib import suppress
from typing import IO, Any, BinaryIO, Callable, Dict, Iterator, NamedTuple, Optional, Union

from ..system.links import Broken, Greeting, dial, family_of, say, sign, verify
from ..system.listener import Listener, Take, open_socket
from ..system.loop import Loop
from .shelf import Shelf
from .sparse import end_file, write_piece

PIECE_BYTES = 1 << 20
TIMEOUT_S = 30.0
MAX_GUESTS = 64
"""Threads that serve at once; who comes to a node that is busy comes again."""
LINE_BYTES = 4096


class PeerAddress(NamedTuple):
    """Where another node of the run gives its data."""

    node: int
    host: str
    port: int


class _Line:
    """One connection after its handshake: signed lines, each with its place in the conversation."""

    def __init__(self, sock: socket.socket, key: bytes) -> None:
        sock.settimeout(TIMEOUT_S)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock, self.file = sock, sock.makefile("rwb")
        self._key, self._count = key, {"ask": 0, "tell": 0}

    def put(self, kind: str, row: Dict[str, Any]) -> None:
        self.file.write(sign(self._key, kind, self._next(kind), row))
        self.file.flush()

    def get(self, kind: str) -> Optional[Dict[str, Any]]:
        """Return what the other side says, None at its end; raise Broken for what is not signed right."""
        line = self.file.readline(LINE_BYTES)
        return verify(self._key, kind, self._next(kind), line) if line else None

    def _next(self, kind: str) -> int:
        self._count[kind] += 1
        return self._count[kind]

    def close(self) -> None:
        with suppress(OSError):
            self.file.close()
        self.sock.close()


class PeerServer:
    """Serves a shelf. Strangers wait at the loop's listener; who has proven the token gets a thread."""

    def __init__(self, loop: Loop, bind: str, token: bytes, instance: str, nodes: int, shelf: Shelf) -> None:
        self._token, self._instance, self._shelf = token, f"{instance}/data", shelf
        sock = open_socket(family_of(bind), (bind, 0))
        self.port = int(sock.getsockname()[1])
        self._guests = threading.BoundedSemaphore(MAX_GUESTS)
        self._listener = Listener(loop, "data", sock, lambda: nodes, self._greet)

    def _greet(self, sock: socket.socket) -> Take:
        greeting = Greeting(self._token, self._instance)
        say(sock, greeting.challenge)
        return lambda line: self._welcome(sock, greeting, line)

    def _welcome(self, sock: socket.socket, greeting: Greeting, line: bytes) -> None:
        welcome, key, _ = greeting.check(line)
        if not self._guests.acquire(blocking=False):
            raise Broken("too many are served already")
        try:
            sock.setblocking(True)
            sock.settimeout(TIMEOUT_S)
            say(sock, welcome)
            threading.Thread(target=self._serve, args=(_Line(sock, key),), daemon=True).start()
        except BaseException:
            self._guests.release()
            raise

    def _serve(self, line: _Line) -> None:
        try:
            while True:
                question = line.get("ask")
                if question is None:
                    return
                self._answer(line, question.get("want"))
        except (OSError, ValueError, Broken):
            # It comes again, if it lives.
            return
        finally:
            line.close()
            self._guests.release()

    def _answer(self, line: _Line, want: Union[str, int, None]) -> None:
        if want == "have":
            bits = self._shelf.have()
            if bits is None:
                line.put("tell", {"later": True})
                return
            line.put("tell", {"size": len(bits), "sha256": hashlib.sha256(bits).hexdigest()})
            line.file.write(bits)
            line.file.flush()
            return
        content = self._shelf.open(want) if isinstance(want, int) else None
        if content is None:
            line.put("tell", {"later": True})
            return
        with content:
            self._send(line, content, self._shelf.is_named_by_digest(int(want or 0)))

    def _send(self, line: _Line, content: BinaryIO, is_named: bool) -> None:
        line.put("tell", {"size": os.fstat(content.fileno()).st_size})
        if is_named:
            line.sock.sendfile(content)
            return
        digest = hashlib.sha256()
        for piece in iter(lambda: content.read(PIECE_BYTES), b""):
            digest.update(piece)
            line.file.write(piece)
        line.put("tell", {"sha256": digest.hexdigest()})

    def close(self) -> None:
        self._listener.close()


class Peer:
    """A connection to another node's shelf."""

    def __init__(self, address: PeerAddress, token: bytes) -> None:
        sock, key, _ = dial((address.host, address.port), token, {}, TIMEOUT_S)
        self._line = _Line(sock, key)

    def have(self) -> Optional[bytes]:
        """Return a bit for each content that it has; None where it does not know yet."""
        answer = self._ask("have")
        if "size" not in answer:
            return None
        bits = b"".join(self._pieces(int(answer["size"])))
        if hashlib.sha256(bits).hexdigest() != answer.get("sha256"):
            raise Broken("it was damaged on the way")
        return bits

    def fetch(self, number: int, size: int, sha256: str, file: IO[bytes], count: Callable[[int], None]) -> str:
        """Write a content to a file and return its SHA-256; raise Broken where the other node gives it not as it is."""
        answer = self._ask(number)
        if answer.get("size") != size:
            raise Broken("it does not have it any more")
        digest = hashlib.sha256()
        for piece in self._pieces(size):
            digest.update(piece)
            write_piece(file, piece)
            count(len(piece))
        if digest.hexdigest() != (sha256 or self._reply().get("sha256")):
            raise Broken("it was damaged on the way")
        end_file(file)
        return digest.hexdigest()

    def _pieces(self, size: int) -> Iterator[bytes]:
        while size:
            try:
                piece = self._line.file.read(min(size, PIECE_BYTES))
            except (OSError, ValueError) as error:
                raise Broken(str(error)) from None
            if not piece:
                raise Broken("the connection ended")
            size -= len(piece)
            yield piece

    def _ask(self, want: Union[str, int]) -> Dict[str, Any]:
        try:
            self._line.put("ask", {"want": want})
        except OSError as error:
            raise Broken(str(error)) from None
        return self._reply()

    def _reply(self) -> Dict[str, Any]:
        try:
            answer = self._line.get("tell")
        except OSError as error:
            raise Broken(str(error)) from None
        if answer is None:
            raise Broken("the connection ended")
        return answer

    def close(self) -> None:
        self._line.close()
