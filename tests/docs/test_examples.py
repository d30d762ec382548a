"""The examples in a fresh copy: each is right as it is, or the refusal says how its data is made."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from podwright import spec
from tests.fixtures.checkouts import copy_checkout
from tests.paths import ROOT

WORKLOADS = sorted(
    path for path in (ROOT / "examples").rglob("*.yaml") if re.search(r"^command:", path.read_text(), re.M)
)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """As it is committed: what was made for examples here does not count."""
    folder = tmp_path_factory.mktemp("fresh") / "copy"
    copy_checkout(folder)
    return folder


@pytest.mark.parametrize("path", WORKLOADS, ids=lambda path: path.stem)
def test_an_example_is_ready_or_says_how_it_gets_so(copy: Path, path: Path) -> None:
    file = copy / path.relative_to(ROOT)
    try:
        spec.load_workload(file)
        return
    except spec.Refusal as refusal:
        (problem,) = refusal.problems
    assert problem.field.startswith("data.")
    made = re.search(r"its line says: drawn by `python (.*)`", problem.hint)
    assert made, problem.hint
    few = re.sub(r"--frames \d+", "--frames 8", made[1])  # all of them take seconds to draw
    subprocess.run([sys.executable, *shlex.split(few)], cwd=copy, check=True, capture_output=True)
    assert spec.load_workload(file).inputs()


def test_there_are_examples() -> None:
    assert {"segmentation", "resnet", "sweep"} <= {path.stem for path in WORKLOADS}
