"""Averages a number over all ranks with DistributedDataParallel, on GPUs where there are some."""

import argparse
import json
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

try:
    import tensorboard
except ImportError:
    tensorboard = None


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--lr", type=float, default=0.1)
    options = parser.parse_args()
    on_gpu = torch.cuda.is_available()
    dist.init_process_group("nccl" if on_gpu else "gloo")
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if on_gpu else torch.device("cpu")
    torch.manual_seed(0)
    model = DDP(nn.Linear(4, 1).to(device))
    optimizer = torch.optim.SGD(model.parameters(), lr=options.lr)
    torch.manual_seed(dist.get_rank())
    for epoch in range(1, options.epochs + 1):
        inputs = torch.randn(16, 4, device=device)
        loss = (model(inputs) - inputs.sum(1, keepdim=True)).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        told = loss.detach().clone()
        dist.all_reduce(told)
        if dist.get_rank() == 0:
            print(json.dumps({"podwright": {"epoch": epoch, "loss": float(told) / dist.get_world_size()}}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
