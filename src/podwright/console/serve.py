"""Serving a home: a socket on the loopback, a link that lets in once, and the server until it is ended."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from dataclasses import dataclass

from podwright.launch import Session
from podwright.spec.problems import Refusal, refuse

_MISSING = "the console needs Starlette and uvicorn"
_HINT = "pip install 'podwright[console]'"
BASE = re.compile(r"(/[A-Za-z0-9._~-]+)*/?")


@dataclass(frozen=True)
class ConsoleWords:
    """What a console is asked for, in the words of the command line."""

    listen: str = "127.0.0.1:8080"
    base_path: str = ""


def serve_console(words: ConsoleWords, say: Callable[[str], None]) -> None:
    """Serve the user's home until it is ended; `say` is handed the link, once the server can be reached."""
    host, port = _place(words.listen)
    if BASE.fullmatch(words.base_path) is None:
        raise refuse(f'"{words.base_path}" is no path', "such as /podwright", field="--base-path")
    base = words.base_path.rstrip("/")
    try:
        import uvicorn

        from podwright.console.desk import Desk
        from podwright.console.routes.table import ROUTES
        from podwright.console.web.app import Console
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("podwright"):
            raise
        raise refuse(_MISSING, _HINT) from None
    with _listening(host, port) as listener, Session.open() as session:
        desk = Desk(session, host)
        name = f"[{host}]" if ":" in host else host
        say(f"http://{name}:{listener.getsockname()[1]}{base}/enter?key={desk.people.new_link()}")
        config = uvicorn.Config(
            Console(desk, ROUTES, base, f"podwright-{listener.getsockname()[1]}"),
            log_level="critical",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_graceful_shutdown=2,
        )
        try:
            uvicorn.Server(config).run(sockets=[listener])
        finally:
            desk.close()


def _place(listen: str) -> tuple[str, int]:
    host, _, port = listen.rpartition(":")
    if not host or not port.isdecimal() or not port.isascii() or int(port) > 65535:
        raise refuse(f'"{listen}" is no place', "ADDRESS:PORT, such as 127.0.0.1:8080", field="--listen")
    return host.strip("[]"), int(port)


def _listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(256)
    except OSError as error:
        listener.close()
        raise _taken(host, port, error) from None
    return listener


def _taken(host: str, port: int, error: OSError) -> Refusal:
    reason = (error.strerror or str(error)).lower()
    return refuse(f"cannot listen on {host}:{port}: {reason}", "choose another port; 0 is any", field="--listen")
