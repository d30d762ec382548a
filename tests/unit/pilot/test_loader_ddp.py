"""The loader under DistributedDataParallel itself: three ranks over a set that fills no step of all."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from podwright.pilot.data.loader import Loader

class Numbers:
    def __len__(self):
        return 57
    def __getitem__(self, number):
        return torch.tensor([float(number)])

torch.set_num_threads(1)
dist.init_process_group("gloo")
model = DistributedDataParallel(torch.nn.Linear(1, 1))
loader = Loader(Numbers(), 14, seed=1)  # 57 are a step of 42, and 15 that are left over
for epoch in range(3):
    steps = 0
    for batch in loader:
        model(batch).sum().backward()
        steps += 1
    counts = [None] * 3
    dist.all_gather_object(counts, (loader.epoch, steps))
    assert counts == [(epoch + 1, 2)] * 3, counts
if dist.get_rank() == 0:
    print("ended with", loader.state_dict())
dist.destroy_process_group()
"""


def test_three_ranks_come_to_the_end_of_an_uneven_set(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    launcher = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "3")
    done = subprocess.run([sys.executable, *launcher, str(program)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "ended with {'epoch': 3, 'taken': 0, 'seed': 1, 'samples': 57}\n"
