"""What `data:` resolves to: inside the code, a path on the target, or what is named otherwise."""

from __future__ import annotations

from pathlib import Path

import pytest

from podwright import spec
from podwright.spec.inputs import Input, resolve_input

FOLDER = Path("/work/project")


@pytest.mark.parametrize(
    ("text", "code", "expected"),
    [
        ("frames", FOLDER, Input("code", "frames")),
        ("./src/../frames/day", FOLDER, Input("code", "frames/day")),
        ("src/frames", FOLDER / "src", Input("code", "frames")),
        (".", FOLDER, Input("code", ".")),
        ("frames", FOLDER / "src", Input("path", "/work/project/frames")),
        ("../frames", FOLDER, Input("path", "/work/frames")),
        ("frames", None, Input("path", "/work/project/frames")),
        ("/data/frames", FOLDER, Input("path", "/data/frames")),
        ("/work/project/frames", FOLDER, Input("path", "/work/project/frames")),
        ("s3://bucket/frames", None, Input("url", "s3://bucket/frames")),
        ("s3://bucket/frames", FOLDER, Input("url", "s3://bucket/frames")),
        ("gs+http://bucket", FOLDER, Input("url", "gs+http://bucket")),
        ("data://adas/fast/frames", FOLDER, Input("storage", "data://adas/fast/frames")),
        ("selection:night", FOLDER, Input("selection", "selection:night")),
        ("selection:night/train", None, Input("selection", "selection:night/train")),
    ],
)
def test_what_an_entry_is(text: str, code: Path | None, expected: Input) -> None:
    assert resolve_input(text, FOLDER, code) == expected


def test_a_workload_resolves_all_of_its_inputs(tmp_path: Path) -> None:
    (tmp_path / "frames").mkdir()
    file = tmp_path / "workload.yaml"
    file.write_text("name: toy\ncommand: 'true'\ncode: .\ndata: {near: frames, far: /data/frames, away: 's3://b/x'}\n")
    assert spec.load_workload(file).inputs() == {
        "near": Input("code", "frames"),
        "far": Input("path", "/data/frames"),
        "away": Input("url", "s3://b/x"),
    }


def test_data_that_is_missing_is_told_with_what_its_line_says(tmp_path: Path) -> None:
    (tmp_path / "workload.yaml").write_text(
        "name: toy\ncommand: train\ndata:\n  frames: frames # made by `make frames`\n"
    )
    with pytest.raises(spec.Refusal) as caught:
        spec.load_workload(tmp_path / "workload.yaml")
    (problem,) = caught.value.problems
    assert (problem.line, problem.hint) == (4, "its line says: made by `make frames`")
    with pytest.raises(spec.Refusal) as caught:
        spec.load_workload(tmp_path / "workload.yaml", ("data.frames=other",))
    assert caught.value.problems[0].hint == "paths are relative to this file's folder"
