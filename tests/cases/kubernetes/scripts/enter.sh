#!/bin/sh
# One node of this run: gets its files together, starts the pilot, and ends so that Kubernetes fills its place again or
# leaves it. What must not be started again ends with 0; how the run went is in its record.
job=/podwright/job work=/podwright/work seats=
mkdir -p "$HOME" || exit 1

over() {
    echo "$1" >/dev/termination-log
    echo "podwright: $1" >&2
    exit 0
}

# The leader of an earlier copy had the last word.
if [ -n "$PODWRIGHT_CLAIM" ]; then
    [ ! -s "$PODWRIGHT_CLAIM/lease/ended" ] || over "is over"
    grep -qsE '"k":"end","state":"(succeeded|failed)"' "$PODWRIGHT_CLAIM"/record/n0.r*/events.jsonl && over "is over"
fi

if [ -e "$job/code.0" ]; then
    command -v gzip >/dev/null || over "the image has no gzip, without which the code cannot be unpacked"
    cat "$job"/code.? | gzip -dc >"$work/code.tar" || exit 1
fi

# Lists of the files that the pilot brings.
for first in "$job"/data-*.gz.00; do
    [ -e "$first" ] || continue
    name=${first##*/}
    cat "${first%00}"?? >"$work/${name%.00}" || exit 1
done

# Which copy of this node it is: no two of them write to one record. A claim counts them. Without one Kubernetes counts
# those that failed, and the time tells those apart that were suspended and started again.
if [ -n "$PODWRIGHT_CLAIM" ]; then
    seats=$PODWRIGHT_CLAIM/seats/n$JOB_COMPLETION_INDEX
    mkdir -p "$seats" || exit 1
    PODWRIGHT_RESTART=0
    PODWRIGHT_LOST=0  # copies before this one that did not leave by themselves
    until mkdir "$seats/$PODWRIGHT_RESTART" 2>/dev/null || [ "$PODWRIGHT_RESTART" -gt 999 ]; do
        [ -e "$seats/$PODWRIGHT_RESTART/left" ] || PODWRIGHT_LOST=$((PODWRIGHT_LOST + 1))
        PODWRIGHT_RESTART=$((PODWRIGHT_RESTART + 1))
    done
    export PODWRIGHT_LOST
    again=$PODWRIGHT_RESTART
else
    again=${PODWRIGHT_RESTART:-0}
    until [ -s "$work/began" ]; do sleep 1; done  # the side container writes it, which starts before this one
    PODWRIGHT_RESTART=${PODWRIGHT_RESTART#0}$(cat "$work/began")
fi
export PODWRIGHT_RESTART

# Kubernetes pauses before it starts a node again: ten seconds, then twice as long each time, at most ten minutes. One
# that came back waits longer than that for the others, or those whose pauses differ would miss each other for ever.
PODWRIGHT_JOIN_S=0
[ "$again" -eq 0 ] || PODWRIGHT_JOIN_S=40
while [ "$again" -gt 1 ] && [ "$PODWRIGHT_JOIN_S" -lt 640 ]; do
    again=$((again - 1))
    PODWRIGHT_JOIN_S=$((PODWRIGHT_JOIN_S * 2))
done
export PODWRIGHT_JOIN_S

# A training runtime sets these for a torchrun of its own.
unset PET_NNODES PET_NPROC_PER_NODE PET_NODE_RANK PET_MASTER_ADDR PET_MASTER_PORT

hard=$(ulimit -H -l 2>/dev/null) && ulimit -S -l "$hard" 2>/dev/null
[ -z "$PODWRIGHT_WORKERS" ] || . "$job/sshd.sh"

pilot= asked=no
trap 'asked=yes; kill -TERM "$pilot" 2>/dev/null' TERM INT
/bin/sh "$job/pilot.sh" node "$job/order.json" &
pilot=$!
[ "$asked" = no ] || kill -TERM "$pilot" 2>/dev/null  # a request may come before its number is known
while :; do  # a signal ends a wait, not the pilot
    wait "$pilot"
    code=$?
    kill -0 "$pilot" 2>/dev/null || break
done
case $code in
    75 | 143) [ -z "$seats" ] || touch "$seats/$PODWRIGHT_RESTART/left" ;;
esac
[ -z "$PODWRIGHT_WORKERS" ] || leave "$code"

case $code in
    0) exit 0 ;;
    77) over "failed" ;;
    64) over "has an order that its pilot cannot read" ;;
    69) over "the image has no Python 3.8 or newer" ;;
    75)  # not at the same time as another run that waits for the same nodes
        sleep $((($(hostname | cksum | cut -d ' ' -f 1) + 7 * PODWRIGHT_RESTART) % 20))
        ;;
esac
exit "$code"
