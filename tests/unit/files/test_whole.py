"""Files and folders that appear whole or not at all."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path

from podwright.files.whole import make_private, whole_file, whole_path, write_whole


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_that_was_not_written_whole_leaves_the_older_one(tmp_path: Path) -> None:
    write_whole(tmp_path / "a", b"old", mode=0o640)
    with suppress(RuntimeError), whole_file(tmp_path / "a") as file:
        file.write(b"new")
        raise RuntimeError
    assert (tmp_path / "a").read_bytes() == b"old"
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o640
    assert names(tmp_path) == ["a"]


def test_a_folder_takes_the_place_of_an_older_one_at_once(tmp_path: Path) -> None:
    for name in ("first", "second"):
        with whole_path(tmp_path / "made") as part:
            part.mkdir()
            (part / name).touch()
    assert names(tmp_path) == ["made"]
    assert names(tmp_path / "made") == ["second"]


def test_a_folder_that_was_not_made_whole_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / ".part-made").mkdir()  # of a maker that was killed
    (tmp_path / ".part-made" / "old").touch()
    with suppress(RuntimeError), whole_path(tmp_path / "made") as part:
        assert not part.exists()
        part.mkdir()
        raise RuntimeError
    assert names(tmp_path) == []


def test_a_maker_that_makes_nothing_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "made.txt").write_text("old")
    with whole_path(tmp_path / "made.txt") as part:
        assert part.suffix == ".txt"
    assert (tmp_path / "made.txt").read_text() == "old"


def test_a_link_takes_the_place_of_an_older_one(tmp_path: Path) -> None:
    for name in ("g1", "g2"):
        (tmp_path / name).mkdir()
        with whole_path(tmp_path / "current") as link:
            link.symlink_to(name)
    assert (tmp_path / "current").readlink() == Path("g2")
    assert names(tmp_path) == ["current", "g1", "g2"]


def test_a_file_and_private_folders_have_their_mode_whatever_the_umask_is(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        write_whole(tmp_path / "a", b"", mode=0o644)
        os.umask(0)
        make_private(tmp_path / "outer" / "inner")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a").stat().st_mode) == 0o644
    folders = (tmp_path / "outer", tmp_path / "outer" / "inner")
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in folders] == [0o700, 0o700]
