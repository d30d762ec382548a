"""A run that is given a selection: its program sees the files, its record pins the digest."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podwright import launch, spec
from podwright.data.catalog.scan import scan
from podwright.data.catalog.store import Store
from podwright.data.labels.recount import count_labels
from podwright.data.selecting.links import runs_with
from podwright.data.selecting.manifests import make_manifest
from podwright.data.selecting.select import Choice, make_selection
from podwright.data.selecting.selections import load
from podwright.launch import Session, pods
from podwright.launch.submission import Submission, prepare
from podwright.pilot.data.manifest import parse_manifest
from podwright.pilot.data.sources import version
from podwright.runs import Home
from podwright.spec.problems import Refusal
from tests.fixtures.a2d2 import write_scenes

PROGRAM = """
import json, pathlib, sys
root = pathlib.Path(sys.argv[1])
rows = [json.loads(line) for line in (root / "samples.jsonl").read_text().splitlines()]
assert all((root / row[role]).is_file() for row in rows for role in ("image", "label", "json"))
frames = sorted(str(path.relative_to(root)) for path in root.glob("*/camera/cam_*/*.png"))
assert frames == sorted(row["image"] for row in rows)
print("frames", len(rows), {row["split"] for row in rows})
"""


@pytest.fixture
def session(tmp_path: Path) -> Session:
    home = Home.open(tmp_path / "home")
    store = Store(home.path)
    scan(store, write_scenes(tmp_path / "a2d2"), "a2d2")
    count_labels(store, "a2d2")
    make_selection(store, "a2d2", Choice("street", split="train=0.75,test=0.25", by="scene"))
    return Session(home)


def workload(tmp_path: Path, data: str, **more: str) -> spec.Workload:
    folder = tmp_path / "work"
    (folder / "code").mkdir(parents=True, exist_ok=True)
    (folder / "code" / "look.py").write_text(PROGRAM)
    lines = "".join(f"{name}: {value}\n" for name, value in more.items())
    text = f"name: looks\ncode: code\ncommand: python3 look.py {{data.frames}}\ndata: {{frames: '{data}'}}\n{lines}"
    (folder / "workload.yaml").write_text(text)
    return spec.load_workload(folder / "workload.yaml")


def test_a_program_gets_the_files_of_a_split_and_the_record_pins_it(session: Session, tmp_path: Path) -> None:
    store = Store(session.home.path)
    run = launch.start(session, workload(tmp_path, "selection:street/train"))
    assert run.wait(120).state == "succeeded"
    assert any("frames 9 {'train'}" in line.text for line in run.folder.log_lines())
    document = json.loads((store.selections / "street" / "selection.json").read_bytes())
    pin = {"selection": "street", "split": "train", "digest": document["digest"]}
    assert json.loads((run.folder.path / "run.json").read_bytes())["inputs"] == {"frames": pin}
    every = launch.start(session, workload(tmp_path, "selection:street"))
    assert every.wait(120).state == "succeeded"
    used = runs_with(session.home.runs, load(store, "street"))
    assert {(row["id"], row["split"]) for row in used} == {(run.id, "train"), (every.id, None)}


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ("selection:stret", 'there is no selection "stret"'),
        ("selection:street/trian", 'street has no split "trian"'),
        ("data://nowhere/fast/frames", "there is no pod 'nowhere'"),
        ("data://fast", "names no place in a pod's storage"),
        ("data://adas/fast/../../etc", "names no place in a pod's storage"),
    ],
)
def test_what_leads_nowhere_is_refused_with_its_place(
    session: Session, tmp_path: Path, data: str, message: str
) -> None:
    with pytest.raises(Refusal, match=message.replace("(", ".")) as caught:
        launch.start(session, workload(tmp_path, data))
    problem = caught.value.problems[0]
    assert (problem.line, problem.field) == (4, "data.frames")


def test_files_that_changed_since_are_not_given_to_a_run(session: Session, tmp_path: Path) -> None:
    sorted((tmp_path / "a2d2").rglob("*_label_*.png"))[0].write_bytes(b"other")
    with pytest.raises(Refusal, match="1 file is not what street was made of, the first: 20180801_145028/label"):
        launch.start(session, workload(tmp_path, "selection:street"))


def test_the_manifest_says_where_each_file_is_and_which_version(session: Session, tmp_path: Path) -> None:
    manifest = make_manifest(load(Store(session.home.path), "street"), "test")
    rows = parse_manifest(manifest.data)
    assert {len(rows), manifest.files} == {3 * 3 + int((tmp_path / "a2d2" / "class_list.json").exists())}
    for row in rows:
        path = tmp_path / "a2d2" / row["path"]
        assert (row["source"], row["size"], row["sha256"]) == (path.as_uri(), path.stat().st_size, None)
        assert row["etag"] == version(path.stat())


POD = """\
name: adas
nodes: [{hosts: "d[1-2]", model: dgx-a100}]
storage: [{name: fast, kind: nfs, mount: MOUNT}, {name: cold, kind: nfs}]
schedulers: [{kind: slurm, folder: ~/podwright}]
"""


def make_known(session: Session, mount: Path) -> None:
    path = mount / "pod.yaml"
    path.write_text(POD.replace("MOUNT", str(mount)))
    pods.add(session.home, path)


def test_a_place_in_a_pods_storage_is_the_path_at_which_it_is_mounted(session: Session, tmp_path: Path) -> None:
    make_known(session, tmp_path)
    prepared = prepare(session, Submission(workload(tmp_path, "data://adas/fast/a2d2"), "local", "looks-2345"))
    assert prepared.job.parts[0].order.command == ["python3", "look.py", str(tmp_path / "a2d2")]
    with pytest.raises(Refusal, match="the pod adas mounts no storage cold"):
        prepare(session, Submission(workload(tmp_path, "data://adas/cold/a2d2"), "local", "looks-2345"))


def test_a_container_sees_what_the_links_lead_into(session: Session, tmp_path: Path) -> None:
    prepared = prepare(session, Submission(workload(tmp_path, "selection:street"), "local", "looks-2345"))
    shown = prepared.request.shown_paths()
    assert shown == [prepared.request.data["frames"].text, str(tmp_path / "a2d2")]
