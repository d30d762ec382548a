"""Labels that lie beside their images count alike in a folder, in several roots, and behind an address."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from tests.fixtures.a2d2 import SIZE
from tests.fixtures.counted import CountedServer
from tests.unit.data.conftest import Say


def picture(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", SIZE, (9, 50, 90)).save(path)


def write_yolo(root: Path, names: str, labels: dict[str, str]) -> None:
    for name, line in labels.items():
        picture(root / "images" / "train" / f"{name}.png")
        label = root / "labels" / "train" / f"{name}.txt"
        label.parent.mkdir(parents=True, exist_ok=True)
        label.write_text(line)
    (root / "data.yaml").write_text(names)


def write_kitti(root: Path, labels: dict[str, str]) -> None:
    for name, line in labels.items():
        picture(root / "training" / "image_2" / f"{name}.png")
        label = root / "training" / "label_2" / f"{name}.txt"
        label.parent.mkdir(parents=True, exist_ok=True)
        label.write_text(line)


def write_coco(root: Path, kind: str, area: int) -> None:
    """One picture of the same name in each root, and other numbers for the classes."""
    picture(root / "train" / "a.png")
    (root / "annotations").mkdir()
    document = {
        "images": [{"id": 1, "file_name": "a.png"}],
        "categories": [{"id": 1, "name": kind}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "area": area, "bbox": [0, 0, 1, 1]}],
    }
    (root / "annotations" / "instances_train.json").write_text(json.dumps(document))


KITTI = "{} 0 0 0 {} 0 0 0 0 0 0 0"
BOX = "{} 0.5 0.5 0.25 0.4"


def write_both(first: Path, other: Path, layout: str) -> dict[str, tuple[int, int]]:
    """Write two roots; return pixels and images of each class in both."""
    if layout == "yolo":
        write_yolo(first, "names: [car, bus]", {"a": BOX.format(0), "b": BOX.format(1)})
        write_yolo(other, "names: [person, car]", {"a": BOX.format(0), "b": BOX.format(1)})
        return {"car": (32, 2), "bus": (16, 1), "person": (16, 1)}
    if layout == "kitti":
        write_kitti(first, {"000001": KITTI.format("Car", "0 0 2 2"), "000002": KITTI.format("Tram", "0 0 2 2")})
        write_kitti(other, {"000001": KITTI.format("Car", "0 0 3 1")})
        return {"Car": (7, 2), "Tram": (4, 1)}
    write_coco(first, "car", 5)
    write_coco(other, "bus", 7)
    return {"car": (5, 1), "bus": (7, 1)}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[CountedServer]:
    """The second root over HTTP."""
    (tmp_path / "other").mkdir()
    with CountedServer(tmp_path / "other") as server:
        yield server


@pytest.mark.parametrize("layout", ["yolo", "kitti", "coco"])
def test_boxes_of_several_roots_count_wherever_these_lie(
    ask: Say, tmp_path: Path, served: CountedServer, layout: str
) -> None:
    first, other = tmp_path / "first", tmp_path / "other"
    expected = write_both(first, other, layout)
    for number, further in enumerate((other, served.address)):
        name = f"both{number}"
        scanned = ask("scan", first, further, "--name", name, "--label", "more", "--layout", layout)
        assert scanned["layout"] == layout
        counted = ask("stats", name)
        assert (counted["broken"], counted["not_read"]) == (0, 0)
        assert {row["name"]: (row["pixels"], row["images"]) for row in counted["classes"] if row["images"]} == expected
    ask("scan", served.address, "--name", "alone", "--layout", layout)
    shutil.copytree(other, tmp_path / "copy")
    ask("scan", tmp_path / "copy", "--name", "copy", "--layout", layout)
    assert ask("stats", "alone")["classes"] == ask("stats", "copy")["classes"]


def test_a_label_that_cannot_be_read_is_not_broken(ask: Say, tmp_path: Path) -> None:
    car = KITTI.format("Car", "0 0 2 2")
    write_kitti(tmp_path / "d", {"000001": car, "000002": car})
    ask("scan", tmp_path / "d", "--name", "d", "--layout", "kitti")
    label = tmp_path / "d" / "training" / "label_2" / "000002.txt"
    label.unlink()
    label.mkdir()
    counted = ask("stats", "d", code=1)
    assert (counted["images"], counted["broken"], counted["not_read"]) == (1, 0, 1)
