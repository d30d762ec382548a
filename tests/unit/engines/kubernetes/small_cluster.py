"""An API server as small as it can be: it keeps objects, merges what is applied, and knows who may do what."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

from podwright.clients.kubernetes.merge import merged


class SmallCluster(ThreadingHTTPServer):
    """`forbidden` are pairs of verb and resource; `unknown` are API groups that it does not serve."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.objects: dict[str, dict[str, Any]] = {}
        self.forbidden: set[tuple[str, str]] = set()
        self.unknown: set[str] = set()
        self.asked: list[tuple[str, str]] = []
        self.bodies: list[bytes] = []

    @property
    def kubeconfig(self) -> str:
        """A kubeconfig that leads here."""
        row: dict[str, Any] = {"apiVersion": "v1", "kind": "Config", "current-context": "small"}
        row["clusters"] = [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{self.server_address[1]}"}}]
        row["users"] = [{"name": "u", "user": {"token": "abc"}}]
        row["contexts"] = [{"name": "small", "context": {"cluster": "c", "user": "u", "namespace": "home"}}]
        return json.dumps(row)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: SmallCluster

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        self.server.asked.append(("GET", path))
        found = self.server.objects.get(path)
        self._send(200, found) if found else self._send(404, {"message": f"{path} not found"})

    def do_POST(self) -> None:
        """A question about a right, or the start of a build."""
        path, body = urlsplit(self.path).path, self._body()
        if not path.endswith("reviews"):
            self.server.asked.append(("POST", path))
            self.server.bodies.append(body)
            return self._send(201, {"metadata": {"name": "made-1"}})
        asked = json.loads(body)["spec"]["resourceAttributes"]
        allowed = (asked["verb"], asked["resource"]) not in self.server.forbidden
        return self._send(201, {"status": {"allowed": allowed}})

    def do_PATCH(self) -> None:
        split, made = urlsplit(self.path), json.loads(self._body())
        self.server.asked.append(("PATCH", split.path))
        space = made["metadata"].get("namespace")
        if made.get("apiVersion", "").rpartition("/")[0] in self.server.unknown:
            return self._send(404, {"message": "the server could not find the requested resource"})
        if space and f"/api/v1/namespaces/{space}" not in self.server.objects:
            return self._send(404, {"message": f'namespaces "{space}" not found'})
        before = self.server.objects.get(split.path)
        after: dict[str, Any] = merged(before, made) if before else {**made, "status": {}}
        after["metadata"] = {**after["metadata"], "resourceVersion": str(len(self.server.asked))}
        if "dryRun" not in parse_qs(split.query):
            self.server.objects[split.path] = after
        return self._send(200 if before else 201, after)

    def do_DELETE(self) -> None:
        path = urlsplit(self.path).path
        self._body()
        self.server.asked.append(("DELETE", path))
        self._send(200 if self.server.objects.pop(path, None) else 404, {})

    def _body(self) -> bytes:
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _send(self, status: int, row: dict[str, Any]) -> None:
        raw = json.dumps(row).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


@contextmanager
def small_cluster() -> Iterator[SmallCluster]:
    made = SmallCluster()
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield made
    finally:
        made.shutdown()
        thread.join()
        made.server_close()
