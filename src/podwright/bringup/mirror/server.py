"""Serves an archive: packages as apt reads them, wheels as pip does, images as registries' clients do. Reads only."""

from __future__ import annotations

import json
import posixpath
import re
import ssl
import tarfile
import tempfile
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote

from podwright.bringup.mirror.archive import ArchiveIndex, blob_path, is_small_blob, read_index
from podwright.bringup.mirror.collect import PACKAGES
from podwright.bringup.mirror.wheels import PYTHON, pages
from podwright.clients.registry import parse

_IMAGE = re.compile(r"/v2/(?P<name>[a-z0-9._/-]+)/(?P<kind>manifests|blobs)/(?P<reference>[A-Za-z0-9._:-]+)", re.ASCII)
_FOLDERS = (f"{PACKAGES}/", f"{PYTHON}/")
_MANIFEST = "application/vnd.oci.image.manifest.v1+json"


@dataclass(frozen=True)
class ServerCertificate:
    """Who a server is, by the pod's own authority."""

    certificate: str
    key: str = field(repr=False)

    def context(self) -> ssl.SSLContext:
        """Return what a socket is wrapped with."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.TemporaryDirectory(prefix="podwright-tls-") as place:
            file = Path(place) / "pair"
            file.write_text(self.certificate + self.key)
            context.load_cert_chain(file)
        return context


class ArchiveServer(ThreadingHTTPServer):
    """Answers from one archive, which it never unpacks: each file is read where it lies."""

    daemon_threads = True

    def __init__(self, file: Path, address: str, port: int, certificate: ServerCertificate | None = None) -> None:
        self.file = file
        with tarfile.open(file, "r:") as archive:
            self.index: ArchiveIndex = read_index(archive, file.name).index
            self.places = {member.name: (member.offset_data, member.size) for member in archive.getmembers()}
        self.pages = pages(self.index.files)
        super().__init__((address, port), _ArchiveRequest)
        if certificate is not None:
            # Each connection greets in its own thread: one that says nothing holds up nobody.
            self.socket = certificate.context().wrap_socket(
                self.socket, server_side=True, do_handshake_on_connect=False
            )

    def handle_error(self, request: object, client_address: object) -> None:
        """Let whoever does not trust this server, or went away, do so without a trace on the screen."""

    def digest_of(self, name: str, reference: str) -> str | None:
        """Return the digest that a name and a tag stand for; a digest stands for itself."""
        if reference.startswith("sha256:"):
            return reference
        for image, digest in self.index.images.items():
            place = parse(image)
            if (place.repository, place.tag) == (name, reference):
                return digest
        return None


class _ArchiveRequest(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60
    server: ArchiveServer

    def do_GET(self) -> None:
        """Send a file, or say that there is none."""
        if self.path in ("/v2", "/v2/"):
            return self._send_bytes(b"{}", "application/json")
        if self.path in self.server.pages:
            return self._send_bytes(self.server.pages[self.path], "text/html; charset=utf-8")
        image = _IMAGE.fullmatch(self.path)
        if image is None:
            # apt asks for `packages/./NAME`. What is outside of the folder is in no list of places.
            name = posixpath.normpath(unquote(self.path)).removeprefix("/")
            return self._send_member(name if name.startswith(_FOLDERS) else "", "application/octet-stream")
        digest = self.server.digest_of(image["name"], image["reference"])
        kind = "application/octet-stream"
        if image["kind"] == "manifests" and digest:
            kind = self._kind_of(digest)
        return self._send_member(blob_path(digest or ""), kind, digest)

    do_HEAD = do_GET

    def _kind_of(self, digest: str) -> str:
        path = blob_path(digest)
        place = self.server.places.get(path)
        if place is None or not is_small_blob(path, place[1]):
            return _MANIFEST
        with self.server.file.open("rb") as stream:
            stream.seek(place[0])
            try:
                return str(json.loads(stream.read(place[1]))["mediaType"])
            except (ValueError, KeyError, TypeError):
                return _MANIFEST

    def _send_member(self, name: str, kind: str, digest: str | None = None) -> None:
        place = self.server.places.get(name)
        if place is None:
            return self.send_error(404)
        offset, size = place
        self._begin(size, kind, digest)
        if self.command == "GET":
            with self.server.file.open("rb") as stream:
                stream.seek(offset)
                _copy(stream, self.wfile, size)
        return None

    def _send_bytes(self, content: bytes, kind: str) -> None:
        self._begin(len(content), kind, None)
        if self.command == "GET":
            self.wfile.write(content)

    def _begin(self, size: int, kind: str, digest: str | None) -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(size))
        if digest:
            self.send_header("Docker-Content-Digest", digest)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Keep quiet: hosts ask for thousands of files."""


def _copy(source: IO[bytes], target: Any, size: int) -> None:
    left = size
    while left > 0:
        piece = source.read(min(left, 1 << 20))
        if not piece:
            return
        target.write(piece)
        left -= len(piece)
