"""The API server over plain HTTPS: one answer at a time, a stream of lines, a command or a port inside a container."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from podwright.clients.kubernetes.kubeconfig import Entry
from podwright.clients.kubernetes.names import MANAGER
from podwright.clients.kubernetes.port import socket_of
from podwright.clients.kubernetes.silence import BUDGET_S, MIN_S, Silence
from podwright.clients.kubernetes.websocket import CommandFailed, NotBegun, WebSocket
from podwright.clients.reasons import connection_reason
from podwright.spec.problems import Refusal, refuse

APPLY, STRATEGIC = "application/apply-patch+yaml", "application/strategic-merge-patch+json"
JSON_PATCH = "application/json-patch+json"
METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
GREET_S, READ_S, CHANGE_S = 8.0, 8.0, 30.0
"""Until it greets, and until it has answered a question or made a change."""
EXEC_S = 10.0
"""Until a command in a container has begun: its node may be gone, which the server finds out only now."""
FORBIDDEN = 403
AGAIN = (429, 500, 502, 503, 504)
PAUSES_S = (0.2, 0.5, 1.0, 2.0, 4.0)
"""Between tries of a request that may be made twice: a server that restarts is back within seconds."""
PAGE = 500
UNKNOWN_USER, UNKNOWN = 401, "the cluster does not know who you are"

Query = Mapping[str, str | int | bool]


class ApiError(Exception):
    """What the API server refused, in its own words."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status, self.reason, self.message = status, reason, message


NOT_BEGUN = NotBegun.__name__
"""The reason of an error that says that a command in a container did not even begin."""


class Away(Exception):
    """The API server cannot be reached just now."""


