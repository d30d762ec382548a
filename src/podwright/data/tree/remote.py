"""Lists what lies behind an address, as a walk lists a folder: S3 page by page, HTTP by the index pages of its server.

S3 is listed through obstore. HTTP is not: obstore lists it by WebDAV alone, which plain servers do not speak, and what
an index page does not tell, a file's size and version, is asked of the server for every file, many at a time.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from html.parser import HTMLParser
from itertools import groupby
from typing import Any
from urllib.parse import unquote, urljoin, urlsplit

import numpy as np

from podwright.data.extra import need_packages
from podwright.data.selecting.manifests import site_of
from podwright.data.tree.walk import Batch, Rows
from podwright.data.tree.walk_folders import FIELDS
from podwright.pilot.data.sources import KEYS, MAX_TIME_S, SourceFailed, look, read_page
from podwright.spec.problems import refuse

_AT_ONCE = 32
_ENTRIES = 20_000
_MAX_PAGES = 1_000_000
_MAX_SIZE = 1 << 63


@dataclass(frozen=True)
class RemoteFile:
    """A file behind an address: its path below it, and what its server says of it."""

    path: str
    size: int
    mtime_s: float
    etag: str


def check_address(text: str) -> str:
    """Return an address that can be listed, or refuse it with the reason."""
    parts = urlsplit(text)
    if parts.scheme not in _LISTERS:
        schemes = ", ".join(f"{scheme}://" for scheme in _LISTERS)
        raise refuse(f"{parts.scheme}:// is no source that nodes can read", hint=f"a folder, or one of {schemes}")
    if parts.username or parts.password:
        raise refuse("an address must hold no password: it is written down", hint="take it out of the address")
    if not parts.netloc or parts.query or parts.fragment:
        raise refuse(f'"{text}" names no folder', hint="write it like `s3://BUCKET/PREFIX` or `https://HOST/PATH`")
    return text.rstrip("/")


def walk_address(address: str) -> Iterator[Batch]:
    """Yield all that lies behind an address in batches, as a walk does; names that are no path are unread."""
    listed: list[RemoteFile] = []
    unread: list[tuple[bytes, str]] = []
    for file in _LISTERS[urlsplit(address).scheme](address):
        why = _why_not(file)
        if why is None:
            listed.append(file)
        else:
            unread.append((file.path.encode("utf-8", "replace"), why))
    listed.sort(key=lambda file: _folder_and_name(file.path))
    for start in range(0, max(len(listed), 1), _ENTRIES):
        batch = _batch(listed[start : start + _ENTRIES], is_first=start == 0)
        yield batch if start else replace(batch, unread=unread)


def _why_not(file: RemoteFile) -> str | None:
    """Return why a file is not taken into a catalog; None where it is."""
    if not is_path(file.path):
        return "is no path below the address"
    if not 0 <= file.size < _MAX_SIZE or not 0 <= file.mtime_s < MAX_TIME_S:
        return "has a size or a time that no file has"
    return None


def is_path(text: str) -> bool:
    """Say whether a server's name for a file is a path that stays below its address."""
    return "\0" not in text and not {"", ".", ".."} & set(text.split("/"))


def _folder_and_name(path: str) -> tuple[str, str]:
    folder, _, name = path.rpartition("/")
    return folder, name


def _batch(files: Iterable[RemoteFile], is_first: bool) -> Batch:
    folders: list[str] = []
    counts: list[int] = []
    names: list[str] = []
    numbers: list[tuple[int, ...]] = []
    if is_first:
        folders, counts = [""], [0]
    for folder, group in groupby(files, key=lambda file: _folder_and_name(file.path)[0]):
        inside = list(group)
        if folder:
            folders.append(f"{folder}/")
            counts.append(len(inside))
        elif folders:
            counts[0] = len(inside)
        names += [_folder_and_name(file.path)[1] for file in inside]
        numbers += [_numbers(stat.S_IFREG | 0o400, file.size, file.mtime_s, file.etag) for file in inside]
    folder_numbers = [_numbers(stat.S_IFDIR | 0o700, 0, 0.0, "")] * len(folders)
    return Batch(_rows(folders, folder_numbers), _rows(names, numbers), np.array(counts, np.int64), [], [], [])


