"""Names of images, who the user is to a registry, and tokens: what a registry program of one's own does not ask for."""

from __future__ import annotations

import base64
import io
import json
import threading
import urllib.request
import urllib.response
from collections.abc import Iterator
from http.client import HTTPMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from podwright.bringup.mirror.collect import fetch_image
from podwright.clients import registry
from podwright.clients.registry import (
    ANSWER_BYTES,
    INDEXES,
    MANIFESTS,
    Reference,
    Registry,
    RegistryError,
    digest_of,
    parse,
)
from podwright.clients.registry_logins import IDENTITY, Login, find_login
from podwright.images.layer import prepare
from podwright.spec.problems import Refusal
from tests.fixtures.canned import CannedHandler, answer_of

NAMES = [
    ("localhost:5000/base:1", Reference("localhost:5000", "base", "1")),
    ("localhost/base", Reference("localhost", "base", "latest")),
    ("docker://registry.example/nvidia/pytorch:24.10", Reference("registry.example", "nvidia/pytorch", "24.10")),
    ("registry.example/team/toy:1@sha256:abc", Reference("registry.example", "team/toy", "sha256:abc")),
]


@pytest.mark.parametrize(("name", "parts"), NAMES)
def test_names(name: str, parts: Reference) -> None:
    assert parse(name) == parts


@pytest.mark.parametrize("name", ["debian", "debian:12", "team/toy:1"])
def test_a_name_without_a_registry_is_nobodys(name: str) -> None:
    with pytest.raises(RegistryError, match=r"says no registry: write it like registry\.example/"):
        parse(name)


def auth(user: str, secret: str) -> dict[str, str]:
    return {"auth": base64.b64encode(f"{user}:{secret}".encode()).decode()}


FILES: list[tuple[dict[str, Any], str, Login | None]] = [
    ({}, "registry.example", None),
    ({"auths": {"registry.example": auth("a", "b:c")}}, "registry.example", Login("a", "b:c")),
    ({"auths": {"https://registry.example": auth("a", "b")}}, "registry.example", Login("a", "b")),
    (
        {"auths": {"registry.example": auth("a", "b"), "registry.example/team": auth("c", "d")}},
        "registry.example",
        Login("c", "d"),
    ),
    ({"auths": {"registry.example": {"identitytoken": "t"}}}, "registry.example", Login(IDENTITY, "t")),
    ({"auths": {"other.example": auth("a", "b")}}, "registry.example", None),
    ({"auths": {"registry.example": {"auth": "%%%"}}}, "registry.example", None),
    ({"credHelpers": {"registry.example": "missing"}}, "registry.example", None),
]


@pytest.mark.parametrize(("row", "host", "login"), FILES)
def test_who_the_user_is(
    row: dict[str, Any], host: str, login: Login | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGISTRY_AUTH_FILE", str(tmp_path / "auth.json"))
    (tmp_path / "auth.json").write_text(json.dumps(row))
    assert find_login(host, "team/toy") == login


def test_a_program_that_keeps_secrets_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    helper = tmp_path / "docker-credential-mine"
    helper.write_text('#!/bin/sh\nread host || :\necho "{\\"Username\\": \\"$host\\", \\"Secret\\": \\"s\\"}"\n')
    helper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "none"))
    monkeypatch.delenv("REGISTRY_AUTH_FILE", raising=False)
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    (tmp_path / "config.json").write_text('{"credHelpers": {"registry.example": "mine"}}')
    assert find_login("registry.example", "toy") == Login("registry.example", "s")


def test_a_password_is_in_no_text_about_it() -> None:
    assert "hidden" not in repr(Login("ada", "hidden"))


