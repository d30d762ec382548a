#!/bin/sh
# The launcher of an MPIJob is no node of the run: the pilot of node 0 starts mpirun. It waits for the end, and ends
# with 0 then, however the run went: what ends otherwise would be started again. How the run went is in its record.
work=/podwright/work tick=${PODWRIGHT_TICK_S:-1} pause=${PODWRIGHT_TICK_S:-5}
mkdir -p "$HOME" "$work/ssh" && chmod 700 "$work/ssh" || exit 1
cp /podwright/ssh/id_rsa "$work/ssh/key" && chmod 600 "$work/ssh/key" || exit 1
trap 'exit 143' TERM INT
first=$PODWRIGHT_RUN-worker-0.$PODWRIGHT_RUN

over() {
    echo "podwright: $1" >&2
    [ -z "$asked" ] || kill "$asked" 2>/dev/null
    exit 0
}

rest() {  # a signal ends a wait, not a sleep
    sleep "$1" &
    wait $!
}

# Node 0 says that it is there, and then how it ended. A claim tells it too, also when node 0 is gone.
missed=0
while [ -n "$PODWRIGHT_CLAIM" ] || [ "$missed" -lt 24 ]; do
    ssh -p 2222 -i /podwright/work/ssh/key -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null -o ConnectTimeout=10 -o LogLevel=ERROR "$first" 'echo here; until cat /podwright/work/ended 2>/dev/null; do sleep 1; done' >"$work/heard" &
    asked=$!
    while kill -0 "$asked" 2>/dev/null; do
        [ ! -s "${PODWRIGHT_CLAIM:-/none}/lease/ended" ] || over "the run is over"
        rest "$tick"
    done
    code=$(sed -n 2p "$work/heard")
    [ -z "$code" ] || over "the run ended with $code"
    missed=$((missed + 1))
    [ ! -s "$work/heard" ] || missed=0
    rest "$pause"
done
over "node 0 of the run cannot be reached any more"
