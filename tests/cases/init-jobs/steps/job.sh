#!/bin/bash
#SBATCH --gpus=1
for seed in 1 2 3; do
    python train.py --seed $seed
done
python plot.py
