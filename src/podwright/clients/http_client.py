"""The one guarded way to ask a server over HTTP: to whom secrets go, how much is taken, and in words why it failed."""

from __future__ import annotations

import base64
import ssl
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from email.message import Message
from http.client import HTTPException, HTTPResponse
from io import BufferedIOBase
from ipaddress import ip_address
from typing import IO, Literal
from urllib.parse import urlsplit

from podwright.clients.reasons import connection_reason

ERROR_BYTES = 1 << 20
"""The most that is read of an answer that is an error."""
Redirects = Literal["refused", "encrypted", "followed"]
"""Whether an answer may lead on: to nobody else, from https to https alone, or to anybody."""
Body = bytes | BufferedIOBase | Iterable[bytes]


class HttpError(Exception):
    """Why there is no answer, in words."""


class Unreached(HttpError):
    """A server that cannot be reached; `kind` is the name of the error."""

    def __init__(self, error: Exception) -> None:
        cause = error.reason if isinstance(error, urllib.error.URLError) else error
        super().__init__(connection_reason(cause))
        self.kind = type(error).__name__


class ErrorAnswer(HttpError):
    """An answer that is an error, with its first bytes."""

    def __init__(self, error: urllib.error.HTTPError) -> None:
        self.reason = str(error.reason)
        super().__init__(self.reason.lower())
        self.status, self.headers = error.code, error.headers
        try:
            self.body = error.read(ERROR_BYTES)
        except (OSError, HTTPException):
            self.body = b""


class Unencrypted(HttpError):
    """A step from https to anything else: what is sent and comes would be anybody's to read on the way."""


class TooLarge(HttpError):
    """An answer beyond its bound."""


class HttpClient:
    """How servers are asked; making this object touches nothing."""

    def __init__(self, redirects: Redirects, timeout_s: float, *transport: urllib.request.BaseHandler) -> None:
        self._opener = urllib.request.build_opener(*transport, _REDIRECTS[redirects])
        self._timeout_s = timeout_s

    @contextmanager
    def open(self, request: urllib.request.Request) -> Iterator[HTTPResponse]:
        """Yield the answer to be read piece by piece; whatever fails meanwhile is an HttpError."""
        try:
            with self._opener.open(request, timeout=self._timeout_s) as response:
                yield response
        except urllib.error.HTTPError as error:
            with error:
                raise ErrorAnswer(error) from None
        except (OSError, HTTPException) as error:
            raise Unreached(error) from None

    def ask(self, request: urllib.request.Request, limit_bytes: int) -> tuple[Message, bytes]:
        """Return the headers and the whole of an answer, which has at most so many bytes."""
        with self.open(request) as response:
            data = response.read(limit_bytes + 1)
            if len(data) > limit_bytes:
                raise TooLarge(f"it answers with more than {limit_bytes >> 20} MiB")
            return response.headers, data


def no_proxy() -> urllib.request.BaseHandler:
    """Return the transport that goes straight to the server, whatever the environment says."""
    return urllib.request.ProxyHandler({})


def trusting(context: ssl.SSLContext) -> urllib.request.BaseHandler:
    """Return the transport that believes these authorities."""
    return urllib.request.HTTPSHandler(context=context)


def request_of(
    url: str,
    method: str = "GET",
    body: Body | None = None,
    headers: Mapping[str, str] | None = None,
    authorization: str = "",
) -> urllib.request.Request:
    """Return a request; its authorization goes to this server, and to none that an answer leads to."""
    request = urllib.request.Request(url, body, dict(headers or {}), method=method)
    if authorization:
        request.add_unredirected_header("Authorization", authorization)
    return request


def basic(login: str) -> str:
    """Return the authorization of a `USER:PASSWORD`."""
    return f"Basic {base64.b64encode(login.encode()).decode()}"


def is_loopback(host: str) -> bool:
    """Return whether a host, with its port or without, is this machine itself."""
    name = urlsplit(f"//{host}").hostname or ""
    try:
        return name == "localhost" or ip_address(name).is_loopback
    except ValueError:
        return False


def origin_of(url: str) -> tuple[str, str]:
    """Return to whom credentials belong: the same host without encryption is somebody else."""
    parts = urlsplit(url)
    return parts.scheme, parts.netloc


def check_step(before: str, after: str) -> None:
    """Refuse a step from https to anything else."""
    (scheme, host), (next_scheme, next_host) = origin_of(before), origin_of(after)
    if scheme == "https" and next_scheme != "https":
        raise Unencrypted(f"{host} leads from https to {next_scheme}://{next_host}, which is not encrypted")


class _StayHere(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        """Go nowhere: the answer is an error then, which says what was answered."""


class _StayEncrypted(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> urllib.request.Request | None:
        """Return the request that follows, as urllib makes it, unless it leaves https."""
        try:
            check_step(req.full_url, newurl)
        except Unencrypted:
            fp.close()
            raise
        return super().redirect_request(req, fp, code, msg, headers, newurl)  # type: ignore[arg-type]


_REDIRECTS: Mapping[Redirects, type[urllib.request.HTTPRedirectHandler]] = {
    "refused": _StayHere,
    "encrypted": _StayEncrypted,
    "followed": urllib.request.HTTPRedirectHandler,
}
