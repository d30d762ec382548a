"""Checkpoints: whole or absent, the last two kept, damage survived."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import torch

from kit.checkpoint import load_latest, save, saved


def state(value: int) -> dict[str, object]:
    return {"model": {"w": torch.full((64,), float(value))}, "epoch": value}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_nothing_there(tmp_path: Path) -> None:
    assert load_latest(tmp_path / "none", pytest.fail) is None


def test_the_last_two_are_kept(tmp_path: Path) -> None:
    for step in (5, 10, 200):
        save(tmp_path, step, state(step))
    assert names(tmp_path) == ["step-00000010.pt", "step-00000200.pt"]
    found = load_latest(tmp_path, pytest.fail)
    assert found is not None
    assert found[0] == "step-00000200.pt"
    assert found[1]["model"]["w"].tolist() == [200.0] * 64


def test_what_a_killed_attempt_left_is_cleared(tmp_path: Path) -> None:
    (tmp_path / ".step-00000003.pt.77").write_bytes(b"torn")
    save(tmp_path, 5, state(5))
    assert names(tmp_path) == ["step-00000005.pt"]


def test_a_full_disk_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    save(tmp_path, 5, state(5))

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        save(tmp_path, 10, state(10))
    assert names(tmp_path) == ["step-00000005.pt"]


@pytest.mark.parametrize("damage", ["half", "flipped", "empty", "text"])
def test_a_damaged_one_falls_back_and_is_set_aside(tmp_path: Path, damage: str) -> None:
    save(tmp_path, 5, state(5))
    path = save(tmp_path, 10, state(10))
    whole = path.read_bytes()
    place = whole.index(torch.tensor(10.0).numpy().tobytes() * 8) + 9
    flipped = whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :]
    path.write_bytes({"half": whole[: len(whole) // 2], "flipped": flipped, "empty": b"", "text": b"hello"}[damage])
    lines: list[str] = []
    found = load_latest(tmp_path, lines.append)
    assert found is not None
    assert found[1]["epoch"] == 5
    assert len(lines) == 1
    assert lines[0].startswith("checkpoint step-00000010.pt is damaged (")
    assert lines[0].endswith("); falling back to the one before")
    assert [path.name for path in saved(tmp_path)] == ["step-00000005.pt"]
    save(tmp_path, 7, state(7))
    assert load_latest(tmp_path, pytest.fail) is not None
