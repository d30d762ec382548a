"""A repository of a registry, in the protocol that all registries speak: manifests by tag, blobs by digest."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import ssl
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.message import Message
from io import BufferedIOBase
from pathlib import Path
from urllib.parse import urlencode, urljoin, urlsplit

from podwright.clients.http_client import (
    ErrorAnswer,
    HttpClient,
    TooLarge,
    Unencrypted,
    Unreached,
    check_step,
    is_loopback,
    no_proxy,
    origin_of,
    request_of,
    trusting,
)
from podwright.clients.registry_logins import Login, find_login
from podwright.files.whole import whole_path

TIMEOUT_S = 300.0
"""Of one read or write of a connection, not of a whole upload."""
ANSWER_BYTES = 64 << 20
"""Manifests, configurations and words: layers are sent, and never fetched."""
OCI, DOCKER = "application/vnd.oci.image", "application/vnd.docker.distribution"
INDEXES = (f"{OCI}.index.v1+json", f"{DOCKER}.manifest.list.v2+json")
MANIFESTS = (f"{OCI}.manifest.v1+json", f"{DOCKER}.manifest.v2+json")
CERTIFICATES = ("/etc/containers/certs.d", "/etc/docker/certs.d", "~/.config/containers/certs.d")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
TOKEN = re.compile(r"[\x21-\x7e]+")
ASKED = re.compile(r'(\w+)="([^"]*)"')


@dataclass(frozen=True)
class Reference:
    """The name of an image in its parts; `tag` may be a digest."""

    host: str
    repository: str
    tag: str

    @property
    def place(self) -> str:
        """Return all but the tag."""
        return f"{self.host}/{self.repository}"


class RegistryError(Exception):
    """What a registry refused, or why it cannot be reached (status 0), in words."""

    def __init__(self, status: int, message: str, challenge: str = "") -> None:
        super().__init__(message)
        self.status, self.challenge = status, challenge


def parse(name: str) -> Reference:
    """Return the parts of an image's name; the first is a registry where it looks like a host.

    A name without one is looked for where each machine's own settings say, which are not ours to guess.
    """
    whole, _, digest = name.removeprefix("docker://").partition("@")
    host, _, path = whole.partition("/")
    if not path or not ("." in host or ":" in host or host == "localhost"):
        raise RegistryError(400, f'the name "{name}" says no registry: write it like registry.example/{whole}')
    repository, _, tag = path.partition(":")
    return Reference(host, repository, digest or tag or "latest")


@dataclass(frozen=True)
class Manifest:
    """A manifest as it came, by which its digest is reckoned."""

    raw: bytes = field(repr=False)
    kind: str

    @property
    def digest(self) -> str:
        """Return the digest by which a registry knows it."""
        return digest_of(self.raw)


def digest_of(data: bytes | BufferedIOBase) -> str:
    """Return the digest of these bytes, or of a whole file, as registries write it."""
    if isinstance(data, bytes):
        data = io.BytesIO(data)
    data.seek(0)
    return f"sha256:{hashlib.file_digest(data, 'sha256').hexdigest()}"


@contextmanager
def understood(host: str) -> Iterator[None]:
    """Say it in words where what a registry sent has not the form that manifests and configurations have."""
    try:
        yield
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise RegistryError(0, f"{host} describes the image in a form that is not known") from None


def checked_digest(host: str, digest: object) -> str:
    """Return the digest by which a registry names a part; nothing else may, as its bytes could not be checked."""
    if not isinstance(digest, str) or not DIGEST.fullmatch(digest):
        raise RegistryError(0, f"{host} names a part of the image by what is no digest")
    return digest


class Registry:
    """One repository. A registry on this machine's own loopback needs no certificate; any other must show one."""

    def __init__(self, host: str, repository: str, transport: urllib.request.BaseHandler | None = None) -> None:
        self.host, self.repository = host, repository
        local = is_loopback(host)
        scheme = "http" if local else "https"
        self._root = f"{scheme}://{host}"
        self._http = HttpClient("encrypted", TIMEOUT_S, transport or _transport(host, local))
        self._authorization = ""

    def manifest(self, tag: str) -> Manifest | None:
        """Return a manifest, or None where there is none; one that was asked for by its digest is checked."""
        headers = {"Accept": ", ".join((*MANIFESTS, *INDEXES))}
        try:
            answered, raw = self._ask("GET", f"manifests/{tag}", None, headers)
        except RegistryError as error:
            if error.status == 404:
                return None
            raise
        kind = (answered.get("Content-Type") or "").partition(";")[0].strip()
        manifest = Manifest(raw, kind)
        if tag.startswith("sha256:") and manifest.digest != tag:
            raise RegistryError(0, f"{self.host} gives other bytes for {tag}")
        return manifest

    def blob(self, digest: str) -> bytes:
        """Return a blob, checked by its digest."""
        _, data = self._ask("GET", f"blobs/{digest}", None, {})
        if digest_of(data) != digest:
            raise RegistryError(0, f"{self.host} gives other bytes for {digest}")
        return data

    def save_blob(self, digest: str, file: Path) -> None:
        """Write a blob of any size into a file, which appears only when its digest is right."""
        if file.exists():
            return
        received = hashlib.sha256()
        with whole_path(file) as part, part.open("wb") as stream:
            for chunk in self._chunks(f"blobs/{digest}"):
                received.update(chunk)
                stream.write(chunk)
            if f"sha256:{received.hexdigest()}" != digest:
                raise RegistryError(0, f"{self.host} gives other bytes for {digest}")

    def _chunks(self, path: str) -> Iterator[bytes]:
        """Yield a large answer in chunks; who the user is was told before, or is told now."""
        self._ask("HEAD", path, None, {})
        with (
            self._in_words(),
            self._http.open(request_of(self._url(path), authorization=self._authorization)) as answer,
        ):
            while chunk := answer.read(1 << 20):
                yield chunk

    def put_blob(self, data: BufferedIOBase) -> None:
        """Send a blob, unless the registry has it already."""
        digest = digest_of(data)
        try:
            self._ask("HEAD", f"blobs/{digest}", None, {})
            return
        except RegistryError as error:
            if error.status != 404:
                raise
        answered, _ = self._ask("POST", "blobs/uploads/", b"", {})
        with understood(self.host):
            location = urljoin(self._url(""), answered["Location"])
        separator = "&" if urlsplit(location).query else "?"
        url = f"{location}{separator}{urlencode({'digest': digest})}"
        size = data.seek(0, os.SEEK_END)
        self._ask("PUT", url, data, {"Content-Type": "application/octet-stream", "Content-Length": str(size)})

    def put_manifest(self, tag: str, manifest: Manifest) -> None:
        """Send a manifest; the registry must have all that it names."""
        self._ask("PUT", f"manifests/{tag}", manifest.raw, {"Content-Type": manifest.kind})

    def _url(self, path: str) -> str:
        return urljoin(f"{self._root}/v2/{self.repository}/", path)

    def _ask(
        self, method: str, path: str, body: bytes | BufferedIOBase | None, headers: Mapping[str, str]
    ) -> tuple[Message, bytes]:
        """Ask the registry; tell who the user is once it asks for that, and then only to the registry itself."""
        url = self._url(path)
        with self._in_words():
            check_step(self._root, url)
        same = origin_of(url) == origin_of(self._root)
        for attempt in (1, 2):
            if not isinstance(body, bytes | None):
                body.seek(0)
            authorization = self._authorization if same else ""
            try:
                return self._send(request_of(url, method, body, headers, authorization))
            except RegistryError as error:
                if error.status != 401 or attempt == 2 or not same or not self._log_in(error.challenge):
                    raise
        raise AssertionError("unreachable")

    def _send(self, request: urllib.request.Request) -> tuple[Message, bytes]:
        with self._in_words():
            return self._http.ask(request, ANSWER_BYTES)

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        try:
            yield
        except ErrorAnswer as error:
            raise _error(error) from None
        except Unreached as error:
            raise RegistryError(0, f"{self.host} cannot be reached: {error}") from None
        except TooLarge:
            raise RegistryError(0, f"{self.host} answers with more than {ANSWER_BYTES >> 20} MiB") from None
        except Unencrypted as error:
            raise RegistryError(0, str(error)) from None

    def _log_in(self, challenge: str) -> bool:
        """Take up an authorization that answers the challenge; return whether it was not tried yet."""
        kind, _, rest = challenge.partition(" ")
        login = find_login(self.host, self.repository)
        if kind.lower() == "bearer":
            authorization = f"Bearer {self._token(dict(ASKED.findall(rest)), login)}"
        elif kind.lower() == "basic" and login is not None:
            authorization = login.basic()
        else:
            return False
        before, self._authorization = self._authorization, authorization
        return authorization != before

    def _token(self, challenge: Mapping[str, str], login: Login | None) -> str:
        """Get a token from the server that the registry names.

        A password goes there only over a connection that hides it.
        """
        realm = challenge.get("realm", "")
        host = urlsplit(realm).netloc
        if urlsplit(realm).scheme != "https" and not is_loopback(host):
            raise RegistryError(401, f"{self.host} wants a password sent in the clear to {host or realm}")
        scope = {name: challenge[name] for name in ("service", "scope") if name in challenge}
        if login is not None and login.is_identity:
            form = {**scope, "grant_type": "refresh_token", "refresh_token": login.secret, "client_id": "podwright"}
            request = request_of(realm, "POST", urlencode(form).encode())
        else:
            authorization = login.basic() if login is not None else ""
            request = request_of(f"{realm}?{urlencode(scope)}", authorization=authorization)
        with understood(self.host):
            row = json.loads(self._send(request)[1])
            token = str(row.get("token") or row.get("access_token") or "")
        if not TOKEN.fullmatch(token):
            raise RegistryError(401, f"{host} gives no token that can be sent")
        return token


def _transport(host: str, local: bool) -> urllib.request.BaseHandler:
    """Return how a registry is reached: with the authorities of user and site; the loopback has no proxy before it."""
    if local:
        return no_proxy()
    context = ssl.create_default_context()
    for folder in CERTIFICATES:
        for path in sorted(Path(folder).expanduser().joinpath(host).glob("*.crt")):
            context.load_verify_locations(path)
    return trusting(context)


def _error(error: ErrorAnswer) -> RegistryError:
    try:
        reasons = [str(row.get("message") or row.get("code")) for row in json.loads(error.body)["errors"]]
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        reasons = []
    message = "; ".join(dict.fromkeys(reasons)) or f"it answers {error.status}"
    return RegistryError(error.status, message, error.headers.get("WWW-Authenticate") or "")
