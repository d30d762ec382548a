"""Bytes are those that were chosen: what a selection's files are compared by, here, in copies and in a record."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from podwright import launch, spec
from podwright.data.catalog.store import Store
from podwright.data.selecting.links import link
from podwright.data.selecting.manifests import make_manifest
from podwright.data.selecting.selections import Selection, load
from podwright.data.selecting.verifying import Verified, will_be_verified
from podwright.launch.session import Session
from podwright.launch.submission import Submission, prepare
from podwright.runs import Home
from podwright.spec.problems import Refusal
from tests.unit.data.conftest import Say


def overwrite(path: Path, when_ns: int | None = None) -> Path:
    """Write as many other bytes over a file; `when_ns` sets its time."""
    size = path.stat().st_size
    path.write_bytes(b"\1" * size)
    os.utime(path, ns=(0, path.stat().st_mtime_ns + 10**9 if when_ns is None else when_ns))
    return path


@pytest.fixture(params=[True, False], ids=["sums", "none"])
def chosen(request: pytest.FixtureRequest, ask: Say, store: Store, tree: Path) -> Selection:
    ask("scan", tree, "--name", "d", *["--checksums"] * request.param)
    ask("select", "d", "--name", "s")
    return load(store, "s")


def has_sums(selection: Selection) -> bool:
    return all(file.sha256 for _, sample in selection.rows() for file in sample.files)


def test_a_file_of_the_same_size_and_another_time_is_not_what_was_chosen(
    chosen: Selection, store: Store, tree: Path
) -> None:
    overwrite(sorted(tree.rglob("*_label_*.png"))[0])
    with pytest.raises(Refusal, match="1 file is not what s was made of, the first: 20180801_145028/label"):
        link(store, chosen, None)


def test_a_touched_file_is_what_was_chosen_where_its_sha256_is(chosen: Selection, store: Store, tree: Path) -> None:
    count = link(store, chosen, None).verified.files
    assert link(store, chosen, None).verified == Verified(stat=count)
    os.utime(next(tree.rglob("*_label_*.png")), ns=(0, 5))
    if has_sums(chosen):
        assert link(store, chosen, None).verified == Verified(stat=count - 1, sha256=1)
    else:
        with pytest.raises(Refusal, match="1 file is not what s was made of"):
            link(store, chosen, None)


def test_all_bytes_are_compared_where_that_is_asked_for(chosen: Selection, store: Store, tree: Path) -> None:
    if not has_sums(chosen):
        with pytest.raises(Refusal, match="s cannot be verified: 36 files of it have no SHA-256") as caught:
            link(store, chosen, None, verify=True)
        assert caught.value.problems[0].hint == f"podwright data scan {tree} --name d --checksums, and select again"
        return
    path = next(tree.rglob("*_label_*.png"))
    assert link(store, chosen, None, verify=True).verified == Verified(sha256=36)
    overwrite(path, path.stat().st_mtime_ns)
    assert link(store, chosen, None).verified == Verified(stat=36)
    with pytest.raises(Refusal, match="1 file is not what s was made of"):
        link(store, chosen, None, verify=True)


def test_a_selection_of_before_is_read_and_compared_by_size(chosen: Selection, store: Store) -> None:
    path = store.selections / "s" / "samples.parquet"
    digest = chosen.digest
    table: pa.Table = parquet.read_table(path)
    parquet.write_table(table.drop_columns(["mtime_ns"]), path)
    old = load(store, "s")
    assert (old.digest, link(store, old, None).verified) == (digest, Verified(size=36))


def test_what_is_brought_to_nodes_is_compared_on_its_way(chosen: Selection, tree: Path) -> None:
    assert will_be_verified(chosen, None, False) == (Verified(sha256=36) if has_sums(chosen) else Verified(stat=36))
    overwrite(next(tree.rglob("*_label_*.png")))
    if has_sums(chosen):
        assert make_manifest(chosen, None).files >= 36
    else:
        with pytest.raises(Refusal, match="1 file is not what s was made of"):
            make_manifest(chosen, None)


def test_the_record_says_what_is_true_of_all_files() -> None:
    assert (Verified(stat=2) + Verified(size=1, sha256=4)).as_json() == {
        "how": "size",
        "files": 7,
        "size": 1,
        "stat": 2,
        "sha256": 4,
    }


def test_a_run_says_how_its_selection_was_compared(chosen: Selection, tmp_path: Path) -> None:
    session = Session(Home.open(tmp_path / "home"))
    file = tmp_path / "workload.yaml"
    file.write_text("name: looks\ncommand: ls {data.frames}\ndata: {frames: 'selection:s'}\n")
    workload = spec.load_workload(file)
    run = launch.start(session, workload)
    assert run.wait(120).state == "succeeded"
    verified = {"how": "stat", "files": 36, "size": 0, "stat": 36, "sha256": 0}
    assert run.wait(120).as_json()["verified"] == verified
    assert json.loads((run.folder.path / "run.json").read_bytes())["verified"] == verified
    if has_sums(chosen):
        with prepare(session, Submission(workload, "local", "looks-2345", verify=True)) as prepared:
            assert prepared.request.verified == {"how": "sha256", "files": 36, "size": 0, "stat": 0, "sha256": 36}


def test_a_copy_whose_bytes_rotted_is_found_where_it_is_asked_for(ask: Say, chosen: Selection, tmp_path: Path) -> None:
    to = tmp_path / "copy"
    count = ask("stage", "s", "--to", to)["copied"]
    rotten = next(to.rglob("*_label_*.png"))
    before = rotten.read_bytes()
    overwrite(rotten, rotten.stat().st_mtime_ns)
    assert ask("stage", "s", "--to", to)["reused"] == count
    assert rotten.read_bytes() != before
    again = ask("stage", "s", "--to", to, "--verify")
    assert (again["copied"], again["reused"], rotten.read_bytes()) == (1, count - 1, before)
    assert ask("stage", "s", "--to", to, "--verify")["reused"] == count
