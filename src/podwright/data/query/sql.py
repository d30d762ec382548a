"""SQL of a user's own over a dataset: it reads this dataset, and nothing else on the machine."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from podwright.data.tree.paths import shown
from podwright.spec.problems import Refusal, refuse

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

MAX_ROWS = 1_000_000
_CLOSED = ("disabled by configuration", "disabled through configuration", "configuration has been locked")


@dataclass(frozen=True)
class QueryRows:
    """The rows of a query, as JSON can say them."""

    columns: list[str]
    rows: list[list[Any]]
    cut: bool
    """There were more rows than are returned."""

    def as_json(self) -> dict[str, Any]:
        """Return the document of `data sql`."""
        return {"columns": self.columns, "rows": self.rows}


def query(connection: DuckDBPyConnection, dataset: str, text: str) -> QueryRows:
    """Answer a query over the view `files` and the tables file, directory, label, class, tag and meta."""
    import duckdb

    try:
        _check_reads(text)
        answer = connection.execute(text)
        rows = answer.fetchmany(MAX_ROWS)
        cut = len(rows) == MAX_ROWS and answer.fetchone() is not None
        columns = [column[0] for column in answer.description or ()]
    except duckdb.Error as error:
        raise _refusal(dataset, error) from None
    return QueryRows(columns, [list(map(_plain, row)) for row in rows], cut)


def _check_reads(text: str) -> None:
    """Refuse what is more than a question, whatever the connection itself would refuse."""
    import duckdb

    allowed = (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN)
    for statement in duckdb.extract_statements(text):
        if statement.type not in allowed:
            message = f"not allowed here: a statement of the kind {statement.type.name}"
            raise refuse(message, hint="a query only reads this dataset; `podwright data tag` writes")


def _refusal(dataset: str, error: Exception) -> Refusal:
    """Say in words what DuckDB refused; only its first line, without the name of its class."""
    first, *rest = str(error).splitlines()
    message = first.partition("Error: ")[2] or first
    if any(phrase in message for phrase in _CLOSED):
        hint = "a query reads this dataset only: no other files, no extensions, no settings"
        return refuse(f"not allowed here: {message}", hint=hint)
    if "read-only mode" in message:
        return refuse(f"not allowed here: {message}", hint="a query only reads; `podwright data tag` writes")
    close = [line for line in rest if line.startswith(("Did you mean", "Candidate"))]
    hint = close[0] if close else f'`podwright data sql {dataset} "describe files"` lists the columns'
    return refuse(message, hint=hint)


def _plain(value: Any) -> Any:
    """Return a value as JSON can say it."""
    if isinstance(value, bytes | bytearray | memoryview):
        return shown(bytes(value))
    if isinstance(value, datetime | date):
        return value.isoformat()
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return str(value)
