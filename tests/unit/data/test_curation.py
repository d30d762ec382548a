"""Curation: near-duplicates go, rare classes stay, and each image says why."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from PIL import Image, ImageDraw

from podwright.data.catalog.scan import scan
from podwright.data.catalog.store import Store
from podwright.data.labels.recount import count_labels
from podwright.data.policies.curation import Curator, perceptual_hash
from tests.fixtures.a2d2 import write_frame
from tests.unit.data.conftest import Say


def picture(seed: int, noise: int = 0) -> Image.Image:
    """A made scene; the same seed with noise is the same scene a moment later."""
    chance, later = random.Random(seed), random.Random(seed * 1000 + noise)
    image = Image.new("RGB", (96, 64), "#7aa0c0")
    draw = ImageDraw.Draw(image)
    for _ in range(14):
        x, y = chance.randrange(96), chance.randrange(64)
        grey = chance.randrange(256)
        draw.rectangle((x, y, x + chance.randrange(8, 40), y + chance.randrange(8, 30)), (grey, grey, 90))
    for _ in range(noise):
        image.putpixel((later.randrange(96), later.randrange(64)), (later.randrange(256), 0, 0))
    return image


@pytest.fixture
def drive(tmp_path: Path) -> Path:
    """Six frames of one camera: two scenes, of which each stands still; the last frame has the only animal."""
    root = tmp_path / "drive"
    for frame in range(6):
        rows = {"Sky": 2, "Car": 1}
        if frame == 5:
            rows["Animals"] = 1
        label = write_frame(root, "20180801_145028", "front_center", frame, rows)
        name = str(label).replace("/label/", "/camera/").replace("_label_", "_camera_")
        picture(frame // 3, frame % 3 * 5).save(root / name)
    return root


def test_what_stands_still_is_kept_once_and_what_is_rare_always(ask: Say, store: Store, drive: Path) -> None:
    scan(store, drive, "drive")
    count_labels(store, "drive")
    where = "kind=camera and ext=png"
    ask("policy", "add", "thin", "--dataset", "drive", "--where", where, "--do", "curate", "--batch", 4)
    assert ask("policy", "run", "thin")["done"] == 6
    query = "select f.frame, t.name, t.value from tag t join file f on f.id = t.file where t.name in ('keep', 'why')"
    tags: dict[int, dict[str, str]] = {}
    for frame, name, value in ask("sql", "drive", f"{query} order by all")["rows"]:
        tags.setdefault(frame, {})[name] = value
    first = "20180801145028_camera_frontcenter_000000000.png"
    assert tags[0] == {"keep": "yes", "why": "new"}
    assert tags[1] == {"keep": "no", "why": f"near {first}"}
    assert [tags[frame]["keep"] for frame in range(6)] == ["yes", "no", "no", "yes", "no", "yes"]
    assert tags[5]["why"] == "rare Animals"
    assert ask("find", "drive", "keep=no")["count"] == 3
    ask("policy", "undo", "thin")
    assert ask("sql", "drive", "select * from tag")["rows"] == []


def test_a_broken_image_is_kept_with_the_reason(ask: Say, store: Store, drive: Path) -> None:
    sorted(drive.rglob("*_camera_*.png"))[2].write_bytes(b"no image")
    scan(store, drive, "drive")
    ask("policy", "add", "thin", "--dataset", "drive", "--where", "kind=camera and ext=png", "--do", "curate")
    ask("policy", "run", "thin")
    assert ask("find", "drive", 'keep=yes and why="is no image"')["count"] == 1


def test_a_hash_is_near_for_the_same_scene_and_far_for_another(tmp_path: Path) -> None:
    paths = []
    for seed in range(12):
        for noise in (0, 20):
            path = tmp_path / f"{seed}-{noise}.png"
            picture(seed, noise).save(path)
            paths.append(perceptual_hash(bytes(path)))
    for at in range(0, len(paths), 2):
        assert (paths[at] ^ paths[at + 1]).bit_count() <= 6
        others = [other for place, other in enumerate(paths) if place not in (at, at + 1)]
        assert min((paths[at] ^ other).bit_count() for other in others) > 6


def test_images_of_other_folders_are_not_held_against_each_other() -> None:
    curator = Curator({})
    assert curator.judge(b"a/1.png", "a/1.png", 7).keep
    assert curator.judge(b"b/1.png", "b/1.png", 7).keep
    assert not curator.judge(b"a/2.png", "a/2.png", 6).keep
