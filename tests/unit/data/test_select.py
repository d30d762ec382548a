"""Selections: what is chosen, that it stays, and that two that are the same have one digest."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from podwright.data.catalog.store import Store
from podwright.data.selecting import choose
from tests.fixtures.a2d2 import write_frame, write_scenes
from tests.fixtures.run_folder import Shape, write_run
from tests.unit.data.conftest import Say


@pytest.fixture
def counted(ask: Say, tmp_path: Path) -> Path:
    """A dataset `a2d2` of eight scenes whose labels are counted."""
    root = write_scenes(tmp_path / "a2d2", scenes=8, frames=3)
    ask("scan", root, "--name", "a2d2")
    ask("stats", "a2d2")
    return root


def images(ask: Say, name: str, *words: str) -> list[str]:
    return [row["path"] for row in ask("ls", name, *words)["files"]]


def test_without_split_all_samples_are_in_one(ask: Say, counted: Path) -> None:
    selection = ask("select", "a2d2", "--name", "every")
    assert selection["name"] == "every"
    assert selection["splits"] == {"all": {"count": 24, "distance": 0.0}}
    assert selection["lineage"]["dataset"] == "a2d2"
    paths = images(ask, "every")
    assert len(paths) == 24
    assert all((counted / path).is_file() and "_camera_" in path for path in paths)
    roles = [row["role"] for row in ask("ls", "every", "--files")["files"]]
    assert roles == ["image", "label", "json"] * 24


def test_the_digest_is_what_its_contract_says(ask: Say, counted: Path) -> None:
    selection = ask("select", "a2d2", "--name", "half", "--split", "train=0.5,test=0.5", "--seed", 3)
    lines = []
    for row in ask("ls", "half", "--files")["files"]:
        size = (counted / row["path"]).stat().st_size
        lines.append(f"{row['split']}\0{row['path']}\0{size}\0\0".encode())
    assert selection["digest"] == f"sha256:{hashlib.sha256(b''.join(sorted(lines))).hexdigest()}"


def test_name_root_and_generation_do_not_change_the_digest(ask: Say, counted: Path, tmp_path: Path) -> None:
    first = ask("select", "a2d2", "--name", "one", "--size", 5, "--seed", 1)
    shutil.copytree(counted, tmp_path / "copy")
    ask("scan", tmp_path / "copy", "--name", "other")
    (tmp_path / "copy" / "more.txt").touch()
    ask("scan", tmp_path / "copy", "--name", "other")
    second = ask("select", "other", "--name", "two", "--size", 5, "--seed", 1)
    third = ask("select", "other", "--name", "three", "--size", 5, "--seed", 2)
    assert first["digest"] == second["digest"] != third["digest"]


def test_a_filter_chooses_samples_by_any_of_their_files(ask: Say, counted: Path) -> None:
    selection = ask("select", "a2d2", "--name", "cars", "--where", "Car>0 and frame<=2")
    assert selection["splits"]["all"]["count"] == 4 * 2
    assert all("_camera_" in path for path in images(ask, "cars"))


def test_a_sample_without_its_label_is_none(ask: Say, counted: Path) -> None:
    next(counted.rglob("*_label_*.png")).unlink()
    ask("scan", counted, "--name", "a2d2")
    selection = ask("select", "a2d2", "--name", "every")
    assert (selection["splits"]["all"]["count"], selection["lineage"]["incomplete"]) == (23, 1)


@pytest.mark.parametrize(
    "words", [["--split", "train=0.75,test=0.25", "--by", "scene"], ["--folds", "4", "--representative"]]
)
def test_scenes_are_never_torn_apart(ask: Say, counted: Path, words: list[str]) -> None:
    selection = ask("select", "a2d2", "--name", "parts", *words)
    scenes = {}
    for split in selection["splits"]:
        scenes[split] = {path.split("/")[0] for path in images(ask, "parts", "--split", split)}
    assert sum(map(len, scenes.values())) == len(set().union(*scenes.values())) == 8
    assert sum(split["count"] for split in selection["splits"].values()) == 24


def test_folds_are_of_equal_size_and_have_all_samples_once(ask: Say, counted: Path) -> None:
    selection = ask("select", "a2d2", "--name", "folds", "--folds", 4)
    assert {name: split["count"] for name, split in selection["splits"].items()} == {
        "fold1": 6,
        "fold2": 6,
        "fold3": 6,
        "fold4": 6,
    }
    assert len(set(images(ask, "folds"))) == 24


def test_a_representative_split_is_closer_than_chance_and_keeps_what_is_rare(ask: Say, counted: Path) -> None:
    alike = ask("select", "a2d2", "--name", "alike", "--split", "train=0.5,test=0.5", "--representative")
    assert {split["count"] for split in alike["splits"].values()} == {12}
    assert all(split["distance"] < 0.02 for split in alike["splits"].values())
    # The only animal cannot be in both: it is in the first, which is trained on.
    assert any(
        path.endswith("20180801145028_camera_frontcenter_000000001.png")
        for path in images(ask, "alike", "--split", "train")
    )


def test_a_representative_sample_has_every_class(ask: Say, counted: Path) -> None:
    ask("select", "a2d2", "--name", "few", "--size", 6, "--representative", "--seed", 5)
    chosen = images(ask, "few")
    assert len(chosen) == 6
    assert "20180801_145028/camera/cam_front_center/20180801145028_camera_frontcenter_000000001.png" in chosen


def test_the_same_seed_chooses_the_same(ask: Say, counted: Path) -> None:
    words = ["--split", "train=0.5,test=0.5", "--representative", "--seed", "7"]
    first = ask("select", "a2d2", "--name", "one", *words)
    second = ask("select", "a2d2", "--name", "two", *words)
    assert first["digest"] == second["digest"]
    assert ask("diff", "one", "two") == {"added": 0, "removed": 0, "kept": 24, "distance": 0.0}


def test_diff_counts_samples(ask: Say, counted: Path) -> None:
    ask("select", "a2d2", "--name", "one", "--where", "frame<=2")
    ask("select", "a2d2", "--name", "two", "--where", "frame>=2")
    answer = ask("diff", "one", "two")
    assert (answer["added"], answer["removed"], answer["kept"]) == (8, 8, 8)
    assert answer["distance"] > 0


def test_it_is_stored_as_parquet_and_json(ask: Say, store: Store, counted: Path) -> None:
    selection = ask("select", "a2d2", "--name", "every")
    folder = store.home / "selections" / "every"
    document = json.loads((folder / "selection.json").read_bytes())
    assert document["digest"] == selection["digest"]
    table = parquet.read_table(folder / "samples.parquet")
    assert table.num_rows == 24 * 3
    assert table.column_names[:2] == ["split", "sample"]


def test_a_selection_that_was_changed_by_hand_is_refused(ask: Say, tell: Say, store: Store, counted: Path) -> None:
    ask("select", "a2d2", "--name", "every")
    ask("select", "a2d2", "--name", "other", "--size", 3)
    shutil.copy(store.selections / "other" / "samples.parquet", store.selections / "every" / "samples.parquet")
    _, err = tell("ls", "every", code=2)
    assert "is not what was frozen: its digest is another" in err


def test_a_selection_that_names_files_of_others_is_refused(ask: Say, tell: Say, store: Store, counted: Path) -> None:
    ask("select", "a2d2", "--name", "every")
    path = store.selections / "every" / "samples.parquet"
    rows = [{**row, "path": f"../{row['path']}"} for row in parquet.read_table(path).to_pylist()]
    parquet.write_table(pa.Table.from_pylist(rows), path)
    _, err = tell("ls", "every", code=2)
    assert "leads out of the dataset" in err


def test_files_that_changed_later_leave_a_selection_as_it_was(ask: Say, counted: Path) -> None:
    before = ask("select", "a2d2", "--name", "every")
    next(counted.rglob("*_label_*.png")).unlink()
    ask("scan", counted, "--name", "a2d2")
    assert ask("ls", "every")["digest"] == before["digest"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--name", "a2d2"], "--name: a2d2 is the name of a dataset"),
        (["--name", "taken"], "--name: there is a selection taken already"),
        (["--name", "x", "--size", "99"], "--size: there are 24 samples to choose from"),
        (["--name", "x", "--where", "frame>99"], "--where chooses no sample"),
        (["--name", "x", "--where", "frmae>9"], "filter:1:1: frmae: unknown column"),
        (["--name", "x", "--split", "train"], '--split: "train" is no split with its share'),
        (["--name", "x", "--split", "a=0.8,b=0.3"], "--split: the shares are 1.1 in all, more than 1"),
        (["--name", "x", "--split", "a=0.5,b=0.5", "--folds", "2"], "--folds: cannot be together with --split"),
        (["--name", "x", "--folds", "2", "--by", "scen"], '--by: a2d2 has no column "scen"'),
        (["--name", "x", "--folds", "9", "--by", "scene"], "8 values of scene cannot be dealt out to 9 splits"),
        (["--name", "x", "--classes", "Car,Sky"], "--classes: is only for --confusion"),
        (["--name", "x", "--confusion", "nobody"], "there is no run"),
    ],
)
def test_what_cannot_be_selected_is_refused(ask: Say, tell: Say, counted: Path, words: list[str], message: str) -> None:
    ask("select", "a2d2", "--name", "taken")
    _, err = tell("select", "a2d2", *words, code=2)
    assert err.startswith(message)


def test_representative_needs_statistics(tell: Say, tree: Path) -> None:
    tell("scan", tree, "--name", "a2d2")
    _, err = tell("select", "a2d2", "--name", "x", "--representative", code=2)
    assert err.endswith("hint: podwright data stats a2d2\n")


def test_forget_takes_the_name_and_leaves_the_files(ask: Say, tell: Say, store: Store, counted: Path) -> None:
    ask("select", "a2d2", "--name", "every")
    tell("forget", "every")
    tell("forget", "a2d2")
    assert ask("ls") == {"datasets": [], "selections": []}
    assert len(list(counted.rglob("*.png"))) == 48


def test_ls_shows_what_a_datasets_columns_hold(ask: Say, counted: Path) -> None:
    answer = ask("ls", "a2d2")
    assert answer["columns"]["kind"] == {"camera": 48, "label": 24}
    assert len(answer["columns"]["scene"]) == 8
    assert len(answer["classes"]) == 38


@settings(max_examples=25)
@given(
    st.lists(st.integers(1, 9), min_size=3, max_size=30),
    st.integers(2, 3),
    st.integers(0, 9),
    st.booleans(),
)
def test_every_unit_is_dealt_out_once_and_no_part_is_empty(
    sizes: list[int], parts: int, seed: int, alike: bool
) -> None:
    rng = np.random.default_rng(seed)
    units = choose.Blocks(np.array(sizes, dtype=float), rng.integers(0, 100, (len(sizes), 4)).astype(float))
    deal = choose.deal_alike if alike else choose.deal
    dealt = deal(units, [1 / parts] * parts, seed)
    assert set(dealt.tolist()) == set(range(parts))


def test_what_shares_leave_is_in_no_part() -> None:
    units = choose.Blocks(np.ones(100), np.ones((100, 3)))
    for deal in (choose.deal, choose.deal_alike):
        parts = deal(units, [0.5, 0.2], 0)
        assert [int((parts == part).sum()) for part in (0, 1, -1)] == [50, 20, 30]


def leave_run(store: Store, samples: list[dict[str, object]] | None) -> None:
    """Write a run that took cars for animals and now and then pedestrians for sky."""
    shape = Shape(seconds=4, retry_at=None, metrics=False, pictures=False)
    run = write_run(store.home / "runs" / shape.run, shape)
    matrix = {
        "classes": ["Car", "Animals", "Pedestrian", "Sky"],
        "matrix": [[5, 9, 0, 0], [0, 9, 0, 0], [0, 0, 9, 1], [0, 0, 0, 9]],
    }
    (run / "results").mkdir(exist_ok=True)
    (run / "results" / "confusion.json").write_text(json.dumps(matrix))
    if samples is not None:
        lines = [json.dumps(row) for row in samples]
        (run / "results" / "samples.jsonl").write_text("\n".join([*lines, "torn"]))


def test_confusion_without_predictions_takes_frames_that_hold_both(ask: Say, store: Store, counted: Path) -> None:
    write_frame(counted, "20180802_145028", "front_center", 9, {"Car": 2, "Animals": 1})
    write_frame(counted, "20180802_145028", "front_center", 10, {"Car": 2, "Animals": 3})
    ask("scan", counted, "--name", "a2d2")
    ask("stats", "a2d2")
    leave_run(store, None)
    selection = ask("select", "a2d2", "--name", "hard", "--confusion", "segmentation-7f3k", "--size", 1)
    assert selection["lineage"]["confusion"] == {
        "run": "segmentation-7f3k",
        "classes": ["Car", "Animals"],
        "ranked_by": "frames that hold both classes",
    }
    assert images(ask, "hard")[0].endswith("_000000010.png")
    others = ask("select", "a2d2", "--name", "other", "--confusion", "last", "--classes", "Sky,Pedestrian")
    assert others["splits"]["all"]["count"] == 8


def test_predictions_of_samples_are_what_ranks_them(ask: Say, store: Store, counted: Path) -> None:
    ask("select", "a2d2", "--name", "every")
    first, second, third, *_ = images(ask, "every")
    rows: list[dict[str, object]] = [
        {"image": first, "uncertainty": 0.2, "confused": {"Car": {"Animals": 5}}},
        {"image": second, "uncertainty": 0.9, "confused": {"Animals": {"Car": 7}}},
        {"image": third, "uncertainty": 0.0, "confused": {}},
    ]
    leave_run(store, rows)
    selection = ask("select", "a2d2", "--name", "hard", "--confusion", "last", "--size", 1)
    assert selection["lineage"]["confusion"]["ranked_by"] == "predictions of the run"
    assert images(ask, "hard") == [second]
    ask("select", "a2d2", "--name", "unsure", "--uncertainty", "last")
    assert images(ask, "unsure") == [first, second]


def test_uncertainty_needs_predictions(tell: Say, store: Store, counted: Path) -> None:
    leave_run(store, None)
    _, err = tell("select", "a2d2", "--name", "x", "--uncertainty", "last", code=2)
    assert err.startswith("--uncertainty: segmentation-7f3k has no predictions of single samples")
