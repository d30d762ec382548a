"""Tags outlive generations: files that were away, generations that are damaged, of another format or taken back."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import duckdb
import pytest

from podwright.data.catalog import tag_journal
from podwright.data.catalog.files import FILE
from podwright.data.catalog.store import Store
from tests.unit.data.conftest import Say

SCENE, LATER = "20180801_145028", "20180899_145028"


@pytest.fixture
def known(ask: Say, tree: Path) -> Path:
    """A dataset with a tag on one scene."""
    ask("scan", tree, "--name", "a2d2")
    assert ask("tag", "a2d2", f"scene={SCENE}", "night=yes")["tagged"] == 9
    return tree


def tagged(ask: Say, where: str = "night=yes") -> list[str]:
    return [row["path"] for row in ask("find", "a2d2", where)["files"]]


def damage(store: Store) -> None:
    store.file("a2d2", store.generation("a2d2")).write_bytes(b"no database" * 1000)


def test_a_folder_that_was_not_mounted_comes_back_with_its_tags(ask: Say, known: Path, tmp_path: Path) -> None:
    before = tagged(ask)
    (known / SCENE).rename(tmp_path / "away")
    assert ask("scan", known, "--name", "a2d2")["files"] == 27
    (known / "new.txt").touch()
    ask("scan", known, "--name", "a2d2")
    (tmp_path / "away").rename(known / SCENE)
    ask("scan", known, "--name", "a2d2", "--quick")
    assert tagged(ask) == before


def test_another_file_at_a_known_path_gets_none(ask: Say, known: Path) -> None:
    first, *rest = tagged(ask)
    (known / first).unlink()
    ask("scan", known, "--name", "a2d2")
    (known / first).write_bytes(b"another")
    ask("scan", known, "--name", "a2d2")
    assert tagged(ask) == rest


def test_a_copy_at_the_old_path_of_a_renamed_file_gets_none(ask: Say, known: Path) -> None:
    first, *rest = tagged(ask)
    (known / first).rename(known / "renamed.png")
    assert ask("scan", known, "--name", "a2d2")["renamed"] == 1
    shutil.copy2(known / "renamed.png", known / first)
    ask("scan", known, "--name", "a2d2")
    assert sorted(tagged(ask)) == sorted(["renamed.png", *rest])


def test_what_was_tagged_last_stays_where_the_generation_of_today_is_damaged(
    ask: Say, store: Store, known: Path
) -> None:
    (known / "new.txt").touch()
    ask("scan", known, "--name", "a2d2")
    ask("tag", "a2d2", "kind=label", "seen=yes")
    ask("tag", "a2d2", f"scene={SCENE} and kind=label", "night=")
    before = tagged(ask), tagged(ask, "seen=yes")
    damage(store)
    ask("revert", "a2d2", ask("history", "a2d2")[1]["generation"])
    assert (tagged(ask), tagged(ask, "seen=yes")) == before
    assert [len(paths) for paths in before] == [6, 12]


@pytest.mark.parametrize("replaced", ["damaged", "other format"])
def test_a_generation_that_cannot_be_read_loses_no_tag(ask: Say, store: Store, known: Path, replaced: str) -> None:
    before = tagged(ask)
    if replaced == "damaged":
        damage(store)
    else:
        with duckdb.connect(str(store.file("a2d2", store.generation("a2d2")))) as connection:
            connection.execute("UPDATE meta SET value = '3' WHERE key = 'format'")
    ask("scan", known, "--name", "a2d2", *(["--replace"] if replaced == "damaged" else []))
    assert tagged(ask) == before


def test_another_tree_under_the_name_has_none(ask: Say, known: Path, tmp_path: Path) -> None:
    shutil.copytree(known, tmp_path / "other")  # with sizes and times
    ask("scan", tmp_path / "other", "--name", "a2d2", "--replace")
    assert ask("sql", "a2d2", "select count(*) from tag")["rows"] == [[0]]
    (tmp_path / "other" / "new.txt").touch()
    ask("scan", tmp_path / "other", "--name", "a2d2")
    assert ask("sql", "a2d2", "select count(*) from tag")["rows"] == [[0]]


def test_what_was_tagged_under_a_new_name_is_there_under_the_old(ask: Say, known: Path) -> None:
    (known / SCENE).rename(known / LATER)
    ask("scan", known, "--name", "a2d2")
    ask("tag", "a2d2", f"scene={LATER} and kind=label", "seen=yes")
    ask("tag", "a2d2", f"scene={LATER} and kind=camera", "night=")
    ask("revert", "a2d2", ask("history", "a2d2")[1]["generation"])
    assert {path.split("/")[0] for path in tagged(ask)} == {SCENE}
    assert (len(tagged(ask)), len(tagged(ask, "seen=yes"))) == (3, 3)
    assert ask("scan", known, "--name", "a2d2")["renamed"] == 9
    assert (len(tagged(ask)), len(tagged(ask, f"seen=yes and scene={LATER}"))) == (3, 3)


def test_files_that_are_gone_have_after_a_revert_what_they_had_last(ask: Say, known: Path) -> None:
    generation = ask("history", "a2d2")[0]["generation"]
    (known / "new.txt").touch()
    ask("scan", known, "--name", "a2d2")
    ask("tag", "a2d2", f"scene={SCENE}", "night=very")
    shutil.rmtree(known / SCENE)
    ask("scan", known, "--name", "a2d2")
    ask("revert", "a2d2", generation)
    assert len(tagged(ask, "night=very")) == 9


def test_a_catalog_from_before_there_was_a_journal_is_taken_over(
    ask: Say, store: Store, known: Path, tmp_path: Path
) -> None:
    shutil.rmtree(store.path / "a2d2" / tag_journal.FOLDER)
    before = tagged(ask)
    (known / SCENE).rename(tmp_path / "away")
    ask("scan", known, "--name", "a2d2")
    (tmp_path / "away").rename(known / SCENE)
    ask("scan", known, "--name", "a2d2")
    assert tagged(ask) == before


def test_what_a_killed_writer_noted_is_not_believed(ask: Say, store: Store, known: Path) -> None:
    """It is written before the generation it belongs to is there."""
    folder, generation = store.path / "a2d2" / tag_journal.FOLDER, store.generation("a2d2")
    with store.writing("a2d2") as draft:
        shutil.copyfile(store.file("a2d2", generation), draft / FILE)
        with store.building(draft) as connection:
            connection.execute("UPDATE tag SET value = 'wrong'")
            journal = store.tag_journal("a2d2")
            journal.load(connection)
            journal.note(connection, os.fsencode(known))
    assert len(list(folder.iterdir())) == 2
    damage(store)
    ask("scan", known, "--name", "a2d2", "--replace")
    assert ask("sql", "a2d2", "select distinct value from tag")["rows"] == [["yes"]]
    assert [path.stat().st_mode & 0o077 for path in (folder, *folder.iterdir())] == [0, 0]


def test_a_damaged_part_is_written_again(ask: Say, store: Store, known: Path) -> None:
    (part,) = (store.path / "a2d2" / tag_journal.FOLDER).iterdir()
    part.write_bytes(b"no parquet")
    ask("tag", "a2d2", "kind=label", "seen=yes")
    damage(store)
    ask("scan", known, "--name", "a2d2", "--replace")
    assert (len(tagged(ask)), len(tagged(ask, "seen=yes"))) == (9, 12)


def test_a_long_journal_is_made_short_and_says_the_same(
    ask: Say, store: Store, known: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tag_journal, "MAX_PARTS", 3)
    for number in range(6):
        ask("tag", "a2d2", f"scene={SCENE}", f"night={number}")
        ask("tag", "a2d2", "kind=label", f"t{number}={number}")
    ask("tag", "a2d2", "kind=label", "t1=")
    parts = list((store.path / "a2d2" / tag_journal.FOLDER).iterdir())
    assert len(parts) <= 4
    before = ask("sql", "a2d2", "select * from tag order by all")["rows"]
    damage(store)
    ask("scan", known, "--name", "a2d2", "--replace")
    assert ask("sql", "a2d2", "select * from tag order by all")["rows"] == before
