"""A repository of a registry, in the protocol that all registries speak: manifests by tag, blobs by digest."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.client import HTTPException, HTTPMessage
from io import BufferedIOBase
from ipaddress import ip_address
from pathlib import Path
from typing import IO
from urllib.parse import urlencode, urljoin, urlsplit

from podwright.clients.reasons import connection_reason
from podwright.clients.registry_logins import Login, find_login

TIMEOUT_S = 300.0
"""Of one read or write of a connection, not of a whole upload."""
ANSWER_BYTES, ERROR_BYTES = 64 << 20, 1 << 20
"""Manifests, configurations and words: layers are sent, and never fetched."""
OCI, DOCKER = "application/vnd.oci.image", "application/vnd.docker.distribution"
INDEXES = (f"{OCI}.index.v1+json", f"{DOCKER}.manifest.list.v2+json")
MANIFESTS = (f"{OCI}.manifest.v1+json", f"{DOCKER}.manifest.v2+json")
CERTIFICATES = ("/etc/containers/certs.d", "/etc/docker/certs.d", "~/.config/containers/certs.d")
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


class Registry:
    """One repository. A registry on this machine's own loopback needs no certificate; any other must show one."""

    def __init__(self, host: str, repository: str, transport: urllib.request.BaseHandler | None = None) -> None:
        self.host, self.repository = host, repository
        local = is_loopback(host)
        scheme = "http" if local else "https"
        self._root = f"{scheme}://{host}"
        self._opener = urllib.request.build_opener(transport or _transport(host, local), _StayEncrypted())
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
        reckoned = hashlib.sha256()
        unfinished = file.with_name(f"{file.name}.unfinished")
        with unfinished.open("wb") as stream:
            for piece in self._pieces(f"blobs/{digest}"):
                reckoned.update(piece)
                stream.write(piece)
        if f"sha256:{reckoned.hexdigest()}" != digest:
            unfinished.unlink()
            raise RegistryError(0, f"{self.host} gives other bytes for {digest}")
        unfinished.rename(file)

    def _pieces(self, path: str) -> Iterator[bytes]:
        """Yield a large answer piece by piece; who the user is was told before, or is told now."""
        self._ask("HEAD", path, None, {})
        url = self._url(path)
        request = urllib.request.Request(url)
        if self._authorization:
            request.add_unredirected_header("Authorization", self._authorization)
        try:
            with self._opener.open(request, timeout=TIMEOUT_S) as response:
                while piece := response.read(1 << 20):
                    yield piece
        except urllib.error.HTTPError as error:
            with error:
                raise _error(error) from None
        except (OSError, HTTPException) as error:
            raise RegistryError(0, f"{self.host} cannot be reached: {connection_reason(error)}") from None

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
        place = urljoin(self._url(""), answered["Location"])
        separator = "&" if urlsplit(place).query else "?"
        url = f"{place}{separator}{urlencode({'digest': digest})}"
        size = data.seek(0, os.SEEK_END)
        self._ask("PUT", url, data, {"Content-Type": "application/octet-stream", "Content-Length": str(size)})

    def put_manifest(self, tag: str, manifest: Manifest) -> None:
        """Send a manifest; the registry must have all that it names."""
        self._ask("PUT", f"manifests/{tag}", manifest.raw, {"Content-Type": manifest.kind})

    def _url(self, path: str) -> str:
        return urljoin(f"{self._root}/v2/{self.repository}/", path)

    def _ask(
        self, method: str, path: str, body: bytes | BufferedIOBase | None, headers: Mapping[str, str]
    ) -> tuple[HTTPMessage, bytes]:
        """Ask the registry; tell who the user is once it asks for that, and then only to the registry itself."""
        url = self._url(path)
        _check_step(self._root, url)
        same = _origin(url) == _origin(self._root)
        for attempt in (1, 2):
            if not isinstance(body, bytes | None):
                body.seek(0)
            request = urllib.request.Request(url, body, dict(headers), method=method)
            if self._authorization and same:
                request.add_unredirected_header("Authorization", self._authorization)
            try:
                return self._send(request)
            except RegistryError as error:
                if error.status != 401 or attempt == 2 or not same or not self._log_in(error.challenge):
                    raise
        raise AssertionError("unreachable")

    def _send(self, request: urllib.request.Request) -> tuple[HTTPMessage, bytes]:
        try:
            with self._opener.open(request, timeout=TIMEOUT_S) as response:
                answer = response.read(ANSWER_BYTES + 1)
                if len(answer) > ANSWER_BYTES:
                    raise RegistryError(0, f"{self.host} answers with more than {ANSWER_BYTES >> 20} MiB")
                return response.headers, answer
        except urllib.error.HTTPError as error:
            with error:
                raise _error(error) from None
        except (OSError, HTTPException) as error:
            reason = getattr(error, "reason", None) or error
            raise RegistryError(0, f"{self.host} cannot be reached: {connection_reason(reason)}") from None

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

    def _token(self, asked: Mapping[str, str], login: Login | None) -> str:
        """Get a token from the server that the registry names.

        A password goes there only over a connection that hides it.
        """
        realm = asked.get("realm", "")
        host = urlsplit(realm).netloc
        if urlsplit(realm).scheme != "https" and not is_loopback(host):
            raise RegistryError(401, f"{self.host} wants a password sent in the clear to {host or realm}")
        wanted = {name: asked[name] for name in ("service", "scope") if name in asked}
        if login is not None and login.is_identity:
            form = {**wanted, "grant_type": "refresh_token", "refresh_token": login.secret, "client_id": "podwright"}
            request = urllib.request.Request(realm, urlencode(form).encode())
        else:
            request = urllib.request.Request(f"{realm}?{urlencode(wanted)}")
            if login is not None:
                request.add_unredirected_header("Authorization", login.basic())
        try:
            row = json.loads(self._send(request)[1])
        except ValueError:
            row = {}
        return str(row.get("token") or row.get("access_token") or "")


