#!/bin/sh
# Starts all ranks of an MPI program from node 0. What a rank would see there it sees on the other nodes too.
hosts=/podwright/work/hosts
at=0 missed=0
while [ "$at" -lt "$PODWRIGHT_WORKERS" ]; do
    name=$PODWRIGHT_RUN-worker-$at.$PODWRIGHT_RUN
    # The cluster may know the name of a node later than its pilot joined, and ssh asks only once. 2: no such name.
    until getent hosts "$name" >/dev/null 2>&1 || [ $? -ne 2 ] || [ "$missed" -ge 60 ]; do
        missed=$((missed + 1))
        sleep 1
    done
    echo "$name slots=$PODWRIGHT_RANKS_PER_NODE"
    at=$((at + 1))
done >"$hosts"
pass=
for name in $(env | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/\1/p'); do
    case $name in
        HOME | HOSTNAME | PWD | OLDPWD | SHLVL | TMPDIR | _) continue ;;
        JOB_COMPLETION_INDEX | PODWRIGHT_HOST | OMPI_* | PMIX_* | PRTE_*) continue ;;
    esac
    eval "[ -z \"\${$name+x}\" ]" || pass="$pass -x $name"
done
export OMPI_MCA_orte_keep_fqdn_hostnames=true PRTE_MCA_prte_keep_fqdn_hostnames=true
export OMPI_MCA_plm_rsh_agent="ssh -p 2222 -i /podwright/work/ssh/key -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ConnectTimeout=10 -o LogLevel=ERROR -o ConnectionAttempts=10"
export PRTE_MCA_plm_ssh_agent="$OMPI_MCA_plm_rsh_agent"
# shellcheck disable=SC2086
exec mpirun --hostfile "$hosts" --map-by slot --bind-to none -np "$((PODWRIGHT_WORKERS * PODWRIGHT_RANKS_PER_NODE))" \
    $pass "$@"
