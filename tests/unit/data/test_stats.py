"""Label statistics: every pixel once, nothing read twice, what is broken is named."""

from __future__ import annotations

import csv
import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from pyarrow import parquet

from podwright.data.labels.classes import LabelClass, classes_of
from podwright.data.labels.pixels import ColourTable
from podwright.data.tree.layouts import A2D2
from tests.fixtures.a2d2 import SIZE, label_image, write_frame
from tests.paths import ROOT
from tests.unit.data.conftest import Say

PIXELS = SIZE[0] * SIZE[1]


def by_name(document: dict[str, object]) -> dict[str, dict[str, int]]:
    classes = document["classes"]
    assert isinstance(classes, list)
    return {row["name"]: row for row in classes}


def test_a2d2_has_38_classes_in_its_order() -> None:
    classes = classes_of(A2D2, Path("/nowhere"))
    assert len(classes) == 38
    assert sum(len(label.colours) for label in classes) == 55
    assert [label.name for label in classes][:3] == ["Car", "Bicycle", "Pedestrian"]
    assert classes[-1].name == "Rain dirt"


def test_the_program_and_the_catalog_have_the_same_classes() -> None:
    ours = ROOT / "src" / "podwright" / "data" / "labels" / "a2d2_classes.csv"
    assert ours.read_bytes() == (ROOT / "programs" / "segmentation" / "classes.csv").read_bytes()


def test_pixels_are_counted_per_class(ask: Say, tree: Path) -> None:
    ask("scan", tree, "--name", "a2d2")
    stats = ask("stats", "a2d2")
    assert (stats["dataset"], stats["images"], stats["broken"], stats["unknown"]) == ("a2d2", 12, 0, 0)
    assert len(stats["classes"]) == 38
    rows = by_name(stats)
    row = SIZE[0]
    assert (rows["Sky"]["pixels"], rows["Sky"]["images"]) == (12 * 2 * row, 12)
    assert (rows["Car"]["pixels"], rows["Car"]["images"]) == (2 * (1 + 2 + 3) * row, 6)
    assert (rows["Animals"]["pixels"], rows["Animals"]["images"]) == (row, 1)
    assert sum(entry["pixels"] for entry in rows.values()) == 12 * PIXELS
    assert rows["Sky"]["share"] == pytest.approx(0.2)


def test_class_columns_belong_to_the_row_of_the_label(ask: Say, tree: Path) -> None:
    ask("scan", tree, "--name", "a2d2")
    ask("stats", "a2d2")
    assert ask("find", "a2d2", "Animals>0")["files"][0]["kind"] == "label"
    assert ask("find", "a2d2", "class=Car")["count"] == 6
    assert ask("find", "a2d2", "class!=Car")["count"] == 30
    assert ask("find", "a2d2", "Car=0")["count"] == 6
    assert ask("find", "a2d2", "not Car>0")["count"] == 6
    assert ask("find", "a2d2", 'kind=camera and "RD normal street">0')["count"] == 0


def test_only_new_and_changed_labels_are_read(ask: Say, tree: Path) -> None:
    ask("scan", tree, "--name", "a2d2")
    assert ask("stats", "a2d2")["counted"] == 12
    assert ask("stats", "a2d2")["counted"] == 0
    changed = sorted(tree.rglob("*_label_*.png"))[0]
    label_image({"Bicycle": 3}).save(changed)
    write_frame(tree, "20180809_145028", "front_center", 1, {"Bicycle": 1})
    ask("scan", tree, "--name", "a2d2")
    assert ask("find", "a2d2", "Sky>0")["count"] == 11
    stats = ask("stats", "a2d2")
    assert (stats["counted"], stats["images"], by_name(stats)["Bicycle"]["pixels"]) == (2, 13, 4 * SIZE[0])