def is_loopback(host: str) -> bool:
    """Return whether a host, with its port or without, is this machine itself."""
    name = urlsplit(f"//{host}").hostname or ""
    try:
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False


def _transport(host: str, local: bool) -> urllib.request.BaseHandler:
    """Return how a registry is reached: with the authorities of user and site; the loopback has no proxy before it."""
    if local:
        return urllib.request.ProxyHandler({})
    context = ssl.create_default_context()
    for folder in CERTIFICATES:
        for path in sorted(Path(folder).expanduser().joinpath(host).glob("*.crt")):
            context.load_verify_locations(path)
    return urllib.request.HTTPSHandler(context=context)


def _origin(url: str) -> tuple[str, str]:
    """Return to whom credentials belong: the same host without encryption is somebody else."""
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


def _check_step(before: str, after: str) -> None:
    """Refuse a step from https to anything else: image and credentials would be anybody's to read on the way."""
    if urlsplit(before).scheme == "https" and urlsplit(after).scheme != "https":
        host, place = urlsplit(before).netloc, urlsplit(after)
        raise RegistryError(0, f"{host} leads from https to {place.scheme}://{place.netloc}, which is not encrypted")


class _StayEncrypted(urllib.request.HTTPRedirectHandler):
    """Follows redirections, but none that leaves https."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        """Return the request that follows, as urllib makes it."""
        try:
            _check_step(req.full_url, newurl)
        except RegistryError:
            fp.close()
            raise
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _error(error: urllib.error.HTTPError) -> RegistryError:
    try:
        reasons = [str(row.get("message") or row.get("code")) for row in json.loads(error.read(ERROR_BYTES))["errors"]]
    except (ValueError, KeyError, TypeError, AttributeError, OSError):
        reasons = []
    message = "; ".join(dict.fromkeys(reasons)) or f"it answers {error.code}"
    return RegistryError(error.code, message, error.headers.get("WWW-Authenticate") or "")
