"""Puts images into a registry, in its own protocol."""

from __future__ import annotations

import http.client
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

from podwright.lab.kubernetes.image import MANIFEST, Image, digest_of
from podwright.spec.problems import refuse

_TIMEOUT_S = 60.0


class Registry:
    """A registry on this machine's loopback."""

    def __init__(self, port: int) -> None:
        self.port = port

    def answers(self) -> bool:
        """Says whether it takes requests."""
        try:
            return self._ask("GET", "/v2/")[0] == 200
        except (OSError, http.client.HTTPException):
            return False

    def put(self, name: str, image: Image) -> None:
        """Stores an image under a name with a tag; what is there already is not sent again."""
        repository, _, tag = name.partition(":")
        for digest, content in ((image.layer.digest, image.layer.file), (digest_of(image.config), image.config)):
            self._put_blob(repository, digest, content)
        status, _ = self._ask("PUT", f"/v2/{repository}/manifests/{tag}", image.manifest(), MANIFEST)
        self._check(status, name)

    def _put_blob(self, repository: str, digest: str, content: bytes | Path) -> None:
        if self._ask("HEAD", f"/v2/{repository}/blobs/{digest}")[0] == 200:
            return
        status, headers = self._ask("POST", f"/v2/{repository}/blobs/uploads/")
        self._check(status, repository)
        place = urlsplit(headers["Location"])
        target = f"{place.path}?{place.query}&{urlencode({'digest': digest})}"
        if isinstance(content, bytes):
            status, _ = self._ask("PUT", target, content, "application/octet-stream")
        else:
            with content.open("rb") as file:
                status, _ = self._ask("PUT", target, file, "application/octet-stream", content.stat().st_size)
        self._check(status, repository)

    def _ask(
        self, method: str, path: str, body: Any = None, kind: str = "", size: int | None = None
    ) -> tuple[int, http.client.HTTPMessage]:
        headers = {"Content-Type": kind} if kind else {}
        if body is None or size is not None:
            headers["Content-Length"] = str(size or 0)
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=_TIMEOUT_S)
        try:
            connection.request(method, path, body=body, headers=headers)
            answer = connection.getresponse()
            answer.read()
            return answer.status, answer.headers
        finally:
            connection.close()

    def _check(self, status: int, what: str) -> None:
        if status >= 300:
            raise refuse(f"the lab's registry does not take {what}: it answers {status}", hint="see its log in the lab")
