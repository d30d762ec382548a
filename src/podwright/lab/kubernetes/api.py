"""A small client of the API server, for the lab alone; standard library only, as a program of the lab uses it too."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Iterator
from contextlib import closing
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

_MANAGER = "podwright-lab"
_APPLY = "application/apply-patch+yaml"
MERGE = "application/merge-patch+json"
_CONFLICT = 409
_TIMEOUT_S = 30.0
_ANSWER_S = 3.0


class ApiError(Exception):
    """An answer that is no success, with its HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Api:
    """An API server as the administrator of a lab sees it."""

    def __init__(self, host: str, port: int, pki: Path) -> None:
        self.host = host
        self.port = port
        self.pki = pki
        self._kept: http.client.HTTPSConnection | None = None

    @cached_property
    def _trust(self) -> ssl.SSLContext:
        trust = ssl.create_default_context(cafile=str(self.pki / "ca.crt"))
        trust.load_cert_chain(self.pki / "admin.crt", self.pki / "admin.key")
        return trust

    def _connect(self, timeout_s: float | None) -> http.client.HTTPSConnection:
        return http.client.HTTPSConnection(self.host, self.port, timeout=timeout_s, context=self._trust)

    def close(self) -> None:
        """Gives up the connection that is kept from one request to the next; another request makes a new one."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def ask(self, method: str, path: str, body: Any = None, kind: str = "application/json") -> Any:
        """Sends one request, and gives the answer's JSON, or its text."""
        data = None if body is None else json.dumps(body).encode()
        try:
            status, headers, text = self._send(method, path, data, kind)
        except (OSError, http.client.HTTPException):
            self.close()
            raise
        if status >= 400:
            raise ApiError(status, f"{method} {path}: {status} {text[:500]}")
        return json.loads(text) if headers.get_content_type() == "application/json" else text

    def _send(self, method: str, path: str, data: bytes | None, kind: str) -> tuple[int, http.client.HTTPMessage, str]:
        self._kept = self._kept or self._connect(_TIMEOUT_S)
        self._kept.request(method, path, body=data, headers={"Content-Type": kind, "Accept": "application/json"})
        answer = self._kept.getresponse()
        return answer.status, answer.headers, answer.read().decode()

    def answers(self, path: str) -> bool:
        """Says whether a path can be read; a server that is just starting may take a request and never answer it."""
        try:
            with closing(self._connect(_ANSWER_S)) as connection:
                connection.request("GET", path)
                return connection.getresponse().status < 400
        except (OSError, http.client.HTTPException):
            return False

    def apply(self, path: str, thing: dict[str, Any]) -> None:
        """Makes an object be as said; `path` is that of its kind."""
        query = urlencode({"fieldManager": _MANAGER, "force": "true"})
        self.ask("PATCH", f"{path}/{thing['metadata']['name']}?{query}", thing, _APPLY)

    def create(self, path: str, thing: dict[str, Any]) -> None:
        """Makes an object; one that is there already stays as it is."""
        try:
            self.ask("POST", path, thing)
        except ApiError as error:
            if error.status != _CONFLICT:
                raise

    def follow(self, path: str) -> Iterator[dict[str, Any]]:
        """Gives every object of a kind as it is and whenever it changes, until the connection ends."""
        listed = self.ask("GET", path)
        yield from listed["items"]
        query = urlencode({"watch": "1", "resourceVersion": listed["metadata"]["resourceVersion"]})
        with closing(self._connect(None)) as connection:
            connection.request("GET", f"{path}?{query}")
            for line in connection.getresponse():
                event = json.loads(line)
                if event["type"] == "ERROR":
                    return
                if event["type"] != "DELETED":
                    yield event["object"]
