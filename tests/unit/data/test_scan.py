"""Scanning: what is found, what changed, and what readers see meanwhile."""

from __future__ import annotations

import base64
import io
import os
import subprocess
from pathlib import Path

import duckdb
import pytest

from podwright.data.catalog.dataset import open_dataset
from podwright.data.catalog.scan import build_tables, scan
from podwright.data.catalog.schema import number_statements
from podwright.data.catalog.staging import Staging
from podwright.data.catalog.store import Store
from podwright.data.tree import walk, walk_folders
from podwright.data.tree.layouts import A2D2
from podwright.data.tree.walk_folders import FIELDS
from podwright.spec.problems import Refusal
from tests.unit.data.conftest import Say


def test_a_scan_counts_what_find_counts(ask: Say, tree: Path) -> None:
    scanned = ask("scan", tree, "--name", "a2d2")
    listed = subprocess.run(["find", tree, "-type", "f", "-printf", "%s\n"], capture_output=True, text=True, check=True)
    sizes = list(map(int, listed.stdout.split()))
    assert (scanned["dataset"], scanned["files"], scanned["bytes"]) == ("a2d2", len(sizes), sum(sizes))
    assert scanned["directories"] == 1 + 4 * 5
    assert (scanned["layout"], scanned["changed"], scanned["generation"]) == ("a2d2", len(sizes), 1)
    assert scanned["unread"] == []


def test_a_tree_that_is_as_it_was_has_no_new_generation(ask: Say, tree: Path) -> None:
    ask("scan", tree, "--name", "a2d2")
    again = ask("scan", tree, "--name", "a2d2")
    assert (again["changed"], again["generation"]) == (0, 1)


def test_what_came_went_and_was_written_anew_is_counted(ask: Say, tree: Path) -> None:
    before = ask("scan", tree, "--name", "a2d2")
    pictures = sorted(tree.rglob("*_camera_*.png"))
    pictures[0].unlink()
    pictures[1].write_bytes(b"other")
    (pictures[2].parent / "new.txt").write_text("new")
    after = ask("scan", tree, "--name", "a2d2")
    assert (after["changed"], after["generation"], after["files"]) == (3, 2, before["files"])


def test_typed_columns_are_read_from_the_path(ask: Say, tree: Path) -> None:
    ask("scan", tree, "--name", "a2d2")
    wanted = "scene=20180802_145028 and camera=front_center and kind=label and frame>=2"
    answer = ask("find", "a2d2", wanted)
    assert answer["count"] == 2
    row = answer["files"][0]
    path = "20180802_145028/label/cam_front_center/20180802145028_label_frontcenter_000000002.png"
    assert row["path"] == path
    assert row["size"] == (tree / path).stat().st_size
    assert {row[name] for name in ("scene", "camera", "kind", "frame")} == {
        "20180802_145028",
        "front_center",
        "label",
        2,
    }


def test_limit_bounds_the_files_and_not_the_count(ask: Say, tree: Path) -> None:
    ask("scan", tree, "--name", "a2d2")
    answer = ask("find", "a2d2", "--limit", 2)
    assert (answer["count"], len(answer["files"])) == (36, 2)


ODD = [b"new\nline.png", b"\xff\xfe.png", b"a%b.txt", b"per%cent\xff.txt", "grün.png".encode(), b" leading.txt", b"-rf"]


def touch(folder: bytes) -> None:
    """Make a folder with a file of each odd name in it."""
    Path(os.fsdecode(folder)).mkdir(parents=True)
    for name in ODD:
        Path(os.fsdecode(folder + b"/" + name)).touch()


