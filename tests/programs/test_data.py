"""Frames on disk: pairing, colours to classes, the split by scene, and who trains on what."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from classes import IGNORE, a2d2_classes
from data import Frames, find_frames, frames_root, split_by_scene, thin_out
from scenes import YAWS_DEGREES, Plan, make


def write(root: Path, scene: str, camera: str, number: int, label: np.ndarray | None) -> Path:
    stem = f"{scene.replace('_', '')}_{{}}_{camera.replace('_', '')}_{number:09d}.png"
    for kind, pixels in (("camera", np.zeros((24, 32, 3), np.uint8)), ("label", label)):
        path = root / scene / kind / f"cam_{camera}" / stem.format(kind)
        path.parent.mkdir(parents=True, exist_ok=True)
        if pixels is not None:
            Image.fromarray(pixels).save(path)
    return root / scene / "camera" / f"cam_{camera}" / stem.format("camera")


def plain(colour: tuple[int, int, int]) -> np.ndarray:
    return np.full((24, 32, 3), colour, np.uint8)


def test_every_picture_finds_its_label(frames: Path) -> None:
    found = find_frames(frames, (), pytest.fail)
    assert len(found) == 18
    for frame in found:
        assert frame.label.is_file()
        assert frame.image.name.replace("_camera_", "_label_") == frame.label.name
        assert frame.image.parts[-4] == frame.label.parts[-4] == frame.scene


def test_cameras_are_chosen_by_name(frames: Path) -> None:
    found = find_frames(frames, ("rear_center",), pytest.fail)
    assert {frame.camera for frame in found} == {"rear_center"}
    assert len(found) == 9


def test_frames_without_label_are_left_out_with_one_line(tmp_path: Path) -> None:
    write(tmp_path, "20260101_000000", "front_center", 1, plain((255, 0, 0)))
    first = write(tmp_path, "20260101_000000", "front_center", 2, None)
    lines: list[str] = []
    assert len(find_frames(tmp_path, (), lines.append)) == 1
    assert lines == [f"1 frame has no label and is left out: {first}"]
    write(tmp_path, "20260101_000000", "front_center", 3, None)
    assert len(find_frames(tmp_path, (), lines.append)) == 1
    assert lines[1:] == [f"2 frames have no label and are left out, the first: {first}"]


def test_unknown_colours_are_ignored_with_one_warning(tmp_path: Path) -> None:
    label = plain((0x87, 0xCE, 0xFF))
    label[:5] = (1, 2, 3)
    for number in (1, 2):
        write(tmp_path, "20260101_000000", "front_center", number, label)
    found, lines = find_frames(tmp_path, (), pytest.fail), list[str]()
    frames = Frames(found, a2d2_classes(), (32, 24), lines.append)
    sky = a2d2_classes().names.index("Sky")
    for index in (0, 1):
        _, truth = frames[index]
        assert (truth[:5] == IGNORE).all()
        assert (truth[5:] == sky).all()
    assert lines == [f"colours that class_list.json does not name are ignored, the first: #010203 in {found[0].label}"]


def test_colours_become_classes_before_resizing(tmp_path: Path) -> None:
    """Between red (Car) and blue-ish (Sky) a blend would pass other colours; none may appear as a class."""
    label = plain((255, 0, 0))
    label[::2] = (0x87, 0xCE, 0xFF)
    write(tmp_path, "20260101_000000", "front_center", 1, label)
    classes = a2d2_classes()
    _, truth = Frames(find_frames(tmp_path, (), pytest.fail), classes, (21, 17), pytest.fail)[0]
    assert tuple(truth.shape) == (17, 21)
    assert set(truth.unique().tolist()) == {classes.names.index("Car"), classes.names.index("Sky")}


def test_a_draw_decides_how_a_frame_is_altered(frames: Path) -> None:
    images = Frames(find_frames(frames, (), pytest.fail), a2d2_classes(), (64, 40), pytest.fail)
    (one, truth), (again, _), (plain_one, plain_truth) = images[3, 11], images[3, 11], images[3]
    assert (one == again).all()
    assert not (one == plain_one).all()
    assert (truth == plain_truth).all() or (truth == plain_truth.flip(1)).all()
    assert any(not (images[3, draw][1] == plain_truth).all() for draw in range(8)), "some draw must mirror"


def test_a_broken_picture_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, "20260101_000000", "front_center", 1, plain((255, 0, 0)))
    path.write_bytes(path.read_bytes()[:40])
    frames = Frames(find_frames(tmp_path, (), pytest.fail), a2d2_classes(), (32, 24), pytest.fail)
    with pytest.raises(OSError, match=f"{path}: this picture cannot be read"):
        frames[0]


def test_scenes_are_not_shared_between_training_and_score(frames: Path) -> None:
    train, score = split_by_scene(find_frames(frames, (), pytest.fail), 0.25)
    assert (len(train), len(score)) == (12, 6)
    assert not {frame.scene for frame in train} & {frame.scene for frame in score}


def test_a_lone_scene_is_cut(tmp_path: Path) -> None:
    for number in range(8):
        write(tmp_path, "20260101_000000", "front_center", number, plain((255, 0, 0)))
    train, score = split_by_scene(find_frames(tmp_path, (), pytest.fail), 0.25)
    assert (len(train), len(score)) == (6, 2)
    assert max(frame.image.name for frame in train) < min(frame.image.name for frame in score)


def test_limit_spreads(frames: Path) -> None:
    found = find_frames(frames, (), pytest.fail)
    assert thin_out(found, 0) == thin_out(found, 99) == found
    assert len({frame.scene for frame in thin_out(found, 3)}) == 3


def test_the_published_folder_is_found_inside(tmp_path: Path) -> None:
    assert frames_root(tmp_path) == tmp_path
    (tmp_path / "camera_lidar_semantic").mkdir()
    assert frames_root(tmp_path) == tmp_path / "camera_lidar_semantic"


def test_full_size_frames_of_six_cameras(tmp_path: Path) -> None:
    make(Plan(frames=6, scenes=1, cameras=tuple(YAWS_DEGREES), size=(1920, 1208)), tmp_path / "full")
    found = find_frames(tmp_path / "full", (), pytest.fail)
    assert {frame.camera for frame in found} == set(YAWS_DEGREES)
    frames = Frames(found, a2d2_classes(), (176, 112), pytest.fail)
    for index in range(6):
        picture, truth = frames[index]
        assert tuple(picture.shape) == (3, 112, 176)
        assert tuple(truth.shape) == (112, 176)
        assert int(truth.max()) < 38
