#!/bin/sh
#SBATCH --array=0-5%3
#SBATCH -p gpu -G 2 -n 2 --mem-per-cpu=4G
srun python sweep.py --task $SLURM_ARRAY_TASK_ID > out.$SLURM_ARRAY_TASK_ID
