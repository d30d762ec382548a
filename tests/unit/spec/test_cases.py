"""Case folders: a file as a user may write it, and the whole text that comes of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from podwright import spec
from tests.paths import CASES

FOLDER = CASES / "spec"
CASES = sorted(path.name for path in FOLDER.iterdir() if path.is_dir())


def outcome(file: Path, sets: list[str]) -> str:
    """Gives what a user would read: the refusal, or the resolved file."""
    try:
        loaded = spec.load_workload(file.name, sets) if file.name == "workload.yaml" else spec.load_pod(file.name)
    except spec.Refusal as refusal:
        return f"{refusal}\n"
    if isinstance(loaded, spec.Workload):
        return json.dumps(spec.workload_json(loaded), indent=1) + "\n"
    return f"{loaded.name}: {spec.fold_hosts(loaded.hosts())}\n"


@pytest.mark.parametrize("name", CASES)
def test_case(name: str, golden: Callable[[Path, str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = FOLDER / name
    monkeypatch.chdir(folder)
    file = next(path for path in (folder / "workload.yaml", folder / "pod.yaml") if path.is_file())
    sets = (folder / "sets.txt").read_text().splitlines() if (folder / "sets.txt").is_file() else []
    golden(folder / "expected.txt", outcome(file, sets))


def test_eight_mistakes_are_eight_problems() -> None:
    with pytest.raises(spec.Refusal) as caught:
        spec.load_workload(FOLDER / "eight-mistakes" / "workload.yaml")
    found = [(problem.line, problem.field) for problem in caught.value.problems]
    assert found == [
        (1, "name"),
        (2, "command"),
        (3, "nodes"),
        (4, "launcher"),
        (5, "resources.memroy"),
        (6, "env.RANK"),
        (7, "grace"),
        (8, "goal"),
    ]
