"""ClickHouse over its HTTP interface: statements in, rows out.

Name and password go in a header, never in an address, where servers write them into their logs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from urllib.parse import urlencode

from podwright.clients.http_client import ErrorAnswer, HttpClient, Unreached, basic, is_loopback, no_proxy, request_of
from podwright.spec.catalogs import CatalogAddress
from podwright.spec.problems import Refusal, refuse

USER, PASSWORD = "CLICKHOUSE_USER", "CLICKHOUSE_PASSWORD"
"""The variables that ClickHouse's own client reads too."""
_SILENT_S = 600.0
"""A server says nothing while it looks through a large table."""
_TABLE_FORMAT = "TabSeparatedWithNamesAndTypes"
_ERROR = re.compile(r"Code: (\d+)(?:, e\.displayText\(\) =|\.) DB::Exception: (.*?)(?:, e\.what\(\) =.*)?$", re.DOTALL)
_ERROR_END = re.compile(r"(?: \([A-Z_]+\))?(?: \(version [^)]*\))?\s*$")
_LETTERS = {b"b": b"\b", b"f": b"\f", b"r": b"\r", b"n": b"\n", b"t": b"\t", b"0": b"\0"}
READ_ONLY, UNKNOWN_TABLE, UNKNOWN_DATABASE = 164, 60, 81
_NO_ENTRY = (192, 193, 194, 516)
"""Codes of errors: of users that are not known, and of passwords that are wrong."""

Cell = bytes | None


class ServerError(Exception):
    """What the server refused, in its own words."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code, self.message = code, message


class RowStream:
    """The rows of a query, read as they come; `columns` has names and types."""

    def __init__(self, lines: Iterator[bytes]) -> None:
        self._lines = lines
        names, types = _cells(next(lines, b"")), _cells(next(lines, b""))
        self.columns = [(_text(name), _text(kind)) for name, kind in zip(names, types, strict=True)]

    def __iter__(self) -> Iterator[list[Cell]]:
        for line in self._lines:
            cells = _cells(line)
            if len(cells) != len(self.columns):
                # Headers were sent long ago when something went wrong: the error stands where a row would.
                raise _error(line.decode(errors="replace"))
            yield cells


class ClickHouse:
    """One database of a server; making this object touches nothing."""

    def __init__(self, address: CatalogAddress, environ: Mapping[str, str]) -> None:
        self.address = address
        user, password = address.user or environ.get(USER) or "default", environ.get(PASSWORD, "")
        if password and not address.tls and not is_loopback(address.site):
            message = f"{address} would be sent the password in clear"
            raise refuse(message, hint=f"clickhouses:// speaks TLS; or unset {PASSWORD}")
        self._authorization = basic(f"{user}:{password}")
        self._root = f"{'https' if address.tls else 'http'}://{address.site}"
        self._http = HttpClient("refused", _SILENT_S, no_proxy())

    @cached_property
    def version(self) -> tuple[int, int]:
        """Return the first two numbers of the server's version."""
        (row,) = self.ask("SELECT version()")
        major, minor, *_ = _text(row[0]).split(".")
        return int(major), int(minor)

    def ask(self, query: str, read_only: bool = False) -> RowStream:
        """Return what a query gives; with `read_only` the server itself refuses to change anything."""
        options = {"default_format": _TABLE_FORMAT}
        if read_only:
            options["readonly"] = "1"
        return RowStream(self._lines(options, query.encode("utf-8", "surrogateescape")))

    def run(self, statement: str) -> None:
        """Run a statement that gives no rows."""
        for _ in self._lines({"wait_end_of_query": "1"}, statement.encode()):
            pass

    def insert(self, table: str, pieces: Iterable[bytes]) -> None:
        """Insert rows as ClickHouse's TabSeparated has them, in one request however many there are."""
        options = {"query": f"INSERT INTO {table} FORMAT TabSeparated", "wait_end_of_query": "1"}
        for _ in self._lines(options, pieces):
            pass

    def _lines(self, options: Mapping[str, str], body: bytes | Iterable[bytes]) -> Iterator[bytes]:
        url = f"{self._root}/?{urlencode({'database': self.address.database, **options})}"
        request = request_of(url, "POST", body, {"Content-Type": "text/plain"}, self._authorization)
        try:
            with self._http.open(request) as answer:
                for line in answer:
                    yield line.removesuffix(b"\n")
        except ErrorAnswer as error:
            raise _error(error.body.decode(errors="replace")) from None
        except Unreached as error:
            hint = "is it the port of its HTTP interface, and does `catalog:` say TLS where it speaks it?"
            raise refuse(f"{self.address} cannot be reached: {error}", hint=hint, exit_code=3) from None

    def refusal(self, error: ServerError) -> Refusal:
        """Return the refusal of what the server refused."""
        if error.code in _NO_ENTRY:
            hint = f"set {USER} and {PASSWORD}"
            return refuse(f"{self.address} does not let you in: {error.message}", hint=hint, exit_code=3)
        if error.code == UNKNOWN_DATABASE:
            hint = f"CREATE DATABASE {self.address.database}, by whoever runs the server"
            return refuse(f"{self.address}: there is no such database", hint=hint, exit_code=3)
        return refuse(f"{self.address}: {error.message}", exit_code=1)


def _error(text: str) -> ServerError:
    match = _ERROR.search(text)
    if match is None:
        return ServerError(0, text.strip().partition("\n")[0] or "it answered with an error and no words")
    return ServerError(int(match[1]), _ERROR_END.sub("", match[2]))


def _cells(line: bytes) -> list[Cell]:
    return [None if cell == b"\\N" else unescaped(cell) for cell in line.split(b"\t")]


def unescaped(cell: bytes) -> bytes:
    """Return a value without the escapes of TabSeparated."""
    if b"\\" not in cell:
        return cell
    return re.sub(rb"\\(.)", lambda match: _LETTERS.get(match[1], match[1]), cell, flags=re.DOTALL)


def _text(cell: Cell) -> str:
    return (cell or b"").decode(errors="replace")
