"""The page of a selection: what it holds of the choice, of the classes and of the frames, whatever those are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from podwright.data.catalog.store import Store
from podwright.data.selecting.frames import SHOWN
from podwright.data.selecting.selections import load
from podwright.report.selection import render_selection
from tests.fixtures.a2d2 import write_scenes
from tests.unit.data.conftest import Say


@pytest.fixture
def counted(ask: Say, tmp_path: Path) -> Path:
    root = write_scenes(tmp_path / "a2d2", scenes=8, frames=3)
    ask("scan", root, "--name", "a2d2")
    ask("stats", "a2d2")
    return root


def test_it_shows_splits_classes_and_frames(ask: Say, tell: Say, counted: Path, tmp_path: Path) -> None:
    options = ["--split", "train=0.5,test=0.5", "--representative", "--where", "frame<99"]
    chosen = ask("select", "a2d2", "--name", "drive", *options)
    path = tmp_path / "drive.html"
    said, _ = tell("ls", "drive", "--page", path)
    assert said == f"page      {path.as_uri()}\n"
    text = path.read_text()
    assert "24 samples of a2d2 in 2 splits" in text
    assert chosen["digest"] in text
    assert "frame&lt;99" in text
    assert "classes as in the whole, rare ones kept" in text
    for name, split in chosen["splits"].items():
        assert f'<th scope="row">{name}</th><td class="num">{split["count"]}</td>' in text
        assert f'<td class="num">{split["distance"]:.3f}</td>' in text
    counts = {row["name"]: row["images"] for row in ask("stats", "a2d2")["classes"]}
    for name, images in counts.items():
        assert (f'<tr><th scope="row">{name}</th><td><svg' in text) == (images > 0)
    assert text.count("data:image/jpeg;base64,") == 2 * 2 * SHOWN
    assert not re.search(r'(src|href)="(http|//)', text)
    assert path.stat().st_mode & 0o777 == 0o600


def test_frames_that_cannot_be_shown_say_why(ask: Say, tell: Say, counted: Path, tmp_path: Path) -> None:
    ask("select", "a2d2", "--name", "two", "--size", 2)
    first, second = [counted / row["path"] for row in ask("ls", "two")["files"]]
    first.unlink()
    second.write_bytes(b"no image")
    tell("ls", "two", "--page", tmp_path / "two.html")
    text = (tmp_path / "two.html").read_text()
    assert "data:image/" not in text
    assert "no such file or directory" in text
    assert "is no image" in text


def test_a_selection_without_counts_has_a_page_too(ask: Say, store: Store, tmp_path: Path) -> None:
    ask("scan", write_scenes(tmp_path / "a2d2"), "--name", "a2d2")
    ask("select", "a2d2", "--name", "every")
    text = render_selection(load(store, "every"), {"all": []}, 0.0)
    assert "Pixels of its labels were not counted when it was frozen." in text
    assert "The dataset lies behind an address: its frames are not shown." in text


def test_a_dataset_has_a_page_of_what_a_filter_chooses(ask: Say, tell: Say, counted: Path, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    said, _ = tell("page", "a2d2", "Car>0 and frame<99", "--out", path, "--limit", 5)
    assert said == f"page      {path.as_uri()}\n"
    text = path.read_text()
    labels = {row["path"] for row in ask("find", "a2d2", "Car>0")["files"]}
    assert f"{len(labels)} samples of a2d2 where Car&gt;0 and frame&lt;99" in text
    assert text.count("data:image/jpeg;base64,") == 5 * 2
    assert "Car " in text
    assert not re.search(r'(src|href)="(http|//)', text)
    assert ask("page", "a2d2", "frame>99", "--out", path) == {"page": str(path), "samples": 0, "shown": 0}
    assert "No sample was chosen." in path.read_text()
