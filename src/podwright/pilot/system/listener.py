"""A listening socket, and those who came in by it and have not said yet who they are; no thread waits for them."""

from __future__ import annotations

import errno
import resource
import socket
from contextlib import suppress
from typing import Any, Callable, Dict, Optional

from .loop import Loop

HELLO_S = 5.0
"""How long somebody may take to say who it is."""
HELLO_BYTES = 8192
SPARE = (16, 256)
"""Places beyond those that are expected: a quarter of the files this process may have, within these bounds."""
REST_S, NO_FILES_REST_S = 0.02, 0.1
"""A door that had to show somebody out rests: so a flood costs little time, and nobody is shown out before a moment is
over, in which a node has said who it is. Without files it rests longer."""
NO_ROOM = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)

Take = Callable[[bytes], None]
"""Takes the one line by which somebody says who it is."""


class Guest:
    """Somebody who came in."""

    def __init__(self, sock: socket.socket, origin: str, take: Take, until: float) -> None:
        self.sock, self.origin, self.take, self.until = sock, origin, take, until
        self.line = b""


class Listener:
    """Lets in as many as are expected and some more, and of one address fewer than of all together.

    Who comes to a full door takes the place of the oldest of its own address, or of the address with the most guests:
    strangers who say nothing crowd out themselves. `greet` may speak first, and returns who takes the line that comes;
    either may raise anything, which shows the guest out.
    """

    def __init__(
        self,
        loop: Loop,
        name: str,
        sock: socket.socket,
        expected: Callable[[], int],
        greet: Callable[[socket.socket], Take],
        files: Optional[int] = None,
    ) -> None:
        self._loop, self._name, self._socket = loop, name, sock
        self._expected, self._greet = expected, greet
        self._guests: Dict[Guest, None] = {}
        """In the order in which they came."""
        self._counts: Dict[str, int] = {}
        files = files or resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        self._spare = max(SPARE[0], min(SPARE[1], files // 4))
        self.shown_out = 0
        self._open()

    def _open(self) -> None:
        self._loop.stop(f"{self._name} rests")
        self._loop.watch(self._socket, self._accept)

    def _pause(self, seconds: float) -> None:
        self._loop.forget(self._socket)
        self._loop.every(f"{self._name} rests", seconds, self._open)

    def _accept(self) -> None:
        """Let in who waits, some at a time: nobody who came in by this call is shown out by it."""
        before, expected = self.shown_out, self._expected()
        for _ in range(self._spare // 4):
            try:
                sock, address = self._socket.accept()
            except OSError as error:
                if error.errno in NO_ROOM:
                    self._show_out_oldest()
                    self._pause(NO_FILES_REST_S)
                    return
                break
            origin = address[0] if isinstance(address, tuple) else ""
            self._make_room(origin, expected)
            self._let_in(sock, origin)
        if self.shown_out > before:
            self._pause(REST_S)

    def _let_in(self, sock: socket.socket, origin: str) -> None:
        sock.setblocking(False)
        try:
            take = self._greet(sock)
        except Exception:  # it may be gone already, or not be let in at all
            sock.close()
            return
        if not self._guests:
            self._loop.every(f"{self._name} waits", HELLO_S / 10, self._sweep)
        guest = Guest(sock, origin, take, self._loop.now() + HELLO_S)
        self._guests[guest] = None
        self._counts[origin] = self._counts.get(origin, 0) + 1
        self._loop.watch(sock, lambda: self._hear(guest))

    def _make_room(self, origin: str, expected: int) -> None:
        if self._counts.get(origin, 0) >= expected + self._spare // 2:
            self._show_out_oldest(origin)
        elif len(self._guests) >= expected + self._spare:
            self._show_out_oldest(max(self._counts, key=lambda other: self._counts[other]))

    def _show_out_oldest(self, origin: Optional[str] = None) -> None:
        oldest = next((guest for guest in self._guests if origin in (None, guest.origin)), None)
        if oldest is not None:
            self.shown_out += 1
            self._dismiss(oldest)
            oldest.sock.close()

    def _dismiss(self, guest: Guest) -> None:
        """Know somebody no longer as a guest, whatever becomes of the connection."""
        del self._guests[guest]
        self._counts[guest.origin] -= 1
        if not self._counts[guest.origin]:
            del self._counts[guest.origin]
        self._loop.forget(guest.sock)

    def _sweep(self) -> None:
        late = [guest for guest in self._guests if guest.until <= self._loop.now()]
        for guest in late:
            self._dismiss(guest)
            guest.sock.close()
        if not self._guests:
            self._loop.stop(f"{self._name} waits")

    def _hear(self, guest: Guest) -> None:
        """Read what a guest says; nothing may follow its line before it has an answer."""
        try:
            piece = guest.sock.recv(HELLO_BYTES)
        except BlockingIOError:
            return
        except OSError:
            piece = b""
        guest.line += piece
        if piece and len(guest.line) < HELLO_BYTES and not guest.line.endswith(b"\n"):
            return
        self._dismiss(guest)
        try:
            if not guest.line.endswith(b"\n"):
                raise ValueError("it did not say who it is")
            guest.take(guest.line)
        except Exception:  # a stranger may say anything
            guest.sock.close()

    def close(self) -> None:
        """Close the socket, and show out whoever is still here."""
        for guest in list(self._guests):
            self._dismiss(guest)
            guest.sock.close()
        for timer in ("rests", "waits"):
            self._loop.stop(f"{self._name} {timer}")
        self._loop.forget(self._socket)
        self._socket.close()


def open_socket(family: int, address: Any) -> socket.socket:
    """Return a socket that listens at an address, and waits for nobody."""
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(1024)
        sock.setblocking(False)
    except OSError:
        sock.close()
        raise
    return sock


def raise_file_limit() -> None:
    """Let this process have as many files as it may: a leader has one for every node."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        with suppress(OSError, ValueError):  # it goes on with what it has
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
