"""Reads files of a dataset that lies behind an address: in pieces, many at once, and on where a connection broke."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO, cast
from urllib.parse import quote

from podwright.data.selecting.manifests import site_of
from podwright.data.tree.remote import version_number
from podwright.pilot.data.sources import SourceFailed, SourceFile, fetch, look

AT_ONCE = 32
"""Files that are read at a time: most of it is waiting."""


class NotReadError(Exception):
    """Why a file could not be read, in words; of what is in it nothing is known."""


def is_address(root: bytes) -> bool:
    """Say whether a dataset lies behind an address."""
    return b"://" in root


@dataclass(frozen=True)
class RemoteReader:
    """Reads files of one address, with the keys of the environment."""

    root: bytes
    environ: Mapping[str, str]

    @contextmanager
    def opened(self, path: bytes) -> Iterator[IO[bytes]]:
        """Give a file by its path below the address; it lies on this machine's disk meanwhile."""
        with TemporaryFile() as file:
            self._fetch(path, None, file)
            file.seek(0)
            yield file

    def digest(self, path: bytes, size: int, version: int) -> str | None:
        """Return the SHA-256 of a file, or None where it is not of this size and version."""
        return self._fetch(path, (size, version), cast("IO[bytes]", _Nowhere()))

    def _fetch(self, path: bytes, wanted: tuple[int, int] | None, file: IO[bytes]) -> str | None:
        source = f"{os.fsdecode(self.root).rstrip('/')}/{quote(path)}"
        site = site_of(self.root, self.environ)
        try:
            facts = look(source, site, self.environ)
            if facts.size is None:
                raise NotReadError("the server does not say how large it is")
            if wanted is not None and (facts.size != wanted[0] or wanted[1] not in _versions(facts.etag)):
                return None
            return fetch(SourceFile(source, facts.size, facts.etag), site, self.environ, file)
        except SourceFailed as failure:
            raise NotReadError(str(failure)) from None


def _versions(etag: str) -> set[int]:
    """Return the numbers under which a version may have been listed: some lists leave its quotes out."""
    bare = etag.strip('"')
    return {version_number(etag), version_number(bare), version_number(f'"{bare}"')}


class _Nowhere:
    """What is read for its digest alone goes nowhere."""

    def write(self, data: bytes) -> int:
        return len(data)

    def seek(self, offset: int, whence: int = 0) -> int:
        return 0

    def truncate(self) -> int:
        return 0
