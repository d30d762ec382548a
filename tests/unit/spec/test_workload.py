"""The workload as the rest of the project sees it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from podwright import spec

Make = Callable[..., spec.Workload]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """Loads a workload of these further lines."""

    def load(*lines: str, sets: tuple[str, ...] = ()) -> spec.Workload:
        path = tmp_path / "workload.yaml"
        path.write_text("\n".join(["name: train", *lines, ""]))
        return spec.load_workload(path, sets)

    return load


def test_defaults(make: Make) -> None:
    workload = make("command: python train.py")
    assert workload.argv == ("python", "train.py")
    assert (workload.nodes, workload.ranks_per_node, workload.launcher, workload.runtime) == (1, 1, "ranks", "bare")
    assert (workload.grace_s, workload.time_limit_s, workload.hang_after_s, workload.join_timeout_s) == (
        30,
        None,
        None,
        600,
    )
    assert (workload.checkpoint, workload.retries, workload.goal, workload.code_folder) == (
        "checkpoints",
        0,
        None,
        None,
    )


def test_values_have_units_in_python(make: Make) -> None:
    workload = make(
        "command: x", "resources: {memory: 2GiB, shm: 1GB}", "time_limit: 1h30m", "grace: 500ms", "slurm: {time: 4h}"
    )
    assert (workload.resources.memory_bytes, workload.resources.shm_bytes) == (2 << 30, 10**9)
    assert (workload.time_limit_s, workload.grace_s, workload.slurm.time_s) == (5400, 0.5, 14400)


@pytest.mark.parametrize(
    ("lines", "ranks"),
    [(["resources: {gpus: 8}"], 8), (["resources: {gpus: 8}", "ranks_per_node: 2"], 2), (["ranks_per_node: 3"], 3)],
)
def test_ranks_per_node(make: Make, lines: list[str], ranks: int) -> None:
    assert make("command: x", *lines).ranks_per_node == ranks


@pytest.mark.parametrize(
    ("line", "runtime"),
    [("image: a:1", "container"), ("build: {base: a:1}", "container"), ("image: a:1\nruntime: bare", "bare")],
)
def test_runtime(make: Make, line: str, runtime: str) -> None:
    assert make("command: x", line).runtime == runtime


def test_where_it_came_from(make: Make, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    workload = make("command: x", "code: src")
    assert workload.path == tmp_path / "workload.yaml"
    assert workload.source == b"name: train\ncommand: x\ncode: src\n"
    assert (workload.folder, workload.code_folder) == (tmp_path, tmp_path / "src")


def test_relative_path_is_made_absolute(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make("command: x", "code: .")
    monkeypatch.chdir(tmp_path)
    workload = spec.load_workload("workload.yaml")
    assert (workload.path, workload.code_folder) == (tmp_path / "workload.yaml", tmp_path)


def test_command_is_split_like_a_shell_would(make: Make) -> None:
    assert make("command: a 'b c' \"d\\\\\" $HOME x#y").argv == ("a", "b c", "d\\", "$HOME", "x#y")
    assert make("command: >\n  a\n  b").argv == ("a", "b")


def test_env_is_taken_as_written(make: Make) -> None:
    workload = make(
        "command: x", 'env: {A: 1, B: 0.10, C: no, D: true, E: 010, F: 1e3, G: "x", H: 1:30, I: 2024-01-01}'
    )
    assert list(workload.env.values()) == ["1", "0.10", "no", "true", "010", "1e3", "x", "1:30", "2024-01-01"]


def test_points_in_the_order_of_the_file(make: Make) -> None:
    workload = make("command: x", "matrix: {lr: [0.1, 0.01], seed: [1, 2]}")
    assert spec.points(workload) == [
        {"lr": 0.1, "seed": 1},
        {"lr": 0.1, "seed": 2},
        {"lr": 0.01, "seed": 1},
        {"lr": 0.01, "seed": 2},
    ]
    assert spec.points(make("command: x")) == []


def test_goal() -> None:
    assert spec.Goal.model_validate({"metric": "iou", "at_least": 0.65}).reached_by(0.65)
    assert not spec.Goal.model_validate({"metric": "iou", "at_least": 0.65}).reached_by(0.64)
    assert spec.Goal.model_validate({"metric": "loss", "at_most": 0}).reached_by(-1)
    assert not spec.Goal.model_validate({"metric": "loss", "at_most": 0}).reached_by(0.1)


def test_json_goes_around(make: Make) -> None:
    workload = make(
        "command: [a, '{matrix.lr}']",
        "resources: {gpus: 2, memory: 1536MiB}",
        "time_limit: 1d",
        "matrix: {lr: [0.1, x, true]}",
        "image: a:1",
        "kubernetes: {patch: {spec: {x: [1, null]}}}",
    )
    values = json.loads(json.dumps(spec.workload_json(workload)))
    assert (values["ranks_per_node"], values["runtime"]) == (2, "container")
    assert (values["resources"]["memory"], values["time_limit"]) == ("1536MiB", "1d")
    assert spec.workload_json(spec.Workload.model_validate(values)) == values


def test_workload_does_not_change(make: Make) -> None:
    workload = make("command: x")
    with pytest.raises(ValueError, match="frozen"):
        workload.nodes = 2  # type: ignore[misc]


def test_sets_lie_over_the_file(make: Make) -> None:
    workload = make(
        "command: x",
        "nodes: 1",
        "env: {A: 1}",
        sets=("nodes=4", "env.A=007", "env.B=no", "slurm.options=[--x]", "command=a b"),
    )
    assert (workload.nodes, workload.env, workload.argv) == (4, {"A": "007", "B": "no"}, ("a", "b"))
    assert workload.slurm.options == ("--x",)


def test_set_problem_has_no_place(make: Make) -> None:
    with pytest.raises(spec.Refusal) as caught:
        make("command: x", sets=("resources.gpus=four",))
    problem = caught.value.problems[0]
    assert (problem.file, problem.line, problem.field) == ("--set", None, "resources.gpus")


def test_kind_of_a_file_is_told_by_its_fields(tmp_path: Path) -> None:
    for text, fields in (("name: x\nlauncher: mpi\n", ["command"]), ("name: x\nservices: []\n", ["nodes"])):
        (tmp_path / "f.yaml").write_text(text)
        with pytest.raises(spec.Refusal) as caught:
            spec.load(tmp_path / "f.yaml")
        assert [problem.field for problem in caught.value.problems] == fields


def test_a_field_that_is_near_one_within_another_is_named(make: Make) -> None:
    with pytest.raises(spec.Refusal) as refused:
        make("command: x", "gpu: 1")
    assert refused.value.problems[0].hint == "did you mean `resources.gpus`?"
