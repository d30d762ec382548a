"""Layouts that a user writes in YAML: what they mean, that they stay with a dataset, and what is said of wrong ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

from podwright.data.tree.layout_files import parse_layout
from podwright.spec.problems import Refusal
from tests.unit.data.conftest import Say

LAYOUT = """\
files:
  image: "cam/{drive}/{frame:int}.jpg"
  label: "seg/{drive}/{frame:int}_mask.png"
  note: "**/{drive}/note_{frame:int}.*"
optional: [note]
classes:
  road: "#804080"
  car: ["#00008e", 7]
group: drive
"""


@pytest.fixture
def drives(tmp_path: Path) -> Path:
    root = tmp_path / "drives"
    for drive in ("a", "b"):
        (root / "cam" / drive).mkdir(parents=True)
        (root / "seg" / drive).mkdir(parents=True)
        for frame in range(3):
            Image.new("RGB", (4, 4)).save(root / "cam" / drive / f"{frame:06d}.jpg")
            label = Image.new("RGB", (4, 4), (0x80, 0x40, 0x80))
            label.putpixel((0, 0), (0, 0, 0x8E))
            label.putpixel((1, 0), (7, 7, 7))
            label.save(root / "seg" / drive / f"{frame}_mask.png")
    (root / "deep" / "er" / "a").mkdir(parents=True)
    (root / "deep" / "er" / "a" / "note_2.txt").touch()
    (root / "cam" / "a" / "000001.jpg.tmp").touch()
    (tmp_path / "drives.yaml").write_text(LAYOUT)
    return root


def test_a_layout_in_ten_lines_gives_columns_samples_and_classes(ask: Say, drives: Path, tmp_path: Path) -> None:
    scanned = ask("scan", drives, "--name", "d", "--layout", tmp_path / "drives.yaml")
    assert (scanned["layout"], scanned["files"]) == ("drives", 14)
    assert [row["path"] for row in ask("find", "d", "drive=b and frame=2")["files"]] == [
        "cam/b/000002.jpg",
        "seg/b/2_mask.png",
    ]
    assert ask("find", "d", "role=note")["files"][0]["path"] == "deep/er/a/note_2.txt"
    assert ask("find", "d", "not role=note and not frame>=0")["files"][0]["path"] == "cam/a/000001.jpg.tmp"
    counted = {row["name"]: (row["pixels"], row["images"]) for row in ask("stats", "d")["classes"]}
    assert counted == {"road": (6 * 14, 6), "car": (6 * 2, 6)}
    chosen = ask("select", "d", "--name", "s", "--split", "train=0.5,test=0.5", "--by", "drive")
    assert [split["count"] for split in chosen["splits"].values()] == [3, 3]
    files = ask("ls", "s", "--files")["files"]
    assert sorted(row["role"] for row in files) == ["image"] * 6 + ["label"] * 6 + ["note"]
    ask("stage", "s", "--to", tmp_path / "staged")
    samples = [json.loads(line) for line in (tmp_path / "staged" / "samples.jsonl").read_text().splitlines()]
    assert len(samples) == 6


def test_it_stays_with_the_dataset_where_its_file_is_gone(ask: Say, drives: Path, tmp_path: Path) -> None:
    ask("scan", drives, "--name", "d", "--layout", tmp_path / "drives.yaml")
    (tmp_path / "drives.yaml").unlink()
    (drives / "cam" / "a" / "7.jpg").touch()
    for words in ((), ("--quick",)):
        assert ask("scan", drives, "--name", "d", *words)["layout"] == "drives"
    assert [row["path"] for row in ask("find", "d", "frame=7")["files"]] == ["cam/a/7.jpg"]
    drives.rename(tmp_path / "elsewhere")
    assert ask("move", "d", drives, tmp_path / "elsewhere")["layout"] == "drives"
    assert ask("scan", tmp_path / "elsewhere", "--name", "d", "--layout", "plain")["layout"] == "plain"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("files: {image: 'a/{frame}.png', label: 'b/x.png'}", "have nothing in brackets in common"),
        ("files: {image: '/a/{frame}.png'}", "leads out of the dataset"),
        ("files: {image: '../{frame}.png'}", "leads out of the dataset"),
        ("files: {image: 'a/{Frame}.png'}", "has brackets that are not `{name}`"),
        ("files: {image: 'a/{size}.png'}", "size is a column of every dataset"),
        ("files: {image: 'a/{frame}.png'}\nclasses: {car: red}", "is no colour"),
        ("files: {image: 'a/{frame}.png'}\nclasses: {car: 256}", "is no colour"),
        ("files: {image: 'a/{frame}.png'}\ngroup: drive", "is in no path"),
        ("files: {image: 'a/{frame}.png'}\noptional: [label]", "is no role"),
        ("files: {\"o'ne\": 'a/{frame}.png'}", "is no name of a role"),
        ("file: {}", "file: unknown field"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, said: str) -> None:
    with pytest.raises(Refusal) as caught:
        parse_layout(text, "l.yaml")
    assert said in str(caught.value)
    assert str(caught.value).startswith("l.yaml:")
