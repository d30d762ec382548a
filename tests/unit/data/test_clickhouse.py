"""What is said to ClickHouse, as text; tests/real/test_clickhouse.py says it to real servers."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from podwright.clients.clickhouse import ClickHouse, RowStream, ServerError
from podwright.data.catalog.scan import scan
from podwright.data.catalog.schema import vocabulary_of
from podwright.data.catalog.store import Store, open_store
from podwright.data.clickhouse.dialect import (
    DIALECTS,
    Dialect,
    dialect_of,
    literal,
    name,
    pointer_statement,
    table_statement,
    view_statement,
    where_of,
)
from podwright.data.clickhouse.published import with_table
from podwright.data.clickhouse.rows import rows_query, tab_separated
from podwright.data.policies.tags import tag
from podwright.data.query.conditions import condition_of
from podwright.data.tree.layouts import A2D2, PLAIN
from podwright.spec.catalogs import parse_catalog
from podwright.spec.filters import parse_filter
from podwright.spec.problems import Refusal
from tests.paths import CASES
from tests.unit.data.conftest import Say

CLASSES = ["Car", "Obstacles / trash", "path"]
FILTERS = (
    "scene=20180807_145028 and frame>=3",
    'not (camera="it\'s" or not Car>0)',
    "not (kind!=label and size>1MB)",
    r'path~"a\\b" or not folder~c',
    "mtime<2026-03-02 and mode=0644",
    "class=Car and class!=Car",
    "weather=rain and weather!=snow and weather~r",
    "not weather>=4.5",
)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: ".".join(map(str, dialect.since)))
def test_each_version_gets_the_sql_it_understands(dialect: Dialect, golden: Callable[[Path, str], None]) -> None:
    vocabulary = vocabulary_of("a2d2", A2D2, CLASSES, (), ["weather"])
    statements = [
        pointer_statement(),
        table_statement(dialect, "a2d2.g000001-0a1b2c3d", A2D2, len(CLASSES)),
        view_statement(dialect, "a2d2.g000001-0a1b2c3d.files", "a2d2.g000001-0a1b2c3d", A2D2, CLASSES),
    ]
    for text in FILTERS:
        where = where_of(condition_of(parse_filter(text), vocabulary))
        statements.append(f"-- {text}\n{where}")
    version = ".".join(map(str, dialect.since))
    golden(CASES / "clickhouse" / f"{version}.sql", ";\n\n".join(statements) + "\n")


def test_a_server_gets_the_newest_dialect_that_it_understands() -> None:
    assert dialect_of((18, 14)) is None
    assert dialect_of((18, 16)) == dialect_of((22, 7)) == DIALECTS[0]
    assert dialect_of((22, 8)) == dialect_of((30, 1)) == DIALECTS[1]


def test_values_and_names_cannot_leave_their_quotes() -> None:
    assert literal("a'b\\c\n\0") == r"'a\'b\\c\n\0'"
    assert name("a`b\\c") == r"`a\`b\\c`"
    assert literal(-3) == "-3"


ODD = (b"back\\slash", b"no\xffutf8", b"quote'", b"tab\tnew\nline\r")


def test_rows_are_sent_as_tab_separated_text_whatever_is_in_a_name(store: Store, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    tree.mkdir()
    for odd in ODD:
        Path(os.fsdecode(os.fsencode(tree) + b"/" + odd)).touch()
    scan(store, tree, "odd")
    tag(store, "odd", "name~quote", "a", "it's\t4")
    tag(store, "odd", "name~quote", "b", "4.50")
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"ATTACH '{store.file('odd', store.generation('odd'))}' AS own (READ_ONLY)")
        connection.execute("CREATE TABLE chosen AS SELECT id, id AS number, true AS readable FROM own.file")
        lines = b"".join(tab_separated(connection, PLAIN, 0)).split(b"\n")
    assert lines.pop() == b""
    cells = [line.split(b"\t") for line in sorted(lines)]
    assert [row[0] for row in cells] == [b"0", b"1", b"2", b"3"]
    assert [row[3:5] for row in cells] == [
        [rb"back\\slash", rb"\N"],
        [b"no%FFutf8", rb"\x6E\x6F\xFF\x75\x74\x66\x38"],
        [b"quote'", rb"\N"],
        [rb"tab\tnew\nline\r", rb"\N"],
    ]
    assert cells[2][-3:] == [b"['a','b']", rb"['it\'s\t4','4.50']", b"[NULL,4.5]"]
    assert cells[0][-3:] == [b"[]", b"[]", b"[]"]


def test_content_goes_only_where_it_may_be_read() -> None:
    query = rows_query(A2D2, 2)
    assert query.count("c.readable") == 3
    assert "CASE WHEN c.readable THEN f.sha256 END" in query


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("select * from files", "select * from T"),
        ("SELECT a FROM Files JOIN files USING (a)", "SELECT a FROM T JOIN T USING (a)"),
        ("describe files", "describe T"),
        ("select files.a from files", "select T.a from T"),
        ("select 1 as files from files", "select 1 as files from T"),
        ("select 'from files', `from files` from files", "select 'from files', `from files` from T"),
        (r"select 'it\'s from files' from files", r"select 'it\'s from files' from T"),
        ("select 1 -- from files\nfrom /* all */ files", "select 1 -- from files\nfrom /* all */ T"),
    ],
)
def test_the_name_of_all_rows_becomes_the_table(text: str, wanted: str) -> None:
    assert with_table(text, "T") == wanted


def test_an_error_in_the_middle_of_rows_is_no_row() -> None:
    lines = [
        b"a\tb",
        b"UInt8\tString",
        rb"1" + b"\t" + rb"x\ty",
        b"Code: 241, e.displayText() = DB::Exception: full, e",
    ]
    rows = RowStream(iter(lines))
    assert rows.columns == [("a", "UInt8"), ("b", "String")]
    answers = iter(rows)
    assert next(answers) == [b"1", b"x\ty"]
    with pytest.raises(ServerError, match="full") as caught:
        next(answers)
    assert caught.value.code == 241


def test_a_password_does_not_travel_in_clear() -> None:
    environ = {"CLICKHOUSE_PASSWORD": "geheim"}
    for text in ("clickhouse://127.0.0.1/a", "clickhouse://[::1]/a", "clickhouses://db1/a"):
        assert str(ClickHouse(parse_catalog(text), environ).address).startswith(text.partition(":")[0])
    with pytest.raises(Refusal, match=r"clickhouse://db1:8123/a would be sent the password in clear") as caught:
        ClickHouse(parse_catalog("clickhouse://db1/a"), environ)
    assert "geheim" not in str(caught.value)
    assert ClickHouse(parse_catalog("clickhouse://db1/a"), {}).address.port == 8123


def test_a_pod_without_a_catalog_is_refused_with_the_field(ask: Say, tmp_path: Path) -> None:
    pod = tmp_path / "pod.yaml"
    pod.write_text("name: adas\nnodes: [{hosts: n1, model: cpu-server}]\n")
    (problem,) = ask("find", "a2d2", "--catalog", pod, code=2)["errors"]
    assert (problem["file"], problem["field"]) == (str(pod), "catalog")
    assert problem["hint"] == "write `catalog: clickhouse://HOST:8123/DATABASE`"


def test_a_database_is_no_folder_for_catalogs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODWRIGHT_CATALOG", "clickhouse://db1:8123/podwright")
    with pytest.raises(Refusal, match=r"is no folder\n\nhint: .*--catalog POD"):
        open_store(tmp_path)
