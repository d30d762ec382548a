import argparse
import os

import apex
import torch
import wandb

parser = argparse.ArgumentParser()
parser.add_argument("images", help="a folder")
parser.add_argument("--lr", type=float, required=True)
options = parser.parse_args()
wandb.login(key=os.environ["MY_API_KEY"])
model = torch.nn.DataParallel(torch.nn.Linear(2, 2)).cuda()
apex.amp.initialize(model)
print(os.environ["REGION"], os.environ["RANK"])
