"""What people put in stays: through renames, mounts that are gone, names given twice, and scans that were wrong."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from podwright.data.catalog.history import Keep, PastGeneration, past_to_keep
from podwright.data.catalog.store import Store
from tests.unit.data.conftest import Say

SCENE = "20180801_145028"


@pytest.fixture
def known(ask: Say, tree: Path) -> Path:
    """A dataset with checksums, class counts, and a tag on one scene."""
    ask("scan", tree, "--name", "a2d2", "--checksums")
    ask("stats", "a2d2")
    assert ask("tag", "a2d2", f"scene={SCENE}", "night=yes")["tagged"] == 9
    return tree


def knowledge(ask: Say, where: str) -> Any:
    """How many files there are, and how many have a tag, a checksum and counts."""
    query = f"select count(*), count(sha256), count(Sky) from files where {where}"
    tagged = f"select count(*) from tag where file in (select id from files where {where})"
    return [*ask("sql", "a2d2", query)["rows"][0], *ask("sql", "a2d2", tagged)["rows"][0]]


def test_a_scene_that_was_renamed_keeps_tags_checksums_and_counts(ask: Say, known: Path) -> None:
    before = knowledge(ask, f"path like '{SCENE}%'")
    assert before == [9, 9, 3, 9]
    (known / SCENE).rename(known / "20180899_145028")
    scanned = ask("scan", known, "--name", "a2d2")
    assert (scanned["renamed"], scanned["changed"]) == (9, 9)
    assert knowledge(ask, "path like '20180899_145028%'") == before
    assert ask("find", "a2d2", "night=yes and scene=20180899_145028")["count"] == 9
    assert ask("stats", "a2d2")["counted"] == 0


@pytest.mark.parametrize("quick", [(), ("--quick",)])
def test_a_file_that_was_renamed_or_moved_keeps_them(ask: Say, known: Path, quick: tuple[str, ...]) -> None:
    label = sorted((known / SCENE).rglob("*_label_*.png"))[0]
    to = known / "elsewhere" / f"{SCENE}_label_x_000000001.png"
    to.parent.mkdir()
    label.rename(to)
    assert ask("scan", known, "--name", "a2d2", *quick)["renamed"] == 1
    assert knowledge(ask, "path like 'elsewhere/%'") == [1, 1, 1, 1]


def test_the_person_who_scans_is_told(tell: Any, ask: Say, known: Path) -> None:
    (known / SCENE).rename(known / "20180899_145028")
    out, _ = tell("scan", known, "--name", "a2d2")
    assert "changed   9 changed, of them 9 renamed, generation " in out


def test_links_copies_and_inodes_that_are_used_again_inherit_nothing(ask: Say, known: Path) -> None:
    first, second, third = sorted((known / SCENE).rglob("*_camera_*.png"))
    os.link(first, first.with_name("link.png"))  # the old name stays
    shutil.copy2(second, second.with_name("copy.png"))
    os.link(third, third.with_name("one.png"))  # which of two it was renamed to, nobody knows
    third.rename(third.with_name("two.png"))
    assert ask("scan", known, "--name", "a2d2")["renamed"] == 0
    names = "('link.png', 'copy.png', 'one.png', 'two.png')"
    # Their checksums are their own: they were read, as each is as large as the one that is gone.
    assert knowledge(ask, f"name in {names}") == [4, 4, 0, 0]
    inode = first.stat().st_ino
    first.with_name("link.png").unlink()
    ask("scan", known, "--name", "a2d2")
    first.write_bytes(b"another, in the same inode")
    first.rename(first.with_name("renamed.png"))
    assert ask("scan", known, "--name", "a2d2")["renamed"] == 0
    assert first.with_name("renamed.png").stat().st_ino == inode
    assert knowledge(ask, "name = 'renamed.png'") == [1, 0, 0, 0]


@pytest.mark.parametrize("how", [(), ("--quick",)])
def test_a_root_that_is_not_mounted_is_refused_and_nothing_is_lost(
    ask: Say, known: Path, tmp_path: Path, how: tuple[str, ...]
) -> None:
    before = knowledge(ask, "true")
    generation = ask("ls", "a2d2")
    known.rename(tmp_path / "unmounted")
    known.mkdir()
    (problem,) = ask("scan", known, "--name", "a2d2", *how, code=3)["errors"]
    assert problem["message"] == f"{known} has no entry of last time: is it mounted? a2d2 stays as it was"
    assert "--emptied" in problem["hint"]
    assert ask("ls", "a2d2") == generation
    known.rmdir()
    (tmp_path / "unmounted").rename(known)
    assert ask("scan", known, "--name", "a2d2", *how)["changed"] == 0
    assert knowledge(ask, "true") == before


def test_a_dataset_with_labels_may_be_emptied_and_comes_back_by_its_history(ask: Say, known: Path) -> None:
    before, found = knowledge(ask, "true"), ask("find", "a2d2", "night=yes")["files"]
    shutil.rmtree(known)
    known.mkdir()
    scanned = ask("scan", known, "--name", "a2d2", "--emptied")
    assert (scanned["files"], scanned["layout"]) == (0, "plain")
    assert ask("find", "a2d2")["count"] == 0
    history = ask("history", "a2d2")
    assert [row["files"] for row in history] == [0, 36]
    assert [row["changed"] for row in history] == [36, 36]
    reverted = ask("revert", "a2d2", history[1]["generation"])
    assert reverted["generation"] == scanned["generation"] + 1
    assert knowledge(ask, "true") == before
    assert ask("find", "a2d2", "night=yes")["files"] == found


def test_what_was_tagged_since_stays_when_a_scan_is_reverted(ask: Say, known: Path) -> None:
    (known / "wrong.txt").write_text("wrong")
    ask("scan", known, "--name", "a2d2")
    ask("tag", "a2d2", "kind=label", "seen=yes")
    history = ask("history", "a2d2")
    assert len(history) == 2, "what adds to a generation takes its place"
    ask("revert", "a2d2", history[1]["generation"])
    assert ask("find", "a2d2", "name=wrong.txt")["count"] == 0
    assert ask("find", "a2d2", "seen=yes")["count"] == 12
    (problem,) = ask("revert", "a2d2", 77, code=2)["errors"]
    assert problem["message"] == "a2d2 has no generation 77 to go back to"


def past(generation: int, scan: int, size_bytes: int = 1) -> PastGeneration:
    return PastGeneration(generation, scan, 0.0, 0, 0, size_bytes)


def test_the_history_keeps_the_last_scans_and_so_many_bytes() -> None:
    history = [past(number, number // 2) for number in range(9, 0, -1)]
    assert [row.generation for row in past_to_keep(history, Keep())] == [9, 7, 5]
    assert [row.generation for row in past_to_keep(history, Keep(1))] == [9]
    large = [past(3, 3, 90), past(2, 2, 9), past(1, 1, 9)]
    assert [row.generation for row in past_to_keep(large, Keep(3, 100))] == [3, 2]
    assert [row.generation for row in past_to_keep(large, Keep(3, 1))] == [3]


def test_another_tree_under_a_known_name_is_refused(ask: Say, known: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.txt").write_text("a")
    for how in ((), ("--quick",)):
        (problem,) = ask("scan", other, "--name", "a2d2", *how, code=2)["errors"]
        assert problem["message"] == f"a2d2 is the name of another tree, {known}"
        assert f"podwright data move a2d2 {known} {other}" in problem["hint"]
        assert "--replace" in problem["hint"]
    assert knowledge(ask, "true")[0] == 36
    assert ask("scan", other, "--name", "a2d2", "--replace")["files"] == 1


def test_a_dataset_moves_with_all_that_is_known(ask: Say, known: Path, tmp_path: Path) -> None:
    before = knowledge(ask, "true")
    shutil.copytree(known, tmp_path / "new")  # other inodes and times
    shutil.rmtree(known)
    moved = ask("move", "a2d2", known, tmp_path / "new")
    assert (moved["root"], moved["files"]) == (str(tmp_path / "new"), 36)
    assert knowledge(ask, "true") == before
    assert ask("scan", tmp_path / "new", "--name", "a2d2")["changed"] == 0


def test_a_tree_that_is_not_the_same_is_no_move(ask: Say, known: Path, tmp_path: Path) -> None:
    shutil.copytree(known, tmp_path / "new")
    next((tmp_path / "new").rglob("*_label_*.png")).write_bytes(b"other")
    (problem,) = ask("move", "a2d2", known, tmp_path / "new", code=1)["errors"]
    assert problem["message"].startswith("1 of 36 files that were looked at are not in ")
    (problem,) = ask("move", "a2d2", "/nowhere", tmp_path / "new", code=2)["errors"]
    assert problem["message"] == f"a2d2 lies in {known}"


def test_a_policy_does_not_do_again_what_it_did_before_a_rename(ask: Say, known: Path) -> None:
    ask("policy", "add", "look", "--dataset", "a2d2", "--where", "kind=label", "--do", "tag", "--tag", "seen=yes")
    assert ask("policy", "run", "look")["done"] == 12
    (known / SCENE).rename(known / "20180899_145028")
    ask("scan", known, "--name", "a2d2")
    assert ask("policy", "run", "look", "--dry-run")["matched"] == 0
    assert ask("policy", "undo", "look")["state"] == "undone"
    assert ask("find", "a2d2", "kind=label")["count"] == 12
    assert ask("sql", "a2d2", "select count(*) from tag where name = 'seen'")["rows"] == [[0]]


def test_a_damaged_generation_is_named_and_the_one_before_is_there(ask: Say, store: Store, known: Path) -> None:
    (known / "new.txt").touch()
    generation = ask("scan", known, "--name", "a2d2")["generation"]
    store.file("a2d2", generation).write_bytes(b"no database" * 1000)
    (problem,) = ask("scan", known, "--name", "a2d2", code=2)["errors"]
    assert problem["message"].startswith("a2d2 cannot be read: ")
    ask("revert", "a2d2", ask("history", "a2d2")[1]["generation"])
    assert knowledge(ask, "true") == [36, 36, 12, 9]
    store.file("a2d2", generation + 1).write_bytes(b"no database" * 1000)
    assert ask("scan", known, "--name", "a2d2", "--replace")["files"] == 37


@pytest.fixture
def unlike(ask: Say, tree: Path) -> Path:
    """The same, and no two files have the same content."""
    for path in [path for path in tree.rglob("*") if path.is_file()]:
        with path.open("ab") as file:
            file.write(os.fsencode(path.relative_to(tree)))
    ask("scan", tree, "--name", "a2d2", "--checksums")
    ask("stats", "a2d2")
    ask("tag", "a2d2", f"scene={SCENE}", "night=yes")
    return tree


def test_a_file_that_came_back_from_a_backup_is_known_by_its_checksum(ask: Say, unlike: Path) -> None:
    """Another inode and another time: only what is in it tells."""
    known = unlike
    ask("policy", "add", "p", "--dataset", "a2d2", "--where", "night=yes", "--do", "tag", "--tag", "seen=yes")
    ask("policy", "run", "p")
    assert knowledge(ask, f"path like '{SCENE}%'") == [9, 9, 3, 18]
    shutil.copytree(known / SCENE, known / "20180899_145028", copy_function=shutil.copyfile)
    shutil.rmtree(known / SCENE)
    for path in (known / "20180899_145028").rglob("*.json"):
        path.write_text("the same name, and nothing of the same content\n")
    scanned = ask("scan", known, "--name", "a2d2")
    assert scanned["renamed"] == 6
    assert knowledge(ask, "path like '20180899%' and ext = 'png'") == [6, 6, 3, 12]
    assert ask("policy", "run", "p", "--dry-run")["matched"] == 0, "its marks went along"


def test_of_copies_none_inherits(ask: Say, unlike: Path) -> None:
    known = unlike
    gone = known / ask("find", "a2d2", "night=yes and ext=png", "--limit", 1)["files"][0]["path"]
    for name in ("one.png", "two.png"):
        shutil.copyfile(gone, known / name)
    gone.unlink()
    assert ask("scan", known, "--name", "a2d2")["renamed"] == 0
    assert ask("find", "a2d2", "night=yes", "--count")["count"] == 8
