"""Ports of a run that is at work, brought to this machine's loopback: each connection is carried by itself.

So a server that is not up yet, or a node that was replaced meanwhile, ends one connection and not the forwarding.
"""

from __future__ import annotations

import errno
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import dataclass

from podwright.launch.run import Run
from podwright.launch.session import Session
from podwright.runs import Record, RunFolder
from podwright.spec.problems import Refusal, refuse

LOOPBACK = "127.0.0.1"
CHUNK_BYTES = 1 << 16
SILENT = "port {port} of node {node} closed a connection without a word: does a program listen there?"


LOOK_EVERY_S = 2.0
HERE = "local"
"""The engine whose ports are this machine's own."""


@dataclass(frozen=True)
class PortRequest:
    """A port of a node of a run, and the one of this machine that is to lead there: 0 is any free one.

    With a `route` others reach it instead, at an address of the pod's.
    """

    run: RunFolder
    node: int
    here: int
    there: int
    route: bool = False

    @property
    def is_here(self) -> bool:
        """Return whether the port is this machine's own already."""
        return not self.route and self.run.asked.engine == HERE and self.here == self.there


@contextmanager
def open_port(session: Session, request: PortRequest, say: Callable[[str], None]) -> Iterator[str]:
    """Keep the port open, and give its address; `say` is told why a connection did not come about."""
    run, node, there = request.run, request.node, request.there
    if request.route:
        with expose(session, run, node, there) as url:
            yield url
    elif request.is_here:
        yield f"http://{LOOPBACK}:{there}"
    else:
        with closing(PortForward(session, run, node, there, say)) as forward:
            yield forward.open(request.here)


def until_it_ends(session: Session, run: Run) -> Record:
    """Wait until the run has ended; a target that is silent for a while has ended nothing."""
    while not (record := run.record()).is_final:
        session.clock.sleep(LOOK_EVERY_S)
    return record


class PortForward:
    """A port of this machine that is a port of a node of a run, while it is open.

    `say` is told in a sentence why a connection did not come about; the same sentence once only.
    """

    def __init__(self, session: Session, run: RunFolder, node: int, port: int, say: Callable[[str], None]) -> None:
        self._session, self._run = session, run
        self._node, self._port, self._say = node, port, say
        self._said: set[str] = set()
        self._listener: socket.socket | None = None

    def open(self, here: int) -> str:
        """Listen on a port of the loopback, or on any free one (0); return the address. Others cannot reach it."""
        try:
            self._listener = socket.create_server((LOOPBACK, here))
        except OSError as error:
            raise _refusal(here, error) from None
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()
        return f"http://{LOOPBACK}:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        """Take no more connections; those that are open end with this process."""
        if self._listener is not None:
            # Closing alone would leave a thread that waits in accept.
            with suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):  # it was closed
            while True:
                client, _ = listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with closing(client):
            try:
                server = self._connect()
            except Refusal as refusal:
                self._say_once(refusal.problems[0].message)
                return
            except OSError as error:
                self._say_once(f"port {self._port} of node {self._node}: {error.strerror or error}")
                return
            with closing(server):
                self._carry(client, server)

    def _carry(self, client: socket.socket, server: socket.socket) -> None:
        """Carry both directions until the server has ended; a client that has may still want to hear its answer."""
        asked = threading.Event()

        def ask() -> None:
            _pump(client, server)
            asked.set()
            _end(server)

        back = threading.Thread(target=ask, daemon=True)
        back.start()
        # A browser opens connections that it closes again unused: those ended well.
        if not _pump(server, client) and not asked.is_set():
            self._say_once(SILENT.format(port=self._port, node=self._node))
        _end(client)
        with suppress(OSError):
            client.shutdown(socket.SHUT_RD)
        back.join()

    def _connect(self) -> socket.socket:
        engine = self._session.engine_of(self._run)
        with self._session.using(engine):
            return engine.connect(self._run, self._node, self._port)

    def _say_once(self, sentence: str) -> None:
        if sentence not in self._said:
            self._said.add(sentence)
            self._say(sentence)


def expose(session: Session, run: RunFolder, node: int, port: int) -> AbstractContextManager[str]:
    """Let others reach a port of a node, at the address that comes; refuse where the target has no way to."""
    engine = session.engine_of(run)
    reason = engine.unsupported().get("route")
    if reason:
        raise refuse(reason, field="--route")
    return engine.expose(run, node, port)


def _pump(source: socket.socket, sink: socket.socket) -> int:
    """Copy until the source ends; return the bytes."""
    carried = 0
    with suppress(OSError):
        while chunk := source.recv(CHUNK_BYTES):
            carried += len(chunk)
            sink.sendall(chunk)
    return carried


def _end(sink: socket.socket) -> None:
    """Tell the sink that nothing more comes; it may still have something to say."""
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def _refusal(here: int, error: OSError) -> Refusal:
    reason = str(error.strerror or error)
    if error.errno == errno.EADDRINUSE:
        reason = "another program has it"
    hint = "name another one before it, such as 8006:6006, or 0:6006 for one that is free"
    return refuse(f"port {here} of this machine cannot be taken: {reason}", hint=hint, field="PORT")
