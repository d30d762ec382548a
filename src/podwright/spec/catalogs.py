"""Where a pod's catalog is at home: a database of ClickHouse, by the address of its HTTP interface. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import urlsplit

from podwright.spec.problems import Refusal, refuse, short

_PORTS = {"clickhouse": 8123, "clickhouses": 8443}
_DATABASE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}", re.ASCII)
_USER = re.compile(r"[A-Za-z0-9_.-]{1,64}", re.ASCII)
_EXAMPLE = "write it like `clickhouse://HOST:8123/DATABASE`, or `clickhouses://` for TLS"


@dataclass(frozen=True, slots=True)
class CatalogAddress:
    """One database of a ClickHouse server."""

    host: str
    port: int
    database: str
    tls: bool
    user: str | None = None

    @property
    def site(self) -> str:
        """Return host and port as they stand in an address."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def __str__(self) -> str:
        scheme = "clickhouses" if self.tls else "clickhouse"
        return f"{scheme}://{self.site}/{self.database}"


def parse_catalog(text: str) -> CatalogAddress:
    """Return the address that a text is, or refuse it."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise _no_address(text) from None
    if parts.scheme not in _PORTS:
        known = " and ".join(f"{scheme}://" for scheme in _PORTS)
        raise refuse(f'"{_shown(text)}" is no catalog: {known} are', hint=_EXAMPLE)
    if parts.password is not None:
        raise refuse("an address must hold no password: it is written down", hint="set CLICKHOUSE_PASSWORD instead")
    user, database = parts.username, parts.path.removeprefix("/")
    if not parts.hostname or not _DATABASE.fullmatch(database) or parts.query or parts.fragment:
        raise _no_address(text)
    if user is not None and not _USER.fullmatch(user):
        raise _no_address(text)
    return CatalogAddress(parts.hostname, port or _PORTS[parts.scheme], database, parts.scheme == "clickhouses", user)


def _no_address(text: str) -> Refusal:
    return refuse(f'"{_shown(text)}" names no database', hint=_EXAMPLE)


def _shown(text: str) -> str:
    """Return an address without what may be a password."""
    return short(re.sub(r"//.*@", "//...@", text))
