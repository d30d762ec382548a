#!/bin/sh
# The launcher of an MPIJob is no node of the run: the pilot of node 0 starts mpirun. It waits for the end.
work=/podwright/work
mkdir -p "$HOME" "$work/ssh" && chmod 700 "$work/ssh" || exit 1
cp /podwright/ssh/id_rsa "$work/ssh/key" && chmod 600 "$work/ssh/key" || exit 1
trap 'exit 143' TERM INT
first=$PODWRIGHT_RUN-worker-0.$PODWRIGHT_RUN
missed=0
while [ "$missed" -lt 60 ]; do
    code=$(ssh -p 2222 -i /podwright/work/ssh/key -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ConnectionAttempts=10 -o ConnectTimeout=10 -o LogLevel=ERROR "$first" 'until cat /podwright/work/ended 2>/dev/null; do sleep 1; done')
    case $code in
        0) exit 0 ;;
        ?*) echo "podwright: the run ended with $code" >&2; exit 1 ;;
    esac
    missed=$((missed + 1))
    sleep 5 &
    wait $!
done
echo "podwright: node 0 of the run cannot be reached any more" >&2
exit 1