class Handler(BaseHTTPRequestHandler):
    """A registry that sends its users to a token server, which is the same program."""

    manifest = b'{"schemaVersion": 2}'
    seen: list[tuple[str, str]]

    def do_GET(self) -> None:
        given = self.headers.get("Authorization", "")
        self.seen.append((self.path, given))
        port = self.server.server_address[1]
        if self.path.startswith("/token"):
            known = given == Login("ada", "pw").basic()
            return self._send(200, json.dumps({"token": "good" if known else "poor"}).encode())
        if given == "Bearer good":
            return self._send(200, self.manifest, ("Content-Type", MANIFESTS[0]))
        challenge = f'Bearer realm="http://127.0.0.1:{port}/token",service="reg",scope="repository:toy:pull"'
        return self._send(401, b'{"errors": [{"message": "log in first"}]}', ("WWW-Authenticate", challenge))

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.seen.append((self.path, body))
        self._send(200, json.dumps({"access_token": "good"}).encode())

    def _send(self, status: int, body: bytes, *headers: tuple[str, str]) -> None:
        self.send_response(status)
        for name, value in (*headers, ("Content-Length", str(len(body)))):
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Says nothing."""


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    Handler.seen = []
    made = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    monkeypatch.setenv("REGISTRY_AUTH_FILE", str(tmp_path / "auth.json"))
    yield f"127.0.0.1:{made.server_address[1]}"
    made.shutdown()
    thread.join()
    made.server_close()


def test_a_token_is_fetched_once_and_used(server: str, tmp_path: Path) -> None:
    (tmp_path / "auth.json").write_text(json.dumps({"auths": {server: auth("ada", "pw")}}))
    registry = Registry(server, "toy")
    for _ in range(2):
        found = registry.manifest("1")
        assert found is not None
        assert found.digest == digest_of(Handler.manifest)
    asked = [path.partition("?")[0] for path, _ in Handler.seen]
    assert asked == ["/v2/toy/manifests/1", "/token", "/v2/toy/manifests/1", "/v2/toy/manifests/1"]
    assert Handler.seen[1][0] == "/token?service=reg&scope=repository%3Atoy%3Apull"


def test_a_token_may_be_exchanged_for_another(server: str, tmp_path: Path) -> None:
    (tmp_path / "auth.json").write_text(json.dumps({"auths": {server: {"identitytoken": "mine"}}}))
    assert Registry(server, "toy").manifest("1") is not None
    assert "grant_type=refresh_token&refresh_token=mine" in Handler.seen[1][1]


def test_a_user_who_is_not_logged_in_is_told_so(server: str, tmp_path: Path) -> None:
    (tmp_path / "auth.json").write_text("{}")
    with pytest.raises(RegistryError, match="log in first") as caught:
        Registry(server, "toy").manifest("1")
    assert caught.value.status == 401


def test_bytes_that_are_not_what_they_are_called_are_refused(server: str, tmp_path: Path) -> None:
    (tmp_path / "auth.json").write_text(json.dumps({"auths": {server: auth("ada", "pw")}}))
    with pytest.raises(RegistryError, match="gives other bytes"):
        Registry(server, "toy").manifest("sha256:0")
    with pytest.raises(RegistryError, match="gives other bytes"):
        Registry(server, "toy").blob("sha256:0")


def test_an_answer_without_end_is_cut_off(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "auth.json").write_text(json.dumps({"auths": {server: auth("ada", "pw")}}))
    monkeypatch.setattr(Handler, "manifest", bytes(ANSWER_BYTES + 1))
    with pytest.raises(RegistryError, match="answers with more than 64 MiB"):
        Registry(server, "toy").manifest("1")


def test_no_password_is_sent_in_the_clear() -> None:
    registry = Registry("registry.example", "toy")
    with pytest.raises(RegistryError, match=r"in the clear to auth\.example"):
        registry._token({"realm": "http://auth.example/token"}, Login("ada", "pw"))


class Transport(urllib.request.HTTPSHandler):
    """Answers for registries under any address, and keeps what they were asked."""

    def __init__(self, location: str, status: int) -> None:
        super().__init__()
        self._location, self._status = location, status
        self.seen: list[tuple[str, str, str | None]] = []

    def https_open(self, req: urllib.request.Request) -> Any:
        return self._answer(req)

    http_open = https_open

    def _answer(self, req: urllib.request.Request) -> Any:
        method, given = req.get_method(), req.get_header("Authorization")
        self.seen.append((method, req.full_url, given))
        headers = HTTPMessage()
        status = self._status
        if method == "HEAD":
            status = 404
        elif given is None:
            status = 401
            headers["WWW-Authenticate"] = "Basic"
        headers["Location"] = self._location
        answer = urllib.response.addinfourl(io.BytesIO(b""), headers, req.full_url, status)
        answer.msg = ""
        return answer


@pytest.fixture
def logged_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("REGISTRY_AUTH_FILE", str(tmp_path / "auth.json"))
    (tmp_path / "auth.json").write_text(json.dumps({"auths": {"registry.example": auth("ada", "pw")}}))


IN_THE_CLEAR = r"^registry\.example leads from https to http://registry\.example, which is not encrypted$"


@pytest.mark.usefixtures("logged_in")
def test_a_place_for_an_upload_that_is_not_encrypted_is_refused() -> None:
    transport = Transport("http://registry.example/v2/toy/blobs/uploads/7", 202)
    with pytest.raises(RegistryError, match=IN_THE_CLEAR):
        Registry("registry.example", "toy", transport).put_blob(io.BytesIO(b"code"))
    assert all(url.startswith("https:") for _, url, _ in transport.seen)
    assert [method for method, _, _ in transport.seen] == ["HEAD", "POST", "POST"]


@pytest.mark.usefixtures("logged_in")
def test_a_redirection_that_leaves_https_is_refused() -> None:
    transport = Transport("http://registry.example/elsewhere", 307)
    with pytest.raises(RegistryError, match=IN_THE_CLEAR):
        Registry("registry.example", "toy", transport).blob("sha256:0")
    assert all(url.startswith("https:") for _, url, _ in transport.seen)


@pytest.mark.usefixtures("logged_in")
def test_credentials_stay_with_their_registry() -> None:
    transport = Transport("https://storage.example/put", 202)
    with pytest.raises(RegistryError):
        Registry("registry.example", "toy", transport).put_blob(io.BytesIO(b"code"))
    method, url, given = transport.seen[-1]
    assert (method, url.partition("?")[0], given) == ("PUT", "https://storage.example/put", None)


DOCUMENTS = (
    b"",
    b"[]",
    b"\xff",
    b'{"manifests": 3}',
    b'{"layers": [{}]}',
    b'{"layers": [{"digest": "latest"}]}',
    b"[" * 9000,
)


@pytest.mark.parametrize("document", DOCUMENTS)
@pytest.mark.parametrize("kind", [MANIFESTS[0], INDEXES[0]])
def test_what_is_no_manifest_is_named_in_words_and_leads_to_no_file(
    document: bytes, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def answers(request: urllib.request.Request) -> bytes:
        if "podwright-" in request.full_url:
            return answer_of(b"", status="404 none")
        return answer_of(document, f"Content-Type: {kind}")

    monkeypatch.setattr(registry, "_transport", lambda host, local: CannedHandler(answers))
    said = r"(describes the image in a form that is not known|names a part of the image by what is no digest)$"
    if kind in INDEXES or b"layers" not in document:
        with pytest.raises(RegistryError, match=said):
            prepare("registry.example/toy:1", io.BytesIO(b"code"), "/code.tar")
    with pytest.raises(Refusal, match=said):
        fetch_image("registry.example/toy:1", tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
