"""Where data is read from: a file system, HTTP(S), and S3, whose requests are signed here.

The keys of S3 come through the environment, as secrets do; a request without keys is not signed. Nothing is presigned:
a signature lives in the header of one request.
"""

from __future__ import annotations

import hashlib
import hmac
import http.client
import os
import random
import stat
import time
import urllib.error
import urllib.request
from email.utils import parsedate_to_datetime
from typing import IO, Any, Callable, Dict, Mapping, NamedTuple, Optional, Tuple
from urllib.parse import quote, unquote, urlsplit

from ..system.plain_files import open_to_read
from .sparse import end_file, write_piece

PIECE_BYTES = 1 << 20
TIMEOUT_S = 60.0
MAX_TRIES = 8
"""Of one file without a byte of progress; the waits between them add up to some two minutes."""
LONGEST_WAIT_S = 30.0
MAX_PAGE_BYTES = 64 << 20
MAX_DIGITS = 18
"""Of a size: more is no number of 64 bits."""
MAX_TIME_S = 1 << 33
"""Of the last change: some nanoseconds beyond are no number of 64 bits."""
TRY_AGAIN = (408, 425, 429, 500, 502, 503, 504)
"""What a server says that is busy, such as `503 SlowDown` of S3."""
KEYS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
SCHEMES = ("file", "http", "https", "s3")
NO_BODY = hashlib.sha256(b"").hexdigest()

Site = Mapping[str, str]
"""Of S3: `endpoint` and `region`; empty for other sources."""


class SourceFailed(Exception):
    """A source does not give a file, in words; `final` where another try would end the same, `missing`: it has none."""

    def __init__(self, reason: str, final: bool = True, after_s: float = 0.0, missing: bool = False) -> None:
        super().__init__(reason)
        self.final, self.after_s, self.missing = final, after_s, missing


class Facts(NamedTuple):
    """What a source says of a file without giving it."""

    size: Optional[int]
    etag: str
    changed_s: Optional[float] = None


class SourceFile(NamedTuple):
    """A file to be read: from where, how large it is, and the version that is meant where one is known."""

    source: str
    size: int
    etag: str = ""


def look(source: str, site: Site, environ: Mapping[str, str], tries: int = MAX_TRIES) -> Facts:
    """Return what a source says of a file now, after several tries where it is busy."""
    facts: Facts = _patiently(lambda: _look(source, site, environ), lambda: 0, most=tries)
    return facts


def _look(source: str, site: Site, environ: Mapping[str, str]) -> Facts:
    if source.startswith("file:"):
        try:
            facts = os.stat(path_of(source))
        except OSError as error:
            raise SourceFailed(_reason(error)) from None
        if not stat.S_ISREG(facts.st_mode):
            raise SourceFailed("it is no plain file")
        return Facts(facts.st_size, version(facts), facts.st_mtime)
    with _ask("HEAD", source, site, environ, {}) as answer:
        return Facts(
            _size(answer.headers.get("Content-Length")), _tag(answer), _time(answer.headers.get("Last-Modified"))
        )


def _size(text: Optional[str]) -> Optional[int]:
    """Return a size as a server says it; None where it says none that a file can have."""
    if text is None or not (text.isascii() and text.isdigit()) or len(text) > MAX_DIGITS:
        return None
    return int(text)


def _time(text: Optional[str]) -> Optional[float]:
    """Return a time as a server says it; None where it is none, or one that no file system knows."""
    try:
        when_s = parsedate_to_datetime(text).timestamp() if text else None
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
    return when_s if when_s is not None and 0 <= when_s < MAX_TIME_S else None


def read_page(address: str) -> str:
    """Return a page of a server, such as the index of a folder."""
    text: str = _patiently(lambda: _read_page(address), lambda: 0)
    return text


def _read_page(address: str) -> str:
    with _ask("GET", address, {}, {}, {}) as answer:
        try:
            return str(answer.read(MAX_PAGE_BYTES).decode("utf-8", "replace"))
        except (OSError, http.client.HTTPException) as error:
            raise SourceFailed(f"the connection broke: {_reason(error)}", final=False) from None


def version(facts: os.stat_result) -> str:
    """Return what stands for the version of a file on a file system, as an ETag does on a server."""
    return version_of(facts.st_mtime_ns, facts.st_size)


