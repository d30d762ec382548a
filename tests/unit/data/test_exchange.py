"""Selections in the formats of the field, read by the readers of these formats, and read back."""

from __future__ import annotations

import contextlib
import csv
import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from pyarrow import parquet
from pycocotools.coco import COCO  # type: ignore[import-untyped]
from webdataset.tariterators import group_by_keys, tar_file_expander

from podwright.data.catalog.store import Store
from podwright.data.selecting.selections import load
from tests.fixtures.a2d2 import SIZE
from tests.unit.data.conftest import Say

YOLO_NAMES = "names: {0: car, 1: traffic light}\n"
BOXES = {
    "a": ["0 0.5 0.5 0.25 0.4", "1 0.25 0.25 0.125 0.2", "0 0.125 0.5 0.25 0.2"],
    "b": ["1 0.5 0.5 1 1"],
    "c": [],
}


def picture(path: Path, shade: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", SIZE, (shade, 50, 90)).save(path)
    return path


@pytest.fixture
def yolo(tmp_path: Path) -> Path:
    root = tmp_path / "yolo"
    for number, (name, lines) in enumerate(BOXES.items()):
        split = "val" if name == "c" else "train"
        picture(root / "images" / split / f"{name}.png", number)
        label = root / "labels" / split / f"{name}.txt"
        label.parent.mkdir(parents=True, exist_ok=True)
        label.write_text("".join(f"{line}\n" for line in lines))
    (root / "data.yaml").write_text(YOLO_NAMES)
    return root


def coco_of(path: str) -> COCO:
    """Read a file by COCO's own reader, which talks on stdout."""
    with contextlib.redirect_stdout(io.StringIO()):
        return COCO(path)


def classes_of(document: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
    return {row["name"]: (row["pixels"], row["images"]) for row in document["classes"] if row["pixels"]}


@pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning")  # of pycocotools' own
def test_masks_go_to_coco_and_come_back_with_every_pixel(ask: Say, tree: Path, tmp_path: Path) -> None:
    ask("scan", tree, "--name", "d")
    before = ask("stats", "d")
    ask("select", "d", "--name", "s", "--split", "train=0.5,val=0.5", "--by", "sample")
    exported = ask("export", "s", "--format", "coco", "--to", tmp_path / "coco")
    assert (exported["format"], exported["files"]) == ("coco", 12 + 2)
    images = 0
    for split in ("train", "val"):
        reader = coco_of(str(tmp_path / "coco" / "annotations" / f"instances_{split}.json"))
        images += len(reader.getImgIds())
        for row in reader.loadAnns(reader.getAnnIds()):
            assert int(reader.annToMask(row).sum()) == row["area"]
        for row in reader.loadImgs(reader.getImgIds()):
            assert (tmp_path / "coco" / split / row["file_name"]).is_file()
            assert (row["width"], row["height"]) == SIZE
    assert images == 12
    imported = ask("import", tmp_path / "coco", "--format", "coco", "--name", "back")
    assert (imported["images"], imported["broken"], imported["layout"]) == (12, 0, "coco")
    assert classes_of(ask("stats", "back")) == classes_of(before)


def test_boxes_go_to_yolo_and_coco_and_come_back(ask: Say, yolo: Path, tmp_path: Path) -> None:
    imported = ask("import", yolo, "--format", "yolo", "--name", "boxes")
    assert (imported["images"], imported["objects"], imported["pixels_of"]) == (3, 4, "the areas of 2D boxes")
    expected = {"car": (4 * 4 + 4 * 2, 1), "traffic light": (2 * 2 + 160, 2)}
    assert classes_of(ask("stats", "boxes")) == expected
    assert [row["stem"] for row in ask("find", "boxes", "car.objects>1")["files"]] == ["a"]
    assert ask("find", "boxes", '"traffic light.objects"=1')["count"] == 2
    ask("select", "boxes", "--name", "s")
    for name in ("yolo", "coco"):
        ask("export", "s", "--format", name, "--to", tmp_path / name / "out")
        again = ask("import", tmp_path / name / "out", "--format", name, "--name", f"from-{name}")
        assert (again["images"], again["objects"]) == (3, 4)
        assert classes_of(ask("stats", f"from-{name}")) == expected
    reader = coco_of(str(tmp_path / "coco" / "out" / "annotations" / "instances_all.json"))
    assert [row["bbox"] for row in reader.loadAnns(reader.getAnnIds(catIds=[1]))] == [[6, 3, 4, 4], [0, 4, 4, 2]]


def test_objects_that_are_gone_lose_their_tags(ask: Say, yolo: Path) -> None:
    ask("import", yolo, "--format", "yolo", "--name", "boxes")
    (yolo / "labels" / "train" / "a.txt").write_text("0 0.5 0.5 0.25 0.4\n")
    assert ask("import", yolo, "--format", "yolo", "--name", "boxes")["objects"] == 2
    assert [row["stem"] for row in ask("find", "boxes", '"traffic light.objects">0')["files"]] == ["b"]
    assert classes_of(ask("stats", "boxes"))["car"] == (16, 1)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("0 0.5 0.5 x 0.1", "line 1 of its label has a word that is no number"),
        ("7 0.5 0.5 0.1 0.1", "line 1 of its label has the class 7, and there are 2"),
        ("0 0.5", "line 1 of its label has 2 words, and should have 5"),
    ],
)
def test_a_broken_label_is_named(ask: Say, tell: Say, yolo: Path, line: str, why: str) -> None:
    (yolo / "labels" / "train" / "a.txt").write_text(f"{line}\n")
    out, err = tell("import", yolo, "--format", "yolo", "--name", "boxes")
    assert f"images/train/a.png: {why}" in err
    assert "2 images, 1 broken" in out


