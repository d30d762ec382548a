#!/bin/bash -l
#SBATCH --nodes=1 --gres=gpu:a100:4 --ntasks-per-node=4
srun --container-image=registry.example#nvidia/pytorch:25.01-py3 --container-mounts=/data:/data -u python -m trainer.main --data /data