class Api:
    """One cluster, for any number of threads; `requests` counts what was asked, `answered` is told of each answer."""

    def __init__(
        self,
        entry: Entry,
        manager: str = MANAGER,
        pauses_s: Sequence[float] = PAUSES_S,
        budget_s: float = BUDGET_S,
        answered: Callable[[str, str], None] = lambda method, path: None,
    ) -> None:
        self.entry = entry
        self._pauses_s = pauses_s
        self.manager = manager
        self.silence = Silence(budget_s)
        self._answered = answered
        self.requests = 0
        self._idle: list[http.client.HTTPConnection] = []
        self.close = weakref.finalize(self, _close, self._idle)

    # one answer at a time

    def get(self, path: str, **query: str | int | bool) -> dict[str, Any]:
        """Return an object, or one page of a list."""
        return self._json("GET", path, query)

    def find(self, path: str) -> dict[str, Any] | None:
        """Return an object; None where there is none of this name."""
        try:
            return self.get(path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def items(self, path: str, **query: str | int | bool) -> tuple[list[dict[str, Any]], str]:
        """Return all objects of a list, page by page, and the version of the list as a whole."""
        items: list[dict[str, Any]] = []
        follow_up: dict[str, str] = {}
        while True:
            page = self.get(path, limit=PAGE, **follow_up, **query)
            items += page.get("items") or []
            more = page["metadata"].get("continue", "")
            if not more:
                return items, str(page["metadata"].get("resourceVersion", ""))
            follow_up = {"continue": more}

    def apply(self, path: str, manifest: Mapping[str, Any], dry: bool = False) -> dict[str, Any]:
        """Apply server-side: the object is there afterwards as we want it, whether it was or not."""
        query = {"fieldManager": self.manager, "force": "true"}
        if dry:
            query["dryRun"] = "All"
        return self._json("PATCH", path, query, json.dumps(manifest).encode(), APPLY)

    def create(self, path: str, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Create an object; one that is there already is an error."""
        body = json.dumps(manifest).encode()
        return self._json("POST", path, {"fieldManager": self.manager}, body, "application/json")

    def patch(self, path: str, change: bytes, kind: str) -> dict[str, Any]:
        """Change an object; of a strategic patch its metadata alone comes back, as it may be large."""
        return self._json("PATCH", path, {"fieldManager": self.manager}, change, kind)

    def delete(self, path: str, policy: str = "Background") -> None:
        """Delete an object; what is gone already is gone."""
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy}
        try:
            self._json("DELETE", path, {}, json.dumps(options).encode(), "application/json")
        except ApiError as error:
            if error.status != 404:
                raise

    def delete_all(self, path: str, selector: str, policy: str = "Background") -> None:
        """Delete all objects of a kind that a selector names, in one request."""
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy}
        self._json("DELETE", path, {"labelSelector": selector}, json.dumps(options).encode(), "application/json")

    def text(self, path: str, **query: str | int | bool) -> bytes:
        """Return an answer that is no JSON, such as a log."""
        return self._answer("GET", path, query, None, "")

    def _json(self, method: str, path: str, query: Query, body: bytes | None = None, kind: str = "") -> dict[str, Any]:
        data: dict[str, Any] = json.loads(self._answer(method, path, query, body, kind) or b"{}")
        return data

    def _answer(self, method: str, path: str, query: Query, body: bytes | None, kind: str) -> bytes:
        """Return the answer; what may be asked twice is asked again while the server is away, a creation is not.

        A review is a question, though it is asked as if it were made.
        """
        if self.silence.rests():
            raise self._away("it did not answer a moment ago")
        for pause_s in (*self._pauses_s, None):
            last = pause_s is None or (method == "POST" and not path.endswith("reviews"))
            asked_at = time.monotonic()
            try:
                status, data = self._send(method, path, query, body, kind)
            except (OSError, http.client.HTTPException) as error:
                self.silence.begin(asked_at)
                if last or self._is_in_vain(error, pause_s):
                    raise self._away(connection_reason(error)) from None
            else:
                if status == UNKNOWN_USER and self.entry.forget():
                    continue
                if status < 400 or not self._may_pass(status, method):
                    self.silence.end()
                    return _checked(status, data)
                self.silence.begin(asked_at)
                if last or self.silence.left_s() < (pause_s or 0.0):
                    raise self._not_ready(status, data)
            time.sleep(pause_s or 0.0)
        raise AssertionError("unreachable")

    def _is_in_vain(self, error: Exception, pause_s: float | None) -> bool:
        """Return whether nothing would be won by another try: nobody comes to trust a certificate by waiting."""
        return isinstance(error, ssl.SSLCertVerificationError) or self.silence.left_s() < (pause_s or 0.0)

    def _away(self, why: str) -> Away:
        return Away(f"{self.entry.server} cannot be reached: {why}")

    def _not_ready(self, status: int, data: bytes) -> ApiError | Away:
        if status == FORBIDDEN and self._knows_nobody():
            return self._away("it is starting")
        return _error(status, data)

    def _may_pass(self, status: int, method: str) -> bool:
        """Return whether an answer may be another a moment later.

        A server that has just come back may not have read the rights of all users yet.
        """
        if status == FORBIDDEN:
            return self.silence.is_on or self._knows_nobody()
        return status in AGAIN and (status != 500 or method == "GET")

    def _knows_nobody(self) -> bool:
        """Return whether a server has just begun: then it forbids even what everybody may ask."""
        try:
            return self._send("GET", "/version", {}, None, "")[0] == FORBIDDEN
        except (OSError, http.client.HTTPException):
            return True

    def _send(self, method: str, path: str, query: Query, body: bytes | None, kind: str) -> tuple[int, bytes]:
        """Send on a connection that was used before, where there is one; where one is broken, all are: none is kept."""
        self.requests += 1
        headers = {"Accept": "application/json", **self.entry.headers()}
        if kind.startswith(STRATEGIC):
            headers["Accept"] = METADATA
        if kind:
            headers["Content-Type"] = kind
        connection = self._idle_line() or self._connect()
        try:
            connection.sock.settimeout(READ_S if method == "GET" else CHANGE_S)
            connection.request(method, _target(self.entry.server, path, query), body, headers)
            response = connection.getresponse()
            data = response.read()
        except BaseException:
            connection.close()
            while (broken := self._idle_line()) is not None:
                broken.close()
            raise
        self._idle.append(connection)
        self._answered(method, path)
        return response.status, data

    def _idle_line(self) -> http.client.HTTPConnection | None:
        """Return a connection that nobody uses; another thread may take the last one just now."""
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _connect(self) -> http.client.HTTPConnection:
        """Connect; a server that does not even greet is away sooner than one that takes its time to answer."""
        connection = _connection(self.entry, min(GREET_S, max(MIN_S, self.silence.left_s())))
        try:
            connection.connect()
        except BaseException:
            connection.close()
            raise
        return connection

    # streams

    @contextmanager
    def lines(self, path: str, timeout_s: float, **query: str | int | bool) -> Iterator[Iterator[bytes]]:
        """Yield the lines of an answer that goes on."""
        with self._own_line() as connection:
            connection.sock.settimeout(timeout_s)
            headers = {"Accept": "application/json", **self.entry.headers()}
            connection.request("GET", _target(self.entry.server, path, query), None, headers)
            response = connection.getresponse()
            if response.status >= 400:
                raise _error(response.status, response.read())
            yield iter(response.readline, b"")

    def run(self, pod_path: str, container: str, command: Sequence[str], given: bytes, timeout_s: float) -> bytes:
        """Return what a command in a running container prints when it is given this; one that fails is an error."""
        streams = [("stdin", "true"), ("stdout", "true"), ("stderr", "true")]
        query = urlencode([("container", container), *streams, *(("command", word) for word in command)])
        target = _target(self.entry.server, f"{pod_path}/exec", {}) + f"?{query}"
        with self._own_line() as connection:
            assert isinstance(connection.sock, socket.socket)
            try:
                connection.sock.settimeout(EXEC_S)
                command_line = WebSocket(connection.sock, target, self.entry.headers())
                connection.sock.settimeout(timeout_s)
                return command_line.exchange(given)
            except CommandFailed as error:
                raise ApiError(400, type(error).__name__, str(error)) from None

    def port(self, pod_path: str, port: int) -> socket.socket:
        """Return a connection to a port of a running Kubernetes pod, as its own containers reach it."""
        target = _target(self.entry.server, f"{pod_path}/portforward", {"ports": port})
        with ExitStack() as stack:
            connection = stack.enter_context(self._own_line())
            assert isinstance(connection.sock, socket.socket)
            try:
                connection.sock.settimeout(EXEC_S)
                line = WebSocket(connection.sock, target, self.entry.headers())
            except CommandFailed as error:
                raise ApiError(400, type(error).__name__, str(error)) from None
            connection.sock.settimeout(None)
            return socket_of(line, connection.sock, stack.pop_all())

    @contextmanager
    def _own_line(self) -> Iterator[http.client.HTTPConnection]:
        """Open a connection for one thing only, which may take long."""
        if self.silence.rests():
            raise self._away("it did not answer a moment ago")
        self.requests += 1
        asked_at = time.monotonic()
        try:
            connection = self._connect()
        except (OSError, http.client.HTTPException) as error:
            self.silence.begin(asked_at)
            raise self._away(connection_reason(error)) from None
        self.silence.end()
        try:
            yield connection
        except (OSError, http.client.HTTPException) as error:
            raise self._away(connection_reason(error)) from None
        finally:
            connection.close()


def _connection(entry: Entry, greet_s: float) -> http.client.HTTPConnection:
    server = urlsplit(entry.server)
    host, port = server.hostname or "", server.port
    if server.scheme == "http":
        return http.client.HTTPConnection(host, port, timeout=greet_s)
    proxy = entry.cluster.get("proxy-url")
    if not proxy:
        return http.client.HTTPSConnection(host, port or 443, timeout=greet_s, context=entry.tls)
    through = urlsplit(str(proxy))
    tunnel = http.client.HTTPSConnection(
        through.hostname or "", through.port or 3128, timeout=greet_s, context=entry.tls
    )
    tunnel.set_tunnel(host, port or 443)
    return tunnel


def _close(connections: list[http.client.HTTPConnection]) -> None:
    for connection in connections:
        connection.close()


def _target(server: str, path: str, query: Query) -> str:
    base = urlsplit(server).path.rstrip("/")
    text = urlencode({name: _spelled(value) for name, value in query.items()})
    if not text:
        return base + quote(path)
    return f"{base}{quote(path)}?{text}"


def _spelled(value: str | int | bool) -> str:
    """Return a value as the API server spells it: `true`, not `True`."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value)


def _checked(status: int, data: bytes) -> bytes:
    if status >= 400:
        raise _error(status, data)
    return data


def _error(status: int, data: bytes) -> ApiError:
    try:
        row = json.loads(data)
        return ApiError(status, str(row.get("reason", "")), str(row.get("message", "")))
    except (ValueError, AttributeError):
        return ApiError(status, "", data.decode("utf-8", "replace").strip()[:200] or f"status {status}")


@contextmanager
def asked_to(what: str) -> Iterator[None]:
    """Turn what the server refuses within the block, or that it is away, into a refusal: see `refusal_of`."""
    try:
        yield
    except (Away, ApiError) as error:
        raise refusal_of(error, what) from None


def refusal_of(error: ApiError | Away, what: str) -> Refusal:
    """Return an error of the server as a refusal, with the exit code that belongs to it."""
    if isinstance(error, Away):
        return refuse(str(error), hint="does `kubectl version` work here?", exit_code=3)
    if error.status == UNKNOWN_USER:
        return refuse(UNKNOWN, hint="log in to it again", exit_code=3)
    at_fault = 3 if error.status >= 500 else 2
    return refuse(f"Kubernetes did not {what}: {error.message}", exit_code=at_fault)