def test_kitti_counts_boxes_and_leaves_out_what_nobody_cares_for(ask: Say, tmp_path: Path) -> None:
    root = tmp_path / "kitti"
    picture(root / "training" / "image_2" / "000007.png")
    picture(root / "testing" / "image_2" / "000001.png")
    label = root / "training" / "label_2" / "000007.txt"
    label.parent.mkdir()
    rest = "1.5 1.6 3.9 -1 1 30 -1.6"
    label.write_text(f"Car 0.0 0 -1.58 2.0 1.0 7.0 5.0 {rest}\nDontCare -1 -1 -10 0 0 9 9 -1 -1 -1 -1 -1 -1 -10\n")
    imported = ask("import", root, "--format", "kitti", "--name", "k")
    assert (imported["images"], imported["objects"]) == (2, 1)
    assert classes_of(ask("stats", "k")) == {"Car": (20, 1)}
    assert ask("find", "k", "Car.objects=1 and frame=7")["files"][0]["split"] == "training"


def test_cityscapes_counts_the_numbers_in_its_masks(ask: Say, tmp_path: Path) -> None:
    root = tmp_path / "city"
    for number in range(2):
        stem = f"ulm_00000{number}_000019"
        picture(root / "leftImg8bit" / "train" / "ulm" / f"{stem}_leftImg8bit.png")
        mask = Image.new("L", (8, 4), 7)
        mask.paste(26, (0, 0, 3, 2))
        path = root / "gtFine" / "train" / "ulm" / f"{stem}_gtFine_labelIds.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        mask.save(path)
    imported = ask("import", root, "--format", "cityscapes", "--name", "c")
    assert (imported["objects"], imported["pixels_of"], imported["layout"]) == (None, "masks", "cityscapes")
    assert classes_of(ask("stats", "c")) == {"road": (52, 2), "car": (12, 2)}
    assert ask("select", "c", "--name", "s", "--by", "city")["splits"]["all"]["count"] == 2


