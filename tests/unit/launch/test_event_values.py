"""Event files of TensorBoard in a run's folder: their values are results and series where its ranks told none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import podwright
from podwright.reading.run_data import gather
from tests.fixtures.tensorboard import HEAD, simple

PROGRAM = """\
import os, pathlib, shutil, sys
print('{"podwright": {"step": 2, "acc": 0.75}}')
print("epoch 1: loss=0.9 mae=0.1")
target = pathlib.Path(os.environ["PODWRIGHT_FOLDER"], "results", "logs")
target.mkdir(parents=True)
shutil.copy(sys.argv[1], target)
"""
SCALARS = [(1, "loss", 0.5), (2, "loss", 0.25), (2, "acc", 0.125), (2, "val/f1", 0.5)]


@pytest.fixture
def ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> podwright.Run:
    """A run that tells `acc`, prints `loss` and `mae` for people, and leaves an event file."""
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    rows = [simple(1.7e9 + step, step, tag, value) for step, tag, value in SCALARS]
    (tmp_path / "events.out.tfevents.1.host").write_bytes(HEAD + b"".join(rows))
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "events.out.tfevents.1.host")]
    run = podwright.run({"name": "board", "command": command})
    assert run.wait(120).state == "succeeded", run.explain()
    return run


def test_told_values_come_first_then_event_files_then_guesses(ended: podwright.Run) -> None:
    results = ended.record().results
    assert {name: results[name] for name in ("acc", "loss", "val_f1", "mae")} == {
        "acc": 0.75,
        "loss": 0.25,
        "val_f1": 0.5,
        "mae": 0.1,
    }
    rows = [(row.name, row.step, row.value) for row in ended.series() if row.name in ("acc", "loss", "val_f1")]
    assert sorted(rows) == [("acc", 2.0, 0.75), ("loss", 1.0, 0.5), ("loss", 2.0, 0.25), ("val_f1", 2.0, 0.5)]
    curves = gather(ended.folder.path).told.curves
    assert [point.value for point in curves["loss"]] == [0.5, 0.25]


def test_show_says_where_they_come_from(ended: podwright.Run) -> None:
    from podwright.cli.commands.look.show_folder import happened
    from podwright.launch import overview_of

    facts = dict(happened(overview_of(ended)))
    read = facts["read"].splitlines()
    assert read[-1] == "loss, val_f1: from event files of TensorBoard"
    assert "loss" not in read[0]
    assert "mae" in read[0]