def test_names_are_bytes(ask: Say, store: Store, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    root = os.fsencode(tmp_path / "odd")
    for folder in (b"plain", b"b\xc3d"):
        touch(root + b"/" + folder)
    ask("scan", tmp_path / "odd", "--name", "odd")
    answer = ask("find", "odd")
    told = set()
    for row in answer["files"]:
        raw = row["path"].encode()
        if "path_bytes" in row:
            raw = base64.b64decode(row["path_bytes"])
        told.add(raw)
    assert told == {folder + b"/" + name for folder in (b"plain", b"b\xc3d") for name in ODD}
    odd_row = next(row for row in answer["files"] if row["path"] == "plain/per%25cent%FF.txt")
    assert base64.b64decode(odd_row["path_bytes"]) == b"plain/per%cent\xff.txt"


def test_print0_gives_whole_paths_as_bytes(
    store: Store, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    from podwright.cli.main import main

    root = os.fsencode(tmp_path / "odd")
    touch(root)
    paths = {root + b"/" + name for name in ODD}
    scan(store, tmp_path / "odd", "odd")
    assert main(["data", "find", "odd", "--print0"]) == 0
    assert set(capfdbinary.readouterr().out.removesuffix(b"\0").split(b"\0")) == paths


def test_links_and_pipes_are_listed_and_not_followed(ask: Say, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "loop").symlink_to(root)
    (root / "gone").symlink_to("nowhere")
    os.mkfifo(root / "pipe")
    assert ask("scan", root, "--name", "odd")["files"] == 3
    assert ask("find", "odd", "type=link")["count"] == 2
    assert ask("find", "odd", "type=special")["count"] == 1


def test_times_before_1970_and_after_2262_are_numbers(tmp_path: Path) -> None:
    written = {"early": -1_500_000_000, "late": 10_000_000_000, "now": 1_700_000_000}
    for name, second in written.items():
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (second, second))
    batch = walk.walk_some(os.fsencode(tmp_path), [b""], 10)
    times = batch.files.numbers[FIELDS.index("mtime_ns")]
    largest = (1 << 63) - 1
    names = batch.files.names.decode().split("\0")[:-1]
    kept = {name: min((tmp_path / name).stat().st_mtime_ns, largest) for name in written}
    assert dict(zip(names, times.tolist(), strict=True)) == kept
    assert kept["early"] < 0


def test_a_large_tree_is_dealt_out_to_processes_and_is_the_same(tmp_path: Path) -> None:
    for number in range(60):
        folder = tmp_path / f"{number % 7}" / f"{number}"
        folder.mkdir(parents=True)
        for name in range(number % 5):
            (folder / f"{name}.txt").touch()
    root = os.fsencode(tmp_path)
    alone, dealt = list(walk.walk(root, 1, entries=10)), list(walk.walk(root, 2, entries=10))
    assert len(dealt) > 1
    assert sorted(names(alone)) == sorted(names(dealt))
    assert len(names(alone)) == sum(number % 5 for number in range(60))


def test_what_a_process_sent_before_it_was_killed_is_not_taken_for_all(tree: Path) -> None:
    walked = walk_folders.walk_folders(os.fsencode(tree), [b""], 1000, lists=True)
    sent = io.BytesIO()
    walk_folders.send(walked, sent)
    assert walk_folders.receive(io.BytesIO(sent.getvalue())) == walked
    for size in range(len(sent.getvalue())):
        with pytest.raises((EOFError, ValueError, TypeError)):
            walk_folders.receive(io.BytesIO(sent.getvalue()[:size]))


def test_rows_are_the_same_whether_they_stay_in_memory_or_are_written(tree: Path, tmp_path: Path) -> None:
    touch(os.fsencode(tree) + b"/b\xc3d")
    written = tmp_path / "staging.duckdb"
    assert staged(tree, written, 10) == staged(tree, written, 1_000_000)
    assert not written.exists()


@pytest.mark.parametrize("files", [0, 1, 3, 10])
def test_files_are_numbered_in_their_order_portion_by_portion(files: int) -> None:
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE file AS SELECT NULL::BIGINT AS id, range AS place FROM range({files})")
        for statement in number_statements(files, portion=3):
            connection.execute(statement)
        assert connection.execute("SELECT id, place FROM file").fetchall() == [(place, place) for place in range(files)]


def staged(tree: Path, path: Path, rows: int) -> list[list[tuple[object, ...]]]:
    """All folders and files of a tree as a generation has them, where so many rows are held in memory."""
    with duckdb.connect() as connection:
        staging = Staging(connection, path, rows)
        for batch in walk.walk(os.fsencode(tree), 2, entries=10):
            staging.take(batch)
        assert path.exists() == (rows == 10)
        staging.finish()
        build_tables(connection, A2D2)
        staging.close()
        return [connection.execute(f"FROM {table} ORDER BY id").fetchall() for table in ("directory", "file")]


def names(batches: list[walk.Batch]) -> list[bytes]:
    """Every file's path below the root."""
    paths = []
    for batch in batches:
        files = iter(batch.files.names.split(b"\0"))
        for folder, count in zip(batch.folders.names.split(b"\0"), batch.counts, strict=False):
            paths += [folder + next(files) for _ in range(count)]
    return paths


def test_a_reader_keeps_its_generation_while_others_are_published(store: Store, tree: Path) -> None:
    scan(store, tree, "a2d2")
    with open_dataset(store, "a2d2") as before:
        for number in range(3):
            (tree / f"{number}.txt").touch()
            scan(store, tree, "a2d2")
        assert before.count(before.condition("name~txt"))[0] == 0
    with open_dataset(store, "a2d2") as after:
        assert after.count(after.condition("name~txt"))[0] == 3
    kept = sorted(path.name for path in (store.path / "a2d2").iterdir() if path.name.startswith("g"))
    assert kept == ["g000002", "g000003", "g000004"], "the last three scans"


def test_a_second_writer_is_refused(store: Store, tree: Path) -> None:
    with store.writing("a2d2"), pytest.raises(Refusal, match="a2d2 is being written by another command"):
        scan(store, tree, "a2d2")


def test_the_rest_of_a_killed_writer_is_removed(store: Store, tree: Path) -> None:
    scan(store, tree, "a2d2")
    folder = store.path / "a2d2"
    for name in (".g000002.part", "g000002"):
        (folder / name).mkdir()
        (folder / name / "own.duckdb").write_bytes(b"half")
    (folder / ".current.part").symlink_to("g000002")
    (tree / "new.txt").touch()
    assert scan(store, tree, "a2d2").generation == 2
    with open_dataset(store, "a2d2") as opened:
        assert opened.count(opened.condition("name=new.txt"))[0] == 1
    assert sorted(path.name for path in folder.iterdir()) == ["current", "g000001", "g000002", "lock"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("scan", "/nowhere", "--name", "x"), "/nowhere: there is no such folder"),
        (("scan", "/etc/passwd", "--name", "x"), "/etc/passwd: is a file, not a folder"),
        (("scan", "/etc", "--name", "a/b"), '--name: "a/b" is no name'),
        (("scan", "/etc", "--name", "x", "--layout", "y"), '--layout: there is no layout "y"'),
        (("find", "a2d3"), 'there is no dataset "a2d3"\n\nhint: did you mean `a2d2`?'),
        (("find", "../runs"), 'there is no dataset "../runs"'),
    ],
)
def test_bad_input_is_refused_in_words(
    tell: Say, store: Store, tree: Path, words: tuple[str, ...], message: str
) -> None:
    scan(store, tree, "a2d2")
    _, err = tell(*words, code=2)
    assert err.startswith(message)


def test_a_catalog_file_that_is_damaged_is_named(tell: Say, store: Store, tree: Path) -> None:
    scan(store, tree, "a2d2")
    store.file("a2d2", 1).write_bytes(b"no database" * 1000)
    _, err = tell("find", "a2d2", code=2)
    assert err.startswith("a2d2 cannot be read: ")
    assert "`revert` goes back to" in err
