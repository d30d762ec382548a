"""The maker of scenes: A2D2's layout, to the letter, and the same pictures every time."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from classes import a2d2_classes
from scenes import Plan, make
from tests.programs.conftest import PROGRAM

SMALL = Plan(frames=8, scenes=2, cameras=("front_center", "side_left"), size=(64, 40))
IMAGE = re.compile(
    r"(?P<scene>\d{8}_\d{6})/camera/cam_(?P<camera>[a-z_]+)/(?P<stamp>\d{14})_camera_(?P<short>[a-z]+)_(?P<frame>\d{9})\.png"
)


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*.*")) if path.is_file()}


def pixels_of(path: Path) -> np.ndarray:
    with Image.open(path) as image:
        return np.array(image)


def test_layout(frames: Path) -> None:
    images = sorted(path.relative_to(frames).as_posix() for path in frames.glob("*/camera/*/*.png"))
    assert len(images) == 18
    for image in images:
        found = IMAGE.fullmatch(image)
        assert found, image
        assert found["stamp"] == found["scene"].replace("_", "")
        assert found["short"] == found["camera"].replace("_", "")
        assert (frames / image.replace("/camera/", "/label/").replace("_camera_", "_label_")).is_file()
    assert not list(frames.glob("*/lidar"))


def test_class_list_has_all_colours(frames: Path) -> None:
    assert json.loads((frames / "class_list.json").read_text()) == a2d2_classes().labels


def test_camera_record(frames: Path) -> None:
    path = next(frames.glob("*/camera/cam_rear_center/*.json"))
    record = json.loads(path.read_text())
    assert set(record) == {"cam_name", "cam_tstamp", "image_png", "pcld_npz", "pcld_view", "lidar_ids"}
    assert record["cam_name"] == "rear_center"
    assert record["image_png"] == path.with_suffix(".png").name
    assert record["pcld_npz"] == path.with_suffix(".npz").name.replace("_camera_", "_lidar_")
    assert isinstance(record["cam_tstamp"], int)


def test_labels_have_known_colours_only_and_rare_classes_are_rare(frames: Path) -> None:
    classes = a2d2_classes()
    pixels = np.concatenate([pixels_of(path).reshape(-1, 3) for path in frames.glob("*/label/*/*.png")])
    colours, counts = np.unique(pixels @ np.array([1 << 16, 1 << 8, 1]), return_counts=True)
    seen = dict.fromkeys(classes.names, 0)
    for colour, count in zip(colours.tolist(), counts.tolist(), strict=True):
        seen[classes.names[classes.ids[colour]]] += count
    assert seen["RD normal street"] > 10 * seen["Pedestrian"]
    assert seen["Buildings"] > 10 * seen["Traffic sign"] > 0


def test_same_plan_same_files_whatever_came_before(tmp_path: Path) -> None:
    make(SMALL, tmp_path / "one")
    make(SMALL, tmp_path / "two")
    assert files(tmp_path / "one") == files(tmp_path / "two")


def test_frames_and_seeds_differ(tmp_path: Path) -> None:
    make(SMALL, tmp_path / "one")
    make(Plan(**{**SMALL.__dict__, "seed": 1}), tmp_path / "two")
    one, two = files(tmp_path / "one"), files(tmp_path / "two")
    images = [name for name in one if "/camera/" in name and name.endswith(".png")]
    assert len({one[name] for name in images}) == len(images)
    assert all(one[name] != two[name] for name in images)


def test_an_equal_set_is_kept(tmp_path: Path) -> None:
    counts = make(SMALL, tmp_path / "set")
    marked = tmp_path / "set" / "class_list.json"
    inode = marked.stat().st_ino
    assert make(SMALL, tmp_path / "set") == counts
    assert marked.stat().st_ino == inode


def test_another_plan_replaces_the_set(tmp_path: Path) -> None:
    make(SMALL, tmp_path / "set")
    make(Plan(frames=4, scenes=1, size=(64, 40)), tmp_path / "set")
    assert len(list((tmp_path / "set").glob("*/camera/*/*.png"))) == 4
    assert [path.name for path in tmp_path.iterdir()] == ["set"]


def test_a_foreign_folder_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(FileExistsError, match="holds something that was not made here"):
        make(SMALL, tmp_path)
    assert files(tmp_path) == {"mine.txt": b"keep"}


def test_command_line(tmp_path: Path) -> None:
    command = [
        sys.executable,
        PROGRAM / "scenes.py",
        tmp_path / "set",
        "--frames",
        "6",
        "--scenes",
        "2",
        "--size",
        "64x40",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert re.fullmatch(r"6 frames, 2 scenes, \d+ classes\n", done.stdout)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--frames", "2", "--scenes", "3"], "2 frames are too few for 3 scenes: each needs one"),
        (["--cameras", "front"], "front is not a camera; there are front_center, front_left"),
        (["--size", "8x8"], '"8x8" is not a size like 176x112'),
    ],
)
def test_wrong_arguments(tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str) -> None:
    from scenes import read_arguments

    with pytest.raises(SystemExit) as caught:
        read_arguments([str(tmp_path / "set"), *arguments])
    assert caught.value.code == 2
    assert words in capsys.readouterr().err
