"""A catalog of somebody else is data: whatever its files hold, and whatever becomes of their names, none is run."""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path

import duckdb
import pytest
from pyroaring import BitMap

from podwright.data.catalog import files
from podwright.data.catalog.dataset import Dataset, open_dataset
from podwright.data.catalog.files import check_files, open_files
from podwright.data.catalog.scan import scan
from podwright.data.catalog.store import Store, _sync
from tests.unit.data.conftest import Say


@pytest.fixture
def scanned(store: Store, tree: Path) -> Store:
    scan(store, tree, "a2d2")
    return store


def poisoned(path: Path, written: Path, seed: Path) -> Path:
    """A catalog's file with SQL for names: of tables, of a view, in the texts that stand in SQL again."""
    path.write_bytes(seed.read_bytes())
    with duckdb.connect(str(path)) as connection:
        copy = f"COPY (SELECT 'written') TO '{written}'"
        connection.execute(f'CREATE TABLE "zz AS SELECT 1; {copy}; --" (a INTEGER)')
        connection.execute(f"CREATE OR REPLACE VIEW files AS SELECT content FROM read_text('{seed.parent.parent}/*')")
        connection.execute("CREATE TABLE spans AS SELECT * REPLACE (part::VARCHAR AS part) FROM span")
        connection.execute("DROP TABLE span")
        connection.execute("ALTER TABLE spans RENAME TO span")
        connection.execute("UPDATE span SET part = ?", [f"0; {copy}; --"])
    return path


def test_the_bytes_that_were_checked_are_the_bytes_that_are_read(scanned: Store, tmp_path: Path) -> None:
    written = tmp_path / "written"
    path = scanned.file("a2d2", 1)
    other = poisoned(tmp_path / "other.duckdb", written, path)
    checked = check_files(path.parent)
    other.rename(path)
    with open_files(checked) as opened:
        dataset = Dataset(scanned, "a2d2", opened)
        assert dataset.count(dataset.condition("kind=label"))[0] == 12
        assert dataset.query("select count(*) from files").rows == [[36]]
        tables = opened.connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()
    assert not [name for (name,) in tables if name.startswith("zz")]
    assert not written.exists()


def test_a_file_that_another_replaces_while_it_is_opened_is_not_read(
    scanned: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = scanned.file("a2d2", 1)
    other = poisoned(tmp_path / "other.duckdb", tmp_path / "written", path)
    checked = check_files(path.parent)
    # As if DuckDB had asked for the name of the open file just before another came there.
    monkeypatch.setattr(files, "_link", lambda descriptor: str(other))
    with pytest.raises(OSError, match="it was replaced while it was opened"):
        open_files(checked)


@pytest.mark.parametrize("parts", [1, 2])
def test_names_of_a_catalog_are_never_sql(scanned: Store, tmp_path: Path, parts: int) -> None:
    written = tmp_path / "written"
    generation = scanned.file("a2d2", 1).parent
    hostile = poisoned(tmp_path / "other.duckdb", written, scanned.file("a2d2", 1))
    others = [hostile, Path(shutil.copy(hostile, tmp_path / "copy.duckdb"))]
    descriptors = tuple(os.open(path, os.O_RDONLY) for path in others[:parts])
    with open_files(files.CheckedFiles(descriptors)) as opened:
        dataset = Dataset(scanned, "a2d2", opened)
        assert dataset.query("select count(*) from file").rows == [[36 * parts]]
        with pytest.raises(ValueError, match="COPY"):
            dataset.count(dataset.condition("frame>1"))
    assert not written.exists()
    assert generation.exists()


@pytest.mark.parametrize(
    "statement",
    [
        "COPY (SELECT 1) TO '{folder}/out'",
        "ATTACH '{folder}/home/catalog/other.duckdb' AS other (READ_ONLY)",
        "ATTACH '{folder}/new.duckdb' AS other",
        "SELECT * FROM read_text('{folder}/a2d2/*')",
        "SET enable_external_access = true",
        "SET allowed_paths = ['{folder}/out']",
        "LOAD httpfs",
    ],
)
def test_the_connection_of_a_reader_reaches_nothing_else(scanned: Store, tmp_path: Path, statement: str) -> None:
    with scanned.connect("a2d2") as opened, pytest.raises(duckdb.Error, match=r"disabled|locked|allowed_paths"):
        opened.connection.execute(statement.format(folder=tmp_path))
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("path", ["../../../etc/passwd", "/etc/passwd", "0//rows.duckdb", "./rows.duckdb"])
def test_a_listed_path_does_not_lead_out_of_the_generation(scanned: Store, path: str) -> None:
    generation = scanned.file("a2d2", 1).parent
    with pytest.raises(OSError, match="leads out of the generation"):
        files._open_shared(generation, path, os.getuid())


def test_a_view_in_place_of_a_table_is_refused(scanned: Store, ask: Say) -> None:
    with duckdb.connect(str(scanned.file("a2d2", 1))) as connection:
        connection.execute("ALTER TABLE tag RENAME TO other")
        connection.execute("CREATE VIEW tag AS SELECT file, name, value FROM other")
    (problem,) = ask("find", "a2d2", code=2)["errors"]
    assert problem["message"] == "a2d2 cannot be read: it has no table tag"


@pytest.mark.parametrize("change", ["ALTER TABLE file DROP COLUMN size", "DELETE FROM meta WHERE key = 'root'"])
def test_a_catalog_that_lacks_something_is_named_in_words(scanned: Store, ask: Say, change: str) -> None:
    with duckdb.connect(str(scanned.file("a2d2", 1))) as connection:
        connection.execute(change)
    (problem,) = ask("find", "a2d2", code=2)["errors"]
    assert problem["message"].startswith("a2d2 cannot be read: ")


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ("UPDATE span_blocks_0 SET rows = ?", b"no set"),
        ("UPDATE span SET least = ?", None),
        ("UPDATE bitmap SET rows = ?", BitMap([1 << 20]).serialize()),
    ],
)
def test_an_index_that_no_scan_makes_is_named_in_words(
    scanned: Store, ask: Say, change: str, value: bytes | None
) -> None:
    with duckdb.connect(str(scanned.file("a2d2", 1))) as connection:
        connection.execute(change, [value])
    (problem,) = ask("find", "a2d2", "size>=1B or kind=label", code=2)["errors"]
    assert "a2d2 cannot be read: an index " in problem["message"]


def test_a_pipe_in_a_generation_holds_up_nobody(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    _sync(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("pipe")
    with pytest.raises(OSError, match="symbolic links"):
        _sync(tmp_path / "link")


@pytest.mark.nightly
def test_a_thousand_swaps_while_readers_open_are_never_read(scanned: Store, tmp_path: Path) -> None:
    written, path = tmp_path / "written", scanned.file("a2d2", 1)
    good, bad = path.read_bytes(), poisoned(tmp_path / "other.duckdb", written, path).read_bytes()
    ended = threading.Event()

    def swap() -> None:
        new = tmp_path / "new.duckdb"
        while not ended.is_set():
            for content in (bad, good):
                new.write_bytes(content)
                new.rename(path)

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        for _ in range(1000):
            with open_dataset(scanned, "a2d2") as opened:
                assert opened.query("select count(*) from files").rows == [[36]]
    finally:
        ended.set()
        swapping.join()
    assert not written.exists()
