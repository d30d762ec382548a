"""Checkpoints: whole or absent, the last two kept, damage survived."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from io import FileIO
from pathlib import Path
from typing import IO, Any

import pytest
import torch

import kit.checkpoint
from kit.checkpoint import Background, load_latest, save, saved


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


class Killing(FileIO):
    """A file at whose so many hundredth byte its process is killed."""

    left = 0

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        written = super().write(view[: self.left])
        self.left -= written
        if self.left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return written


def killed_at(byte: int) -> Callable[[Path], IO[bytes]]:
    def opened(path: Path) -> Any:
        file = Killing(str(path), "w")
        file.left = byte
        return file

    return opened


def test_killed_at_any_byte_the_one_before_is_there(tmp_path: Path) -> None:
    """No moment is waited for: the process that writes kills itself as it comes to that byte."""
    size = save(tmp_path, 5, state(5)).stat().st_size
    for byte in (1, 63, 64, 65, size // 3, size // 2, size - 1, size):
        child = os.fork()
        if not child:
            save(tmp_path, 10, state(10), killed_at(byte))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        assert os.WTERMSIG(status) == signal.SIGKILL, byte
        found = load_latest(tmp_path, pytest.fail)
        assert found is not None
        assert found[0] == "step-00000005.pt"
    save(tmp_path, 10, state(10))
    assert names(tmp_path) == ["step-00000005.pt", "step-00000010.pt"]


class Gate:
    """Holds every write until it is opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.open = threading.Event()
        whole = kit.checkpoint.save

        def held(folder: Path, step: int, state: dict[str, Any]) -> Path:
            self.open.wait()
            return whole(folder, step, state)

        monkeypatch.setattr(kit.checkpoint, "save", held)


def test_a_state_is_kept_as_it_was_though_the_training_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, background = Gate(monkeypatch), Background(tmp_path)
    weight = torch.full((4, 4), 1.0).t()
    assert background.save(1, {"model": {"w": weight}, "list": [weight[:2]], "epoch": 0})
    weight += 1
    assert not background.wait(0.01)
    assert names(tmp_path) == []
    gate.open.set()
    assert background.wait()
    found = load_latest(tmp_path, pytest.fail)
    assert found is not None
    kept = found[1]["model"]["w"]
    assert (kept == 1).all()
    assert kept.stride() == weight.stride(), "a fused optimizer goes through memory as it lies"
    figures = background.figures()
    assert figures.pop("checkpoint_write_s") > 0
    size = (tmp_path / "step-00000001.pt").stat().st_size
    assert figures == {
        **{"checkpoint_bytes": size, "checkpoint_memory_bytes": 64 + 32, "checkpoints": 1, "checkpoints_skipped": 0}
    }


def test_one_that_is_due_waits_or_is_left_out_and_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate, waiting = Gate(monkeypatch), Background(tmp_path / "waits")
    skipping = Background(tmp_path / "skips", skips=True)
    waiting.save(1, state(1))
    assert skipping.save(1, state(1))
    assert not skipping.save(2, state(2))
    second = threading.Thread(target=waiting.save, args=(2, state(2)))
    second.start()
    assert (skipping.skipped, waiting.skipped) == (1, 0)
    gate.open.set()
    second.join()
    waiting.wait()
    skipping.wait()
    assert names(tmp_path / "waits") == ["step-00000001.pt", "step-00000002.pt"]
    assert names(tmp_path / "skips") == ["step-00000001.pt"]


def test_a_write_that_fails_is_raised_once_at_the_next_step(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    background = Background(tmp_path / "file" / "folder")
    background.save(1, state(1))
    with pytest.raises(OSError, match="folder"):
        background.wait()
    background.check()
