#!/usr/bin/env bash
# Everything on this machine.
OMP_NUM_THREADS=4
accelerate launch --num_processes 2 --mixed_precision bf16 finetune.py --epochs 3
