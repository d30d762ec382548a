"""SQL of a user's own reads one dataset and nothing else; tags are columns of filters."""

from __future__ import annotations

from pathlib import Path

import pytest

from podwright.data.catalog.scan import scan
from podwright.data.catalog.store import Store
from tests.unit.data.conftest import Say


@pytest.fixture
def scanned(store: Store, tree: Path) -> Store:
    scan(store, tree, "a2d2")
    return store


def test_a_query_is_answered_with_columns_and_rows(ask: Say, scanned: Store) -> None:
    answer = ask(
        "sql",
        "a2d2",
        "select kind, count(*) as n, max(mtime) > '2001-01-01' as young from files group by all order by 1",
    )
    assert answer == {"columns": ["kind", "n", "young"], "rows": [["camera", 24, True], ["label", 12, True]]}


def test_class_columns_are_in_the_view_after_statistics(ask: Say, scanned: Store) -> None:
    ask("stats", "a2d2")
    answer = ask("sql", "a2d2", 'select sum("RD normal street")::BIGINT as street, max(Animals) as animals from files')
    assert answer["rows"] == [[1264, 16]]


@pytest.mark.parametrize(
    "statement",
    [
        "copy file to '{folder}/out.csv'",
        "copy (select 1) to '{folder}/out.parquet'",
        "export database '{folder}/out'",
        "attach '{folder}/other.duckdb'",
        "attach ':memory:' as other; copy other.x from '/etc/passwd'",
        "install httpfs",
        "load httpfs",
        "load '{folder}/evil.duckdb_extension'",
        "select * from read_csv('/etc/passwd')",
        "select * from read_text('/etc/passwd')",
        "select * from read_blob('/etc/passwd')",
        "select * from read_parquet('{folder}/x.parquet')",
        "select * from '/etc/passwd'",
        "select * from glob('/etc/*')",
        "from sniff_csv('/etc/passwd')",
        "create secret s (type s3, key_id 'a', secret 'b')",
        "set enable_external_access = true",
        "set lock_configuration = false",
        "set temp_directory = '{folder}/spill'",
        "pragma enable_external_access = true",
        "reset lock_configuration",
        "create table x (a int)",
        "insert into tag values (1, 'a', 'b')",
        "update file set size = 0",
        "delete from file",
        "drop table file",
    ],
)
def test_what_does_not_only_read_is_refused(tell: Say, scanned: Store, tmp_path: Path, statement: str) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    before = scanned.file("a2d2", 1).read_bytes()
    out, err = tell("sql", "a2d2", statement.format(folder=folder), code=2)
    assert "root:" not in out + err
    assert "hint: " in err
    assert list(folder.iterdir()) == []
    assert scanned.file("a2d2", 1).read_bytes() == before


def test_a_wrong_column_is_named_with_a_hint(tell: Say, scanned: Store) -> None:
    _, err = tell("sql", "a2d2", "select scen from files", code=2)
    assert err.startswith('Referenced column "scen" not found')
    assert "scene" in err


def test_tags_are_columns_of_filters_and_outlive_a_scan(ask: Say, scanned: Store, tree: Path) -> None:
    assert ask("tag", "a2d2", "scene=20180801_145028", "weather=rain") == {"tagged": 9}
    assert ask("tag", "a2d2", "scene=20180802_145028", "weather=4.5") == {"tagged": 9}
    (tree / "new.txt").touch()
    ask("scan", tree, "--name", "a2d2")
    assert ask("find", "a2d2", "weather=rain")["count"] == 9
    assert ask("find", "a2d2", "weather=rain and kind=label")["count"] == 3
    assert ask("find", "a2d2", "weather>4")["count"] == 9
    assert ask("find", "a2d2", "weather!=rain")["count"] == 37 - 9
    ask("tag", "a2d2", "scene=20180801_145028", "weather=")
    assert ask("find", "a2d2", "weather=rain")["count"] == 0
    assert ask("tag", "a2d2", "frame>99", "weather=rain") == {"tagged": 0}


@pytest.mark.parametrize(
    ("tag", "message"),
    [
        ("weather", '"weather" is no tag'),
        ("a b=c", '"a b=c" is no tag'),
        ("scene=x", "scene is a column of a2d2 already"),
        ("Car=x", "Car is a column of a2d2 already"),
        ("class=x", "class is a column of a2d2 already"),
        ("path=x", "path is a column of a2d2 already"),
    ],
)
def test_a_tag_that_would_hide_a_column_is_refused(tell: Say, scanned: Store, tag: str, message: str) -> None:
    _, err = tell("tag", "a2d2", "frame=1", tag, code=2)
    assert err.startswith(message)
