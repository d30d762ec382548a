"""Scanning again only what changed: the generation is the one that a whole scan would make."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from podwright import catalog
from podwright.data.catalog import rescan as rescanning
from podwright.data.catalog.dataset import open_dataset
from podwright.data.catalog.rescan import rescan
from podwright.data.catalog.scan import scan
from podwright.data.catalog.store import Store
from podwright.data.policies.tags import tag
from podwright.data.tree.roots import Roots
from podwright.data.tree.watch import Changes, Watch
from tests.unit.data.conftest import Say


def add_and_remove(tree: Path) -> None:
    pictures = sorted(tree.rglob("*_camera_*.png"))
    pictures[0].unlink()
    (pictures[1].parent / "new.txt").write_text("new")


def rename_folder(tree: Path) -> None:
    (tree / "20180801_145028").rename(tree / "20180809_145028")


def swap_folders(tree: Path) -> None:
    (tree / "20180801_145028").rename(tree / "other")
    (tree / "20180802_145028").rename(tree / "20180801_145028")
    (tree / "other").rename(tree / "20180802_145028")


def remove_scene(tree: Path) -> None:
    shutil.rmtree(tree / "20180802_145028")


def make_deep(tree: Path) -> None:
    (tree / "a" / "b" / "c").mkdir(parents=True)
    (tree / "a" / "b" / "c" / "deep.txt").write_text("deep")


def folder_becomes_file(tree: Path) -> None:
    shutil.rmtree(tree / "20180803_145028" / "label")
    (tree / "20180803_145028" / "label").write_text("no folder any more")


CASES = (add_and_remove, rename_folder, swap_folders, remove_scene, make_deep, folder_becomes_file)
ROWS = """select d.path, f.name, f.size, f.mtime_ns, f.inode, f.owner, f.mode, f.type, f.scene, f.frame
    from file f join directory d on d.id = f.dir order by all"""
FOLDERS = 'select path, mode, owner, "group", mtime_ns, inode, uid, gid from directory order by all'


def contents(store: Store, dataset: str) -> list[tuple[object, ...]]:
    with open_dataset(store, dataset) as opened:
        return [*opened.connection.execute(ROWS).fetchall(), *opened.connection.execute(FOLDERS).fetchall()]


@pytest.mark.parametrize("change", CASES)
def test_a_quick_scan_gives_what_a_whole_one_gives(store: Store, tree: Path, change: Callable[[Path], None]) -> None:
    scan(store, tree, "quick")
    tag(store, "quick", "frame=3", "kept", "yes")
    change(tree)
    assert rescan(store, "quick").changed > 0
    scan(store, tree, "whole", layout="a2d2")
    assert contents(store, "quick") == contents(store, "whole")
    with open_dataset(store, "quick") as opened:
        assert opened.count_files(opened.condition("kept=yes")) > 0
    assert rescan(store, "quick").changed == 0


def test_only_folders_that_changed_are_listed(store: Store, tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scan(store, tree, "a2d2")
    (tree / "20180801_145028" / "label" / "new.txt").touch()
    looked_at: list[bytes] = []

    def walk_some(root: bytes, folders: list[bytes], *more: object) -> object:
        looked_at.extend(folders)
        return walk(root, folders, *more)

    walk = rescanning.walk_some
    monkeypatch.setattr(rescanning, "walk_some", walk_some)
    assert rescan(store, "a2d2").changed == 1
    assert looked_at == [b"20180801_145028/label/"]


def hear(tree: Path, change: Callable[[Path], None]) -> Changes:
    """What a watch says of a change."""
    watch = Watch(Roots(os.fsencode(tree)))
    try:
        change(tree)
        return next(watch.changes(0.2))
    finally:
        watch.close()


@pytest.mark.parametrize("change", CASES)
def test_what_a_watch_hears_is_enough_to_scan_again(store: Store, tree: Path, change: Callable[[Path], None]) -> None:
    scan(store, tree, "heard")
    changes = hear(tree, change)
    assert not changes.lost
    rescan(store, "heard", changes.folders, changes.trees)
    scan(store, tree, "whole", layout="a2d2")
    assert contents(store, "heard") == contents(store, "whole")


def test_a_watch_hears_of_files_that_are_written_over(store: Store, tree: Path) -> None:
    label = sorted(tree.rglob("*_label_*.png"))[0]
    changes = hear(tree, lambda _: label.write_bytes(b"other"))
    assert changes.folders == {os.fsencode(label.parent.relative_to(tree)) + b"/"}


def test_lost_events_are_said(tree: Path) -> None:
    watch = Watch(Roots(os.fsencode(tree)))
    try:
        # More than the kernel keeps for us by default, of two kinds so that none is taken for the one before it.
        kept = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
        file = tree / "busy"
        for _ in range(kept // 2 + 10):
            file.touch()
            file.chmod(0o600)
            file.unlink()
        assert next(watch.changes(0.2)).lost
    finally:
        watch.close()


def test_watching_publishes_what_changes_until_it_is_stopped(tell: Say, store: Store, tree: Path) -> None:
    scan(store, tree, "a2d2")
    over = threading.Event()
    generations = []
    for scanned in catalog().watch("a2d2", 0.1, over.is_set):
        generations.append((scanned.generation, scanned.changed))
        if len(generations) == 1:
            make_deep(tree)
        if len(generations) == 2:
            remove_scene(tree)
        if len(generations) == 3:
            over.set()
    assert [number for number, _ in generations] == [1, 2, 3]
    assert [count for _, count in generations] == [0, 1, 9]


def test_a_quick_scan_of_what_nobody_touched_says_what_a_scan_says(ask: Say, tree: Path) -> None:
    whole = ask("scan", tree, "--name", "a2d2")
    quick = ask("scan", tree, "--name", "a2d2", "--quick")
    assert {**quick, "took_s": 0} == {**whole, "took_s": 0, "changed": 0}
