"""As nanoGPT reads its words: a key and a value joined by `=`, with no parser."""

import os
import sys

import torch
from torch.distributed import init_process_group
from torch.nn.parallel import DistributedDataParallel as DDP

backend = "nccl"
device = "cuda"
for word in sys.argv[1:]:
    key, _, value = word.lstrip("-").partition("=")
    globals()[key] = value
model = torch.nn.Linear(1, 1).to(device)
if "RANK" in os.environ:
    init_process_group(backend=backend)
    model = DDP(model)
