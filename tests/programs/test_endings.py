"""However a training ends, the checkpoint that is being written then is waited for."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import kit.checkpoint
from kit.loop import Task, run
from kit.options import Shared
from kit.world import World


class OneWeight(nn.Module):
    """A network of one weight, whose output is the loss."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(1))

    def forward(self, batch: Tensor) -> Tensor:
        return (self.weight * batch).square().mean()


class Ending(Task):
    """Two steps of an epoch, then `end` is raised, or it is asked to stop while it is scored."""

    benchmark, quality = "toy", "good"
    epochs, steps, batch, train_samples, eval_samples = 1, 2, 1, 2, 1

    def __init__(self, world: World, end: BaseException | None, in_score: bool) -> None:
        self.world, self.net, self._end, self._in_score = world, OneWeight(), end, in_score
        self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)

    def batches(self, epoch: int, start: int) -> Iterator[tuple[Tensor, ...]]:
        for _ in range(start, self.steps):
            yield (torch.ones(1),)
        if self._end is not None and not self._in_score:
            raise self._end

    def rate(self, progress: float) -> float:
        return 0.1

    def score(self) -> dict[str, float]:
        if self._in_score:
            signal.raise_signal(signal.SIGTERM)
            for _ in range(3):  # what a step tells is learnt at the next
                self.heed()
        return {"good": 1.0}

    def shape(self) -> dict[str, Any]:
        return {}


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Holds each write until somebody waits for it."""
    for name in ("RANK", "WORLD_SIZE", "PODWRIGHT_FOLDER", "PODWRIGHT_CHECKPOINT", "PODWRIGHT_GRACE_S"):
        monkeypatch.delenv(name, raising=False)
    gate, whole, wait = threading.Event(), kit.checkpoint.save, kit.checkpoint.Background.wait

    def save(folder: Path, step: int, state: dict[str, Any]) -> Path:
        gate.wait()
        return whole(folder, step, state)

    def waited(background: kit.checkpoint.Background, limit_s: float | None = None) -> bool:
        if background.is_busy:
            gate.set()
        return wait(background, limit_s)

    monkeypatch.setattr(kit.checkpoint, "save", save)
    monkeypatch.setattr(kit.checkpoint.Background, "wait", waited)
    before = signal.getsignal(signal.SIGTERM)
    yield gate
    gate.set()
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize(
    ("end", "in_score", "ends"),
    [
        (None, False, 0),
        (None, True, 143),
        (RuntimeError("CUDA error"), False, RuntimeError),
        (ValueError("a label that is none"), False, ValueError),
        (OSError("frames are gone"), False, SystemExit),
    ],
    ids=["end", "asked while it is scored", "an error of torch", "another error", "data that is gone"],
)
def test_it_is_waited_for(
    end: BaseException | None, in_score: bool, ends: Any, held: threading.Event, tmp_path: Path
) -> None:
    settings = Shared(out=tmp_path / "out", checkpoint=tmp_path / "kept", checkpoint_steps=2, device="cpu")

    def started() -> int:
        return run(settings, lambda world: Ending(world, end, in_score))

    if isinstance(ends, int):
        assert started() == ends
    else:
        with pytest.raises(ends):
            started()
    assert held.is_set(), "nobody waited"
    assert (tmp_path / "kept" / "step-00000002.pt").exists()


def test_no_longer_than_the_run_has(
    held: threading.Event, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One that does not come to an end within `grace` is given up: the one before it stays."""
    monkeypatch.setattr(held, "set", lambda: None)
    settings = Shared(out=tmp_path, checkpoint=tmp_path / "kept", checkpoint_steps=2, device="cpu", grace_s=0.05)
    with pytest.raises(ValueError, match="none"):
        run(settings, lambda world: Ending(world, ValueError("none"), in_score=False))
    monkeypatch.undo()
    assert "is not whole after 0.05 s: the one before stays" in capsys.readouterr().err
