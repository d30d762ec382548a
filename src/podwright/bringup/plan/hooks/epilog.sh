#!/bin/sh
# Slurm's Epilog on a compute node, run by slurmd as root: forgets which GPUs the job had, and looks whether it left
# the node well.
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
LC_ALL=C
export PATH LC_ALL
hooks=$(dirname -- "$0")
. "$hooks/hooks.conf"
. "$hooks/gpus.sh"

each_gpu release
/bin/sh "$hooks/health.sh"
# The node is drained by now if it has to be: an epilog that fails would only hide the reason.
exit 0
