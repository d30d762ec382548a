"""Takes messages: JSON over HTTP, from who shows the token; over TLS, or from this machine alone."""

from __future__ import annotations

import http.server
import json
from collections.abc import Callable, Mapping
from typing import Any

from podwright.spec.problems import Refusal
from podwright.telemetry.server import Guard, GuardedServer, is_known

MAX_BYTES = 4 << 20
OnMessage = Callable[[Any], Mapping[str, Any]]


class MessageDesk(GuardedServer):
    """Answers `POST` with what `answer` returns; a Refusal of it is told as one."""

    def __init__(self, place: tuple[str, int], answer: OnMessage, guard: Guard) -> None:
        self.answer = answer
        super().__init__(place, _Sender, guard)


class _Sender(http.server.BaseHTTPRequestHandler):
    server: MessageDesk

    def do_POST(self) -> None:
        """Judge who asks before anything of the message is read."""
        if not is_known(self.headers.get("Authorization", ""), self.server.guard.token):
            return self._answer(401, {"error": "no token, or another one"})
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit() or int(length) > MAX_BYTES:
            return self._answer(413, {"error": f"a message has a length, of {MAX_BYTES} bytes at most"})
        try:
            message = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            return self._answer(400, {"error": "that is no JSON"})
        try:
            said = self.server.answer(message)
        except Refusal as refusal:
            return self._answer(409, {"error": refusal.problems[0].message})
        return self._answer(200, said)

    def _answer(self, code: int, said: Mapping[str, Any]) -> None:
        body = json.dumps(dict(said)).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: what is done stands in the journal."""