def version_of(mtime_ns: int, size: int) -> str:
    """Return the version of a file of this time and size."""
    return f"{mtime_ns:x}-{size:x}"


def path_of(source: str) -> bytes:
    """Return the path of a `file:` address; paths are bytes."""
    return os.fsencode(unquote(urlsplit(source).path, errors="surrogateescape"))


class Arrival:
    """One file on its way into `file`: its digest so far, and how much has come."""

    def __init__(self, source_file: SourceFile, file: IO[bytes], count: Callable[[int], None]) -> None:
        self.source_file, self._file, self._count = source_file, file, count
        self.size = 0
        self._digest = hashlib.sha256()

    def begin_at(self, offset: int) -> None:
        """Go on where it stopped, or from the start where the source gives no part of a file."""
        if offset == self.size:
            return
        self._file.seek(0)
        self._file.truncate()
        self.size, self._digest = 0, hashlib.sha256()

    def take(self, piece: bytes) -> None:
        self.size += len(piece)
        if self.size > self.source_file.size:
            raise SourceFailed(f"it has more than the {self.source_file.size} bytes that it had")
        self._digest.update(piece)
        write_piece(self._file, piece)
        self._count(len(piece))

    def finish(self) -> str:
        """End the file, and return the SHA-256 of what came."""
        if self.size != self.source_file.size:
            raise SourceFailed(f"it has {self.size} bytes, not the {self.source_file.size} that it had")
        end_file(self._file)
        return self._digest.hexdigest()


def fetch(
    source_file: SourceFile,
    site: Site,
    environ: Mapping[str, str],
    file: IO[bytes],
    count: Callable[[int], None] = lambda size: None,
    sleep: Callable[[float], None] = time.sleep,
) -> str:
    """Read a file whole and return its SHA-256; a connection that breaks is taken up where it broke."""
    reading = Arrival(source_file, file, count)
    read = _read_file if source_file.source.startswith("file:") else _read_url
    _patiently(lambda: read(reading, site, environ), lambda: reading.size, sleep)
    return reading.finish()


def _patiently(
    act: Callable[[], Any],
    progress: Callable[[], int],
    sleep: Callable[[float], None] = time.sleep,
    most: int = MAX_TRIES,
) -> Any:
    """Do something that a busy or broken source may end; after any progress the tries are counted from the first."""
    tries, before = 0, 0
    while True:
        try:
            return act()
        except SourceFailed as failure:
            tries = tries + 1 if progress() <= before else 1
            before = progress()
            if failure.final or tries >= most:
                raise
            # Jittered: the nodes of a run must not come back all at once.
            wait_s = min(0.25 * 2**tries, LONGEST_WAIT_S) * random.uniform(0.5, 1.0)
            sleep(max(wait_s, min(failure.after_s, LONGEST_WAIT_S)))


def _read_file(reading: Arrival, site: Site, environ: Mapping[str, str]) -> None:
    source_file = reading.source_file
    try:
        with open_to_read(os.fsdecode(path_of(source_file.source))) as file:
            before = version(os.fstat(file.fileno()))
            reading.begin_at(-1)
            for piece in iter(lambda: file.read(PIECE_BYTES), b""):
                reading.take(piece)
            after = version(os.fstat(file.fileno()))
    except OSError as error:
        # A disk that this node writes to must not be taken for the source.
        if error.filename is None:
            raise
        raise SourceFailed(_reason(error)) from None
    if before != after:
        raise SourceFailed("it was written while it was read")
    if source_file.etag not in ("", after):
        raise SourceFailed("it is not what it was when the run was started")


def _read_url(reading: Arrival, site: Site, environ: Mapping[str, str]) -> None:
    source_file, headers = reading.source_file, {}
    if reading.size:
        headers["Range"] = f"bytes={reading.size}-"
    with _ask("GET", source_file.source, site, environ, headers) as answer:
        if source_file.etag and _tag(answer) != source_file.etag:
            raise SourceFailed("it is not what it was when the run was started: its ETag is another")
        reading.begin_at(reading.size if answer.status == 206 else 0)
        while True:
            try:
                piece = answer.read(PIECE_BYTES)
            except (OSError, http.client.HTTPException) as error:
                raise SourceFailed(f"the connection broke: {_reason(error)}", final=False) from None
            if not piece:
                break
            reading.take(piece)
    if reading.size < source_file.size:
        raise SourceFailed(f"the connection ended after {reading.size} of {source_file.size} bytes", final=False)


