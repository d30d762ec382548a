#!/bin/sh
# Slurm's Prolog on a compute node, run by slurmd as root: refuses a job on a node that is not well, and writes down
# which job has which GPU.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
LC_ALL=C
export PATH LC_ALL
hooks=$(dirname -- "$0")
. "$hooks/hooks.conf"
. "$hooks/gpus.sh"

# A prolog that fails sends the job elsewhere; the node is drained already, with the true reason.
/bin/sh "$hooks/health.sh" || exit 1

each_gpu claim
exit 0
