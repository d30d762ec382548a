"""Reads files of a dataset that lies behind an address: in pieces, many at once, and on where a connection broke."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from tempfile import TemporaryFile
from typing import IO, cast
from urllib.parse import quote

from podwright.data.selecting.manifests import site_of
from podwright.data.tree.remote import version_number
from podwright.data.tree.roots import Roots, is_address
from podwright.pilot.data.sources import Facts, SourceFailed, SourceFile, fetch, look

AT_ONCE = 32
"""Files that are read at a time: most of it is waiting."""


class NotReadError(Exception):
    """Why a file could not be read, in words; of what is in it nothing is known."""


class MissingError(NotReadError):
    """There is no such file."""


@dataclass(frozen=True)
class FolderReader:
    """Reads files below a folder of this machine."""

    root: bytes

    @contextmanager
    def opened(self, path: bytes) -> Iterator[IO[bytes]]:
        """Give a file by its path below the folder."""
        with open(self.root + b"/" + path, "rb") as file:  # noqa: PTH123 - bytes
            yield file


@dataclass(frozen=True)
class RemoteReader:
    """Reads files of one address, with the keys of the environment."""

    root: bytes
    environ: Mapping[str, str]

    @contextmanager
    def opened(self, path: bytes) -> Iterator[IO[bytes]]:
        """Give a file by its path below the address; it lies on this machine's disk meanwhile."""
        with TemporaryFile() as file:
            self._fetch(path, lambda facts: True, file)
            file.seek(0)
            yield file

    def digest(self, path: bytes, size: int, mtime_ns: int, version: int) -> str | None:
        """Return the SHA-256 of a file, or None where it is not of this size and version.

        Where the list named no version, as some stores do, the time tells, in whole seconds.
        """

        def is_it(facts: Facts) -> bool:
            if version == version_number(""):
                same = facts.changed_s is not None and int(facts.changed_s) == mtime_ns // 1_000_000_000
            else:
                same = version in _versions(facts.etag)
            return same and facts.size == size

        return self._fetch(path, is_it, cast("IO[bytes]", _Nowhere()))

    def _fetch(self, path: bytes, is_wanted: Callable[[Facts], bool], file: IO[bytes]) -> str | None:
        source = f"{os.fsdecode(self.root).rstrip('/')}/{quote(path)}"
        site = site_of(self.root, self.environ)
        try:
            facts = look(source, site, self.environ)
            if facts.size is None:
                raise NotReadError("the server does not say how large it is")
            if not is_wanted(facts):
                return None
            return fetch(SourceFile(source, facts.size, facts.etag), site, self.environ, file)
        except SourceFailed as failure:
            raise (MissingError if failure.missing else NotReadError)(str(failure)) from None


def reader_of(root: bytes) -> FolderReader | RemoteReader:
    """Return what reads the files of a folder or an address."""
    return RemoteReader(root, os.environ) if is_address(root) else FolderReader(root)


class RootsReader:
    """Reads files of a dataset by their paths in it, from whichever root they are of."""

    def __init__(self, roots: Roots) -> None:
        self.roots = roots
        self._readers = {root: reader_of(root) for _, root in roots}

    def opened(self, path: bytes) -> AbstractContextManager[IO[bytes]]:
        """Give a file by its path in the dataset."""
        root, below = self.roots.place(path)
        return self._readers[root].opened(below)

    @contextmanager
    def opened_if_there(self, path: bytes) -> Iterator[IO[bytes] | None]:
        """Give a file by its path in the dataset, or None where there is none; OSError says why one cannot be read."""
        with ExitStack() as stack:
            try:
                file = stack.enter_context(self.opened(path))
            except (FileNotFoundError, MissingError):
                file = None
            except NotReadError as error:
                raise OSError(errno.EIO, str(error)) from None
            yield file

    def opened_whole(self, whole: bytes) -> AbstractContextManager[IO[bytes]]:
        """Give a file by its whole path."""
        root, below = self.roots.below(whole)
        return self._readers[root].opened(below)


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