def test_shards_are_read_by_webdataset(ask: Say, tree: Path, store: Store, tmp_path: Path) -> None:
    ask("scan", tree, "--name", "d")
    ask("select", "d", "--name", "s", "--split", "train=0.75,val=0.25", "--by", "sample")
    ask("export", "s", "--format", "webdataset", "--to", tmp_path / "w")
    for split, of_split in load(store, "s").splits.items():
        samples = of_split.samples
        # By the parts of WebDataset that read: the whole of it leaves files open.
        with (tmp_path / "w" / f"{split}-000000.tar").open("rb") as shard:
            read = list(group_by_keys(tar_file_expander([{"url": shard.name, "stream": shard}])))
        assert len(read) == len(samples)
        for row, sample in zip(read, samples, strict=True):
            files = {file.role: (tree / file.path).read_bytes() for file in sample.files}
            assert (row["png"], row["label.png"], row["json"]) == (files["image"], files["label"], files["json"])
    (tmp_path / "again").mkdir()
    ask("export", "s", "--format", "webdataset", "--to", tmp_path / "again")
    for path in (tmp_path / "w").iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()
    assert ask("scan", tmp_path / "w", "--name", "back")["layout"] == "webdataset"


def test_tables_list_every_file(ask: Say, tree: Path, tmp_path: Path) -> None:
    ask("scan", tree, "--name", "d", "--checksums")
    ask("select", "d", "--name", "s")
    ask("export", "s", "--format", "parquet", "--to", tmp_path / "p")
    ask("export", "s", "--format", "csv", "--to", tmp_path / "c")
    rows = parquet.read_table(tmp_path / "p" / "samples.parquet").to_pylist()
    assert {row["path"] for row in rows} == {row["path"] for row in ask("ls", "s", "--files")["files"]}
    assert all(Path(row["file"]).stat().st_size == row["size"] and len(row["sha256"]) == 64 for row in rows)
    text = (tmp_path / "c" / "samples.csv").read_text()
    assert [row["path"] for row in csv.DictReader(io.StringIO(text))] == [row["path"] for row in rows]


def test_croissant_describes_the_table_beside_it(ask: Say, tree: Path, tmp_path: Path) -> None:
    """Whether mlcroissant takes it was tried by hand: its dependencies are too many for the tests' environment."""
    import hashlib

    ask("scan", tree, "--name", "d")
    ask("select", "d", "--name", "s")
    ask("export", "s", "--format", "croissant", "--to", tmp_path / "c")
    document = json.loads((tmp_path / "c" / "croissant.json").read_bytes())
    (table,) = document["distribution"]
    content = (tmp_path / "c" / table["contentUrl"]).read_bytes()
    assert table["sha256"] == hashlib.sha256(content).hexdigest()
    (records,) = document["recordSet"]
    columns = [field["source"]["extract"]["column"] for field in records["field"]]
    assert columns == next(csv.reader(io.StringIO(content.decode())))
    assert {field["source"]["fileObject"]["@id"] for field in records["field"]} == {table["@id"]}
    assert document["conformsTo"] == "http://mlcommons.org/croissant/1.0"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("export", "s", "--format", "cocoo", "--to", "new"), '"cocoo" is no format that a selection is written in'),
        (("export", "s", "--format", "yolo", "--to", "new"), "the labels of d are masks, and YOLO has boxes"),
        (("export", "s", "--format", "csv", "--to", "."), "there is something already"),
        (("import", "d", "--format", "yol", "--name", "x"), '"yol" is no format that can be imported'),
        (("import", "a2d2", "--format", "yolo", "--name", "x"), "there is no data.yaml that names the classes"),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_nothing(
    ask: Say, tell: Say, tree: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], message: str
) -> None:
    ask("scan", tree, "--name", "d")
    ask("select", "d", "--name", "s")
    monkeypatch.chdir(tree.parent)
    assert message in tell(*words, code=2)[1]
    assert not (tree.parent / "new").exists()


def test_files_that_changed_since_are_not_exported(ask: Say, tell: Say, tree: Path, tmp_path: Path) -> None:
    ask("scan", tree, "--name", "d")
    ask("select", "d", "--name", "s")
    sorted(tree.rglob("*_label_*.png"))[0].write_bytes(b"other")
    assert (
        "1 file is not what s was made of" in tell("export", "s", "--format", "coco", "--to", tmp_path / "x", code=2)[1]
    )
