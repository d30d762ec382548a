"""The real trainer under a real run: a rank that is killed goes on from its checkpoint, and so does the loss."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from podwright import launch, spec
from tests.contract.sites import END_S, LocalSite
from tests.paths import ROOT

SMALL = "--epochs 6 --size 48x32 --width 4 --batch 2 --checkpoint-steps 2 --tell-every-s 0"


@pytest.mark.slow
def test_a_killed_rank_goes_on_from_its_checkpoint_and_the_loss_with_it(local: LocalSite, tmp_path: Path) -> None:
    frames = tmp_path / "frames"
    maker = [sys.executable, str(ROOT / "programs/segmentation/scenes.py"), str(frames)]
    subprocess.run([*maker, "--frames", "48", "--scenes", "3", "--size", "96x64"], check=True, capture_output=True)
    file = tmp_path / "train.yaml"
    file.write_text(
        f"name: train\ncode: {ROOT / 'programs'}\nlauncher: torchrun\nranks_per_node: 2\nretries: 1\n"
        f"env: {{OMP_NUM_THREADS: 1}}\n"
        f"command: {sys.executable} segmentation/train.py --data {{data.frames}} {SMALL}\n"
        f"data: {{frames: {frames}}}\n"
    )
    run = local.adopt(launch.start(local.session, spec.load_workload(file)).id)
    local.wait_step(run, 10)
    os.kill(local.rank(run, 1), signal.SIGKILL)
    record = run.wait(END_S)
    assert (record.state, record.attempts) == ("succeeded", 2), run.explain()
    told = [event for event in local.events(run, "result") if "loss" in event["values"]]
    first = [event["values"] for event in told if event["e"] == [0, 0]]
    second = [event["values"] for event in told if event["e"] == [0, 1]]
    told_late = 3  # a checkpoint comes every two steps, and a kill may swallow the last words before it
    assert 8 <= second[0]["step"] <= first[-1]["step"] + told_late, "it starts where the last checkpoint was"
    assert second[-1]["step"] == second[-1]["steps"]
    assert second[-1]["loss"] < 0.95 * first[0]["loss"], "and goes on learning"
    assert (run.folder.path / "results" / "confusion.json").exists()