def test_what_is_broken_is_counted_and_named(ask: Say, tell: Say, tree: Path) -> None:
    whole = sorted(tree.rglob("*_label_*.png"))
    whole[0].write_bytes(whole[0].read_bytes()[:60])
    whole[1].write_bytes(b"no image")
    whole[2].write_bytes(b"")
    ask("scan", tree, "--name", "a2d2")
    stats = ask("stats", "a2d2")
    assert (stats["images"], stats["broken"]) == (9, 3)
    told = {row["path"]: row["why"] for row in stats["broken_files"]}
    assert list(told) == [str(path.relative_to(tree)) for path in whole[:3]]
    assert list(told.values())[1:] == ["is no image", "is no image"]
    _, err = tell("stats", "a2d2")
    assert f"broken    {whole[1].relative_to(tree)}: is no image" in err


def test_labels_wholly_of_unknown_colours_are_named_and_counted_apart(
    tell: Callable[..., tuple[str, str]], tree: Path
) -> None:
    label = sorted(tree.rglob("*_label_*.png"))[0]
    Image.new("RGB", SIZE, (1, 2, 3)).save(label)
    tell("scan", tree, "--name", "a2d2")
    for _ in range(2):  # counted, and as it was counted
        out, err = tell("stats", "a2d2")
        assert out.startswith(f"11 labels, 0 broken, 1 wholly of unknown colours, {PIXELS} pixels of colours that mean")
        assert f"unknown   {label.relative_to(tree)}: has only colours that mean no class" in err
    tell("find", "a2d2", "Car=0 or Car>0")