def _ask(method: str, source: str, site: Site, environ: Mapping[str, str], headers: Dict[str, str]) -> Any:
    """Send a request; return its answer, or raise what is wrong in words."""
    url, signed = source, False
    if source.startswith("s3:"):
        url, own = s3_request(method, source, site, environ, time.time())
        headers, signed = {**headers, **own}, bool(own)
    request = urllib.request.Request(url, headers={"Accept-Encoding": "identity", **headers}, method=method)
    try:
        return _opener(signed).open(request, timeout=TIMEOUT_S)
    except urllib.error.HTTPError as error:
        with error:
            after = error.headers.get("Retry-After") or ""
            after_s = float(after) if after.isdigit() else 0.0
            reason = f"the server says {error.code} {error.reason}"
            if error.code in (401, 403) and source.startswith("s3:") and not signed:
                reason += "; name AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY under `secrets:`"
            raise SourceFailed(reason, error.code not in TRY_AGAIN, after_s, error.code == 404) from None
    except (OSError, http.client.HTTPException) as error:
        raise SourceFailed(f"the server cannot be reached: {_reason(error)}", final=False) from None


def _opener(signed: bool) -> Any:
    """Return what opens addresses of HTTP alone; with a signature nothing is followed to another server."""
    opener = urllib.request.OpenerDirector()
    kinds = [urllib.request.ProxyHandler, urllib.request.HTTPHandler, urllib.request.HTTPSHandler]
    kinds += [urllib.request.HTTPDefaultErrorHandler, urllib.request.HTTPErrorProcessor]
    if not signed:
        kinds.append(urllib.request.HTTPRedirectHandler)
    for kind in kinds:
        opener.add_handler(kind())
    return opener


def _tag(answer: Any) -> str:
    """Return the version that a server names; without an ETag the time of the last change is one."""
    return str(answer.headers.get("ETag") or answer.headers.get("Last-Modified") or "")


def _reason(error: BaseException) -> str:
    inner = getattr(error, "reason", error)
    return (getattr(inner, "strerror", None) or str(inner) or type(inner).__name__).lower()


# S3


def s3_request(
    method: str, source: str, site: Site, environ: Mapping[str, str], now: float
) -> Tuple[str, Dict[str, str]]:
    """Return the address of an object and the headers that sign a request for it; none without keys."""
    address = urlsplit(source)
    region = site.get("region") or "us-east-1"
    endpoint = site.get("endpoint") or f"https://s3.{region}.amazonaws.com"
    path = quote(f"/{address.netloc}{unquote(address.path)}", safe="/-._~")
    url = endpoint.rstrip("/") + path
    key, secret, token = (environ.get(name, "") for name in KEYS)
    if not key or not secret:
        return url, {}
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))
    headers = {"host": urlsplit(url).netloc, "x-amz-content-sha256": NO_BODY, "x-amz-date": stamp}
    if token:
        headers["x-amz-security-token"] = token
    url_path = urlsplit(url).path
    headers["authorization"] = _signature(method, url_path, headers, f"{stamp[:8]}/{region}", key, secret)
    return url, headers


def _signature(method: str, path: str, headers: Mapping[str, str], day: str, key: str, secret: str) -> str:
    """Return the header of AWS's signature, version 4, of a request without query and body."""
    scope = f"{day}/s3/aws4_request"
    names = ";".join(sorted(headers))
    lines = [f"{name}:{headers[name]}" for name in sorted(headers)]
    canonical = "\n".join([method, path, "", *lines, "", names, NO_BODY])
    text = "\n".join(["AWS4-HMAC-SHA256", headers["x-amz-date"], scope, hashlib.sha256(canonical.encode()).hexdigest()])
    sign = f"AWS4{secret}".encode()
    for word in scope.split("/"):
        sign = hmac.new(sign, word.encode(), hashlib.sha256).digest()
    signature = hmac.new(sign, text.encode(), hashlib.sha256).hexdigest()
    return f"AWS4-HMAC-SHA256 Credential={key}/{scope}, SignedHeaders={names}, Signature={signature}"
