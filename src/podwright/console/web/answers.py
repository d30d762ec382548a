"""What a route answers with. Typed, so that the application alone knows of bytes and headers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class JsonAnswer:
    """JSON: the same document as `--json`."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Page:
    """A page, by its template and what this is filled with."""

    template: str
    view: Mapping[str, Any]
    status: int = 200


@dataclass(frozen=True)
class Elsewhere:
    """The page to look at next, by its path within the console; `session` is the secret of a new session."""

    path: str
    session: str | None = None


@dataclass(frozen=True)
class Blob:
    """Bytes of some kind."""

    body: bytes | Iterator[bytes]
    kind: str = "application/octet-stream"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Stream:
    """Events, as they come."""

    events: AsyncIterator[bytes]


Answer = JsonAnswer | Page | Elsewhere | Blob | Stream
