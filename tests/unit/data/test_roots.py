"""Datasets of several roots: bare paths of the first, labels before those of the others, nothing lost."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from podwright.data.catalog.dataset import open_dataset
from podwright.data.catalog.rescan import rescan
from podwright.data.catalog.scan import scan
from podwright.data.catalog.store import Store
from podwright.data.tree.roots import Roots
from podwright.data.tree.watch import Watch
from tests.fixtures.a2d2 import write_scenes
from tests.fixtures.counted import CountedServer
from tests.unit.data.conftest import Say


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """Two scenes in one folder, and two others elsewhere."""
    every = write_scenes(tmp_path / "a2d2", scenes=4, frames=2)
    other = tmp_path / "other"
    other.mkdir()
    for scene in sorted(path for path in every.iterdir() if path.is_dir())[2:]:
        shutil.move(scene, other / scene.name)
    return every, other


def test_further_roots_have_their_label_before_their_paths(ask: Say, two: tuple[Path, Path], tmp_path: Path) -> None:
    first, other = two
    alone = ask("scan", first, "--name", "alone")
    bare = {row["path"] for row in ask("find", "alone")["files"]}
    scanned = ask("scan", first, other, "--name", "both", "--label", "disk2", "--checksums")
    assert scanned["roots"] == [str(first), str(other)]
    assert scanned["labels"] == ["", "disk2"]
    assert scanned["layout"] == alone["layout"] == "a2d2"
    paths = {row["path"] for row in ask("find", "both")["files"]}
    further = {f"disk2/{path.relative_to(other)}" for path in other.rglob("*") if path.is_file()}
    assert paths == bare | further
    assert ask("sql", "both", "select count(*), count(sha256) from files")["rows"] == [[len(paths)] * 2]
    assert len(ask("sql", "both", "select distinct scene from files where scene is not null")["rows"]) == 4
    assert ask("stats", "both")["images"] == 8
    chosen = ask("select", "both", "--name", "s", "--split", "train=0.5,test=0.5", "--by", "scene", "--representative")
    assert sum(split["count"] for split in chosen["splits"].values()) == 8
    staged = tmp_path / "staged"
    ask("stage", "s", "--to", staged)
    whole = {f"disk2/{path.relative_to(other)}": path for path in other.rglob("*.png")}
    for name, path in whole.items():
        assert (staged / name).read_bytes() == path.read_bytes()
    described = ask("show", "both", next(iter(whole)))
    assert described["sample"]


def test_one_root_is_as_it_was_and_a_further_one_is_added_with_all_that_is_known(
    ask: Say, two: tuple[Path, Path]
) -> None:
    first, other = two
    ask("scan", first, "--name", "d", "--checksums")
    ask("tag", "d", "kind=label", "seen=yes")
    before = ask("select", "d", "--name", "before")["digest"]
    scanned = ask("scan", first, other, "--name", "d", "--label", "more")
    assert scanned["changed"] == len([path for path in other.rglob("*") if path.is_file()])
    assert ask("find", "d", "seen=yes", "--count")["count"] == 4
    assert ask("select", "d", "--name", "again", "--where", "not path~more/")["digest"] == before
    ask("tag", "d", "path~more/ and kind=label", "seen=yes")
    (other / next(other.iterdir()).name).rename(other / "20990101_000000")
    assert ask("scan", first, other, "--name", "d", "--label", "more")["renamed"] == 6
    assert ask("find", "d", "seen=yes", "--count")["count"] == 8


def test_what_clashes_is_refused_with_both(ask: Say, tell: Say, two: tuple[Path, Path], tmp_path: Path) -> None:
    first, other = two
    (first / "more").mkdir()
    _, err = tell("scan", first, other, "--name", "d", "--label", "more", code=2)
    assert err.startswith(f"--label: {first}/more and {other} have the same paths")
    _, err = tell("scan", first, other, tmp_path, "--name", "d", "--label", "a", "--label", "a", code=2)
    assert err.startswith(f"--label: a is the label of {other} and {tmp_path}")
    _, err = tell("scan", first, first / "more", "--name", "d", "--label", "a", code=2)
    assert err.startswith(f"{first} and {first}/more lie in each other")
    _, err = tell("scan", first, other, "--name", "d", code=2)
    assert err.startswith(f"--label: 0 labels for {other}")
    _, err = tell("scan", first, other, "--name", "d", "--label", "A/b", code=2)
    assert err.startswith('--label: "A/b" is no label')


def test_a_root_that_is_not_there_keeps_the_last_generation(
    ask: Say, tell: Say, two: tuple[Path, Path], tmp_path: Path
) -> None:
    first, other = two
    ask("scan", first, other, "--name", "d", "--label", "more")
    _, err = tell("scan", first, "--name", "d", code=2)
    assert f"more={other}" in err
    other.rename(tmp_path / "away")
    other.mkdir()
    for words in ((), ("--quick",)):
        _, err = tell("scan", first, other, "--name", "d", "--label", "more", *words, code=3)
        assert err.startswith(f"{other} has no entry of last time")
    assert ask("find", "d", "path~more/", "--count")["count"] == 12
    assert ask("move", "d", other, tmp_path / "away")["files"] == 24
    assert ask("find", "d", "--count")["count"] == 24


def test_a_folder_and_an_address_are_one_dataset(ask: Say, two: tuple[Path, Path], address: str) -> None:
    first, other = two
    ask("scan", first, other, "--name", "folders", "--label", "more", "--checksums")
    ask("scan", first, address, "--name", "mixed", "--label", "more", "--checksums")
    assert ask("stats", "mixed")["classes"] == ask("stats", "folders")["classes"]
    options = ["--split", "train=0.5,test=0.5", "--representative", "--seed", 3]
    chosen = [ask("select", name, "--name", f"s-{name}", *options) for name in ("folders", "mixed")]
    assert chosen[0]["digest"] == chosen[1]["digest"]


@pytest.fixture
def address(two: tuple[Path, Path]) -> Iterator[str]:
    """The second folder over HTTP."""
    with CountedServer(two[1]) as server:
        yield server.address


def test_roots_find_their_files() -> None:
    roots = Roots(b"/a", (("more", b"/b"), ("s3", b"s3://c/d")))
    for path, whole in ((b"x/y", b"/a/x/y"), (b"more/x", b"/b/x"), (b"s3/x/y", b"s3://c/d/x/y"), (b"mo/x", b"/a/mo/x")):
        assert roots.whole(path) == whole
        assert roots.below(whole) == roots.place(path)
    assert json.dumps(Roots(b"/a").kept()) == "{}"


def test_a_quick_scan_of_several_roots_gives_what_a_whole_one_gives(
    ask: Say, two: tuple[Path, Path], tmp_path: Path
) -> None:
    first, other = two
    words = (first, other, "--label", "more")
    ask("scan", *words, "--name", "quick")
    ask("tag", "quick", "kind=label", "seen=yes")
    scene = next(path for path in other.iterdir())
    scene.rename(other / "20990101_000000")
    (other / "new.txt").write_text("new")
    (first / "deep" / "er").mkdir(parents=True)
    (first / "deep" / "er" / "new.txt").write_text("new")
    scanned = ask("scan", *words, "--name", "quick", "--quick")
    assert (scanned["changed"], scanned["renamed"]) == (8, 6)
    ask("scan", *words, "--name", "whole")
    query = "select path, size, scene, frame, type from files order by all"
    assert ask("sql", "quick", query)["rows"] == ask("sql", "whole", query)["rows"]
    assert ask("find", "quick", "seen=yes", "--count")["count"] == 8
    assert ask("scan", *words, "--name", "quick", "--quick")["changed"] == 0
    (first / "more").mkdir()
    (problem,) = ask("scan", *words, "--name", "quick", "--quick", code=2)["errors"]
    assert problem["message"].startswith(f"{first}/more and {other} have the same paths")


def test_a_watch_hears_all_roots_that_are_folders(store: Store, two: tuple[Path, Path], address: str) -> None:
    first, other = two
    third = first.parent / "third"
    third.mkdir()
    (third / "a.txt").touch()
    roots = Roots(bytes(first), (("more", bytes(other)), ("web", address.encode()), ("third", bytes(third))))
    scan(store, roots, "d")
    watching = Watch(roots)
    try:
        (other / "new").mkdir()
        (third / "b.txt").touch()
        changes = next(watching.changes(0.2))
    finally:
        watching.close()
    assert (changes.folders, changes.trees, changes.lost) == ({b"more/", b"third/"}, {b"more/new/"}, False)
    (other / "new" / "c.txt").touch()
    assert rescan(store, "d", changes.folders, changes.trees).changed == 2
    with open_dataset(store, "d") as opened:
        assert opened.count_files(opened.condition("path~web/")) == 12
        assert opened.count_files(opened.condition("path=more/new/c.txt or path=third/b.txt")) == 2
