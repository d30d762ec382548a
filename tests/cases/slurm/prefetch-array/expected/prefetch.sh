#!/bin/sh
#SBATCH --job-name=sweep-5555.prefetch
#SBATCH --comment=podwright
#SBATCH --nodes=1
#SBATCH --ntasks=1
#SBATCH --cpus-per-task=1
#SBATCH --time=00:10:00
#SBATCH --partition=cpu
#SBATCH --no-requeue
#SBATCH --export=NONE
#SBATCH --propagate=NONE
#SBATCH --chdir=/lustre/alice/podwright/runs/sweep-5555
#SBATCH --output=/lustre/alice/podwright/runs/sweep-5555/prefetch.log
#SBATCH --open-mode=append

# Brings the data of a run into the cache that its nodes share, while its job, which is named, waits.
squeue --noheader --jobs="$1" --format=%T 2>/dev/null | grep -q PENDING || exit 0
exec /opt/python/bin/python3 -I -S /lustre/alice/podwright/runs/sweep-5555/job/pilot.pyz stage /lustre/alice/podwright/runs/sweep-5555-1/job/order.json