def _rows(names: list[str], numbers: list[tuple[int, ...]]) -> Rows:
    joined = b"".join(name.encode() + b"\0" for name in names)
    return Rows(joined, np.ascontiguousarray(np.array(numbers, np.int64).reshape(-1, len(FIELDS)).T))


def _numbers(mode: int, size: int, mtime_s: float, etag: str) -> tuple[int, ...]:
    """Return the numbers of an entry; its version stands where a file has its inode, so that a change is seen."""
    nanoseconds = int(mtime_s * 1_000_000_000)
    return mode, version_number(etag), os.getuid(), os.getgid(), size, nanoseconds, nanoseconds


def version_number(etag: str) -> int:
    """Return the number that stands for a version."""
    return int.from_bytes(hashlib.sha256(etag.encode()).digest()[:7], "big")


def _list_s3(address: str) -> Iterator[RemoteFile]:
    need_packages(["obstore"])
    import obstore
    from obstore.exceptions import BaseError
    from obstore.store import S3Store

    parts = urlsplit(address)
    prefix = parts.path.strip("/")
    try:
        store = S3Store(parts.netloc, prefix=prefix or None, **_s3_options(address, os.environ))
        for page in obstore.list(store, chunk_size=1000):
            for entry in page:
                when = entry["last_modified"].timestamp()
                yield RemoteFile(entry["path"], entry["size"], when, entry.get("e_tag") or "")
    except (BaseError, OSError, ValueError, OverflowError) as error:
        first = str(error).strip().splitlines()[0]
        raise refuse(f"{address} cannot be listed: {first}", exit_code=3) from None


def _s3_options(address: str, environ: Mapping[str, str]) -> dict[str, Any]:
    site = site_of(os.fsencode(address), environ)
    options: dict[str, Any] = {"virtual_hosted_style_request": False}
    if "endpoint" in site:
        options["endpoint"] = site["endpoint"]
        options["client_options"] = {"allow_http": site["endpoint"].startswith("http://")}
    options["region"] = site.get("region") or "us-east-1"
    if not environ.get(KEYS[0]):
        options["skip_signature"] = True
    return options


class _Links(HTMLParser):
    """The links of an index page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value for name, value in attrs if tag == "a" and name == "href" and value]


def _list_http(address: str) -> Iterator[RemoteFile]:
    root = address.rstrip("/") + "/"
    waiting, seen, files = [root], {root}, []
    while waiting and len(seen) < _MAX_PAGES:
        page = waiting.pop()
        for link in _links_of(page):
            if link.endswith("/") and link not in seen:
                seen.add(link)
                waiting.append(link)
            elif not link.endswith("/"):
                files.append(link)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        yield from pool.map(lambda link: _remote_file(root, link), dict.fromkeys(files))


def _links_of(page: str) -> list[str]:
    """Return the links of a page that lead below it: not to its parent, other servers or other orders of itself."""
    try:
        text = read_page(page)
    except SourceFailed as failure:
        raise refuse(f"{page} cannot be listed: {failure}", exit_code=3) from None
    parser = _Links()
    parser.feed(text)
    links = filter(None, (_joined(page, link) for link in parser.links))
    below = [link for link in links if link.startswith(page) and link != page]
    return [link for link in below if not urlsplit(link).query and not urlsplit(link).fragment]


def _joined(page: str, link: str) -> str | None:
    """Return where a link leads; None where it is no address, and so leads nowhere."""
    try:
        return urljoin(page, link)
    except ValueError:
        return None


def _remote_file(root: str, link: str) -> RemoteFile:
    try:
        facts = look(link, {}, {})
    except SourceFailed as failure:
        raise refuse(f"{link}: {failure}", exit_code=3) from None
    if facts.size is None:
        raise refuse(f"{link}: the server does not say how large it is", exit_code=3)
    return RemoteFile(unquote(link.removeprefix(root)), facts.size, facts.changed_s or 0.0, facts.etag)


_LISTERS: Mapping[str, Callable[[str], Iterator[RemoteFile]]] = {
    "s3": _list_s3,
    "http": _list_http,
    "https": _list_http,
}