def png_header(width: int, height: int) -> bytes:
    """A PNG of this size with no pixels in it: to refuse it, nobody has to decode it."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"")) + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [9000, 10_000, 30_000])
def test_a_picture_of_too_many_pixels_is_not_decoded(
    tell: Callable[..., tuple[str, str]], tree: Path, side: int
) -> None:
    label = sorted(tree.rglob("*_label_*.png"))[0]
    label.write_bytes(png_header(side, side))
    tell("scan", tree, "--name", "a2d2")
    out, err = tell("stats", "a2d2")
    assert out.startswith("11 labels, 1 broken\n")
    said = [line for line in err.splitlines() if line.startswith("broken")]
    assert said == [f"broken    {label.relative_to(tree)}: has more than 67,108,864 pixels"]
    assert "Pil" not in err
    assert "bomb" not in err


def test_colours_that_mean_nothing_are_counted_apart(ask: Say, tree: Path) -> None:
    Image.new("RGB", SIZE, (1, 2, 3)).save(sorted(tree.rglob("*_label_*.png"))[0])
    ask("scan", tree, "--name", "a2d2")
    assert ask("stats", "a2d2")["unknown"] == PIXELS


def test_the_classes_of_the_datasets_own_list_are_taken(ask: Say, tree: Path) -> None:
    (tree / "class_list.json").write_text(json.dumps({"#ff00ff": "Road 1", "#87ceff": "Road 2", "#ff0000": "Thing"}))
    ask("scan", tree, "--name", "a2d2")
    stats = ask("stats", "a2d2")
    assert [row["name"] for row in stats["classes"]] == ["Road", "Thing"]
    assert stats["unknown"] > 0


def test_a_class_list_that_is_none_is_named(tell: Say, tree: Path) -> None:
    (tree / "class_list.json").write_text('{"red": "Car"}')
    tell("scan", tree, "--name", "a2d2")
    _, err = tell("stats", "a2d2", code=2)
    assert err.startswith(f"{tree}/class_list.json: is no list of colours and their names")


def test_the_table_per_image_is_written_as_csv_and_parquet(ask: Say, tell: Say, tree: Path, tmp_path: Path) -> None:
    ask("scan", tree, "--name", "a2d2")
    ask("stats", "a2d2", "--per-image", tmp_path / "a.csv")
    ask("stats", "a2d2", "--per-image", tmp_path / "a.parquet")
    with (tmp_path / "a.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    table = parquet.read_table(tmp_path / "a.parquet")
    assert table.column_names == list(rows[0])
    assert table.column_names[:4] == ["path", "Car", "Bicycle", "Pedestrian"]
    assert len(table.column_names) == 39
    assert [str(row["Car"]) for row in table.to_pylist()] == [row["Car"] for row in rows]
    assert all((tree / row["path"]).is_file() for row in rows)
    _, err = tell("stats", "a2d2", "--per-image", tmp_path / "a.txt", code=2)
    assert "a.txt: is neither .csv nor .parquet" in err


def test_coco_boxes_are_counted(ask: Say, tmp_path: Path) -> None:
    root = tmp_path / "root"
    (root / "annotations").mkdir(parents=True)
    (root / "val2017").mkdir()
    for number in (1, 2, 3):
        Image.new("RGB", SIZE).save(root / "val2017" / f"{number:012d}.jpg")
    document = {
        "images": [{"id": n, "file_name": f"{n:012d}.jpg"} for n in (1, 2)],
        "categories": [{"id": 3, "name": "car"}, {"id": 1, "name": "person"}],
        "annotations": [
            {"image_id": 1, "category_id": 1, "bbox": [0, 0, 4, 5]},
            {"image_id": 1, "category_id": 1, "bbox": [0, 0, 2, 2], "area": 3.2},
            {"image_id": 1, "category_id": 3, "bbox": [0, 0, 1, 1]},
        ],
    }
    (root / "annotations" / "instances_val2017.json").write_text(json.dumps(document))
    assert ask("scan", root, "--name", "coco")["layout"] == "coco"
    stats = ask("stats", "coco")
    assert stats["images"] == 2
    assert [(row["name"], row["pixels"], row["images"]) for row in stats["classes"]] == [
        ("person", 23, 1),
        ("car", 1, 1),
    ]
    assert ask("find", "coco", "person>0")["files"][0]["image_id"] == 1
    assert ask("find", "coco", "split=val2017")["count"] == 3


def test_image_folders_have_the_classes_of_their_folders(ask: Say, tmp_path: Path) -> None:
    root = tmp_path / "root"
    for split, label in (("train", "cat"), ("train", "dog"), ("val", "dog")):
        (root / split / label).mkdir(parents=True)
        Image.new("RGB", (4, 5)).save(root / split / label / "1.png")
    assert ask("scan", root, "--name", "pets")["layout"] == "images"
    stats = ask("stats", "pets")
    assert [(row["name"], row["pixels"], row["images"]) for row in stats["classes"]] == [("cat", 20, 1), ("dog", 40, 2)]
    assert ask("find", "pets", "split=train and dog>0")["count"] == 1


def test_shards_of_webdataset_are_recognised(ask: Say, tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    for number in range(3):
        (root / f"train-{number:06d}.tar").touch()
    assert ask("scan", root, "--name", "shards")["layout"] == "webdataset"
    row = ask("find", "shards", "shard=2 and set=train")["files"][0]
    assert row["path"] == "train-000002.tar"


def test_a_layout_without_labels_says_so(tell: Say, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "a.txt").touch()
    tell("scan", tmp_path / "plain", "--name", "texts")
    _, err = tell("stats", "texts", code=2)
    assert err.startswith("texts has the layout plain, in which no labels are known")


CLASSES = [LabelClass("a", (0x0000FF, 0x010203)), LabelClass("b", (0xFF0000,)), LabelClass("c", (0x000000,))]
COLOURS = [(0, 0, 255), (1, 2, 3), (255, 0, 0), (0, 0, 0), (9, 9, 9)]


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), st.sampled_from(["RGB", "RGBA", "P"]))
def test_any_image_is_counted_as_pixel_by_pixel(places: list[int], mode: str) -> None:
    pixels = np.array([[COLOURS[place] for place in places]], dtype=np.uint8)
    image = Image.fromarray(pixels)
    if mode == "P":
        image = image.quantize(8)
    elif mode == "RGBA":
        image = image.convert(mode)
    expected = [places.count(0) + places.count(1), places.count(2), places.count(3), places.count(4)]
    assert ColourTable(CLASSES).count(image).tolist() == expected


def test_an_image_that_lies_in_several_pieces_of_memory_is_counted() -> None:
    image = Image.new("RGB", (5000, 3000), COLOURS[2])
    image.paste(COLOURS[4], (0, 2000, 5000, 3000))
    assert ColourTable(CLASSES).count(image).tolist() == [0, 10_000_000, 0, 5_000_000]
