"""FSDP2 on CPUs: checkpoints are whole, and any number of ranks goes on from them to the same losses."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.programs.conftest import told

GLOBAL_BATCH = 4


@pytest.mark.slow
def test_sharded_checkpoints_are_whole_and_go_on_anywhere(spawn: Callable[..., Any], tmp_path: Path) -> None:
    def train(ranks: int, *more: object) -> dict[int, Any]:
        launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks))
        size = ("--limit", 9, "--epochs", 2, "--batch", GLOBAL_BATCH // ranks, "--checkpoint-steps", 2)
        place = ("--checkpoint", tmp_path / "kept", "--out", tmp_path / "out")
        given = ("--device", "cpu", "--precision", "fp32", "--tell-every-s", 0, *size, *place, *more)
        process = spawn("transformer/train.py", *given, launcher=launcher if ranks > 1 else ())
        text, _ = process.communicate(timeout=600)
        assert process.returncode == 0, text
        losses: dict[int, Any] = told(text, "loss")
        return losses

    whole = train(2, "--shard")
    assert list(whole) == [1, 2, 3, 4]
    (tmp_path / "kept" / "step-00000004.pt").unlink()
    shutil.copytree(tmp_path / "kept", tmp_path / "half")
    kept = torch.load(tmp_path / "half" / "step-00000002.pt", weights_only=True)
    assert {type(value) for value in kept["model"].values()} == {torch.Tensor}
    assert kept["model"]["tokens.weight"].shape == (256, 128)
    for ranks, how in ((1, ()), (2, ("--shard",)), (4, ("--shard",))):
        shutil.rmtree(tmp_path / "kept")
        shutil.copytree(tmp_path / "half", tmp_path / "kept")
        assert train(ranks, *how) == pytest.approx({3: whole[3], 4: whole[4]}, rel=1e-4), ranks
