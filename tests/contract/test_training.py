"""The real trainer under a real run: a rank that is killed goes on from its checkpoint, and so does the loss."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from podwright import launch, spec
from tests.contract.sites import END_S, LocalSite
from tests.paths import ROOT

SMALL = "--epochs 6 --size 48x32 --width 4 --batch 2 --checkpoint-steps 2 --tell-every-s 0"
KILLED, KILLED_STEP = ROOT / "tests/fixtures/killed_trainer.py", 11


@pytest.mark.slow
def test_a_killed_rank_goes_on_from_its_checkpoint_and_the_loss_with_it(local: LocalSite, tmp_path: Path) -> None:
    frames = tmp_path / "frames"
    maker = [sys.executable, str(ROOT / "programs/segmentation/scenes.py"), str(frames)]
    subprocess.run([*maker, "--frames", "48", "--scenes", "3", "--size", "96x64"], check=True, capture_output=True)
    file = tmp_path / "train.yaml"
    file.write_text(
        f"name: train\ncode: {ROOT / 'programs'}\nlauncher: torchrun\nranks_per_node: 2\nretries: 1\n"
        f"env: {{OMP_NUM_THREADS: 1}}\n"
        f"command: {sys.executable} {KILLED} {KILLED_STEP} segmentation/train.py --data {{data.frames}} {SMALL}\n"
        f"data: {{frames: {frames}}}\n"
    )
    run = local.adopt(launch.start(local.session, spec.load_workload(file)).id)
    record = run.wait(END_S)
    assert (record.state, record.attempts) == ("succeeded", 2), run.explain()
    # Values are read from the series: of events there is one a second, and a fast machine does many steps in that.
    losses = [told for told in local.told(run, "loss") if told.rank == 0]
    first = [told for told in losses if told.retry == 0]
    second = [told for told in losses if told.retry == 1]
    assert first[-1].step in range(KILLED_STEP - 1, KILLED_STEP + 2), "the other rank may tell that step"
    # A checkpoint comes every two steps; that of the step itself may be written yet, or not.
    assert second[0].step in range(KILLED_STEP - 2, KILLED_STEP + 3), "it starts where the last checkpoint was"
    assert second[-1].step == max(told.value for told in local.told(run, "steps"))
    assert second[-1].value < 0.95 * first[0].value, "and goes on learning"
    assert (run.folder.path / "results" / "confusion.json").exists()
