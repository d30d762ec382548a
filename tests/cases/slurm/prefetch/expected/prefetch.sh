#!/bin/sh
#SBATCH --job-name=train-4444.prefetch
#SBATCH --comment=podwright
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --time=00:10:00
#SBATCH --account=vision
#SBATCH --qos=long
#SBATCH --no-requeue
#SBATCH --export=AWS_ACCESS_KEY_ID,AWS_SECRET_ACCESS_KEY
#SBATCH --propagate=NONE
#SBATCH --chdir=/lustre/alice/podwright/runs/train-4444
#SBATCH --output=/lustre/alice/podwright/runs/train-4444/prefetch.log
#SBATCH --open-mode=append

# Brings the data of a run into the cache that its nodes share, while its job, which is named, waits.
squeue --noheader --jobs="$1" --format=%T 2>/dev/null | grep -q PENDING || exit 0
exec /opt/python/bin/python3 -I -S /lustre/alice/podwright/runs/train-4444/job/pilot.pyz stage /lustre/alice/podwright/runs/train-4444/job/order.json
