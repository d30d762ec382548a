"""What a container of a run starts with: small POSIX shell scripts that travel in a ConfigMap beside the pilot."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from podwright.clients.kubernetes.names import JOB_FOLDER, SSH, SSH_PORT, WORK
from podwright.engines.payload import STUB
from podwright.pilot import protocol

ENTER = f"""\
#!/bin/sh
# One node of this run: gets its files together, starts the pilot, and ends so that Kubernetes fills its place again or
# leaves it. What must not be started again ends with 0; how the run went is in its record.
job={JOB_FOLDER} work={WORK} seats=
mkdir -p "$HOME" || exit 1

over() {{
    echo "$1" >/dev/termination-log
    echo "podwright: $1" >&2
    exit 0
}}

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
    name=${{first##*/}}
    cat "${{first%00}}"?? >"$work/${{name%.00}}" || exit 1
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
    again=${{PODWRIGHT_RESTART:-0}}
    until [ -s "$work/began" ]; do sleep 1; done  # the side container writes it, which starts before this one
    PODWRIGHT_RESTART=${{PODWRIGHT_RESTART#0}}$(cat "$work/began")
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
    {protocol.EXIT_GIVEN_BACK} | {protocol.EXIT_STOPPED}) [ -z "$seats" ] || touch "$seats/$PODWRIGHT_RESTART/left" ;;
esac
[ -z "$PODWRIGHT_WORKERS" ] || leave "$code"

case $code in
    0) exit 0 ;;
    {protocol.EXIT_FAILED}) over "failed" ;;
    {protocol.EXIT_BAD_ORDER}) over "has an order that its pilot cannot read" ;;
    {protocol.EXIT_NO_PYTHON}) over "the image has no Python 3.8 or newer" ;;
    {protocol.EXIT_GIVEN_BACK})  # not at the same time as another run that waits for the same nodes
        sleep $((($(hostname | cksum | cut -d ' ' -f 1) + 7 * PODWRIGHT_RESTART) % 20))
        ;;
esac
exit "$code"
"""
PILOT = re.sub(
    "^# Starts .*",
    "# Starts the pilot in the role that is named, with the first Python that is new enough.",
    STUB.replace('node "${1:-$job/order.json}"', '"$@"'),
    count=1,
    flags=re.M,
)

SHIPPING = f"""\
#!/bin/sh
# Sends the record of a node through this container's output. It ends when the record is closed; where the pilot was
# killed that never comes, and it is reported after ten seconds. Kubernetes starts again what ends too early.
[ -s {WORK}/began ] || date +%s >{WORK}/began
export PODWRIGHT_RESTART="${{PODWRIGHT_RESTART#0}}$(cat {WORK}/began)"
stopped=no
trap 'stopped=yes' TERM INT
/bin/sh {JOB_FOLDER}/pilot.sh ship {JOB_FOLDER}/order.json &
ship=$!
while :; do
    wait "$ship"
    kill -0 "$ship" 2>/dev/null || break
    {{ sleep 10; kill -TERM "$ship"; }} 2>/dev/null &
done
while [ "$stopped" = no ]; do  # in short sleeps: a signal that comes just before a wait does not end it
    sleep 1 &
    wait $!
done
exit 0
"""
SSHD = f"""\
# Read by enter.sh on the nodes of an MPI program: a daemon of this user, on a high port, for the run's own key.
keys=$work/ssh
mkdir -p "$keys" && chmod 700 "$keys" || exit 1
cp {SSH}/id_rsa "$keys/key" && cp {SSH}/authorized_keys "$keys/authorized_keys" && chmod 600 "$keys"/* || exit 1
sshd=$(command -v sshd || echo /usr/sbin/sshd)
[ -x "$sshd" ] || over "the image has no sshd, which MPI on Kubernetes needs"
[ -e "$keys/host" ] || ssh-keygen -q -t ed25519 -N '' -f "$keys/host" || exit 1
"$sshd" -D -e -f /dev/null -p {SSH_PORT} -h "$keys/host" -o AuthorizedKeysFile="$keys/authorized_keys" \\
    -o StrictModes=no -o UsePAM=no -o PidFile=none -o PasswordAuthentication=no &

# mpirun gives all ranks the environment of node 0: what it calls its own folder is that of each node here.
if [ "$JOB_COMPLETION_INDEX" != 0 ]; then
    mkdir -p "$work/scratch/n$JOB_COMPLETION_INDEX" && ln -sfn "n$JOB_COMPLETION_INDEX" "$work/scratch/n0" || exit 1
fi

# The launcher asks how it went; a node that is gone could not report.
leave() {{
    rm -f "$work/ended"
    case $1 in
        0 | {protocol.EXIT_FAILED} | {protocol.EXIT_BAD_ORDER} | {protocol.EXIT_NO_PYTHON}) echo "$1" >"$work/ended" ;;
    esac
    [ "$JOB_COMPLETION_INDEX" != 0 ] || [ ! -e "$work/ended" ] || sleep 5
}}
"""
REMOTE = f"""\
ssh -p {SSH_PORT} -i {WORK}/ssh/key -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null \
-o ConnectTimeout=10 -o LogLevel=ERROR"""
MAX_MISSED = 24
"""How often in a row node 0 is looked for in vain, five seconds apart, where no claim can tell of the end."""

MPIRUN = f"""\
#!/bin/sh
# Starts all ranks of an MPI program from node 0. What a rank would see there it sees on the other nodes too.
hosts={WORK}/hosts
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
for name in $(env | sed -n 's/^\\([A-Za-z_][A-Za-z0-9_]*\\)=.*/\\1/p'); do
    case $name in
        HOME | HOSTNAME | PWD | OLDPWD | SHLVL | TMPDIR | _) continue ;;
        JOB_COMPLETION_INDEX | PODWRIGHT_HOST | OMPI_* | PMIX_* | PRTE_*) continue ;;
    esac
    eval "[ -z \\"\\${{$name+x}}\\" ]" || pass="$pass -x $name"
done
export OMPI_MCA_orte_keep_fqdn_hostnames=true PRTE_MCA_prte_keep_fqdn_hostnames=true
export OMPI_MCA_plm_rsh_agent="{REMOTE} -o ConnectionAttempts=10"
export PRTE_MCA_plm_ssh_agent="$OMPI_MCA_plm_rsh_agent"
# shellcheck disable=SC2086
exec mpirun --hostfile "$hosts" --map-by slot --bind-to none -np "$((PODWRIGHT_WORKERS * PODWRIGHT_RANKS_PER_NODE))" \\
    $pass "$@"
"""
LAUNCH = f"""\
#!/bin/sh
# The launcher of an MPIJob is no node of the run: the pilot of node 0 starts mpirun. It waits for the end, and ends
# with 0 then, however the run went: what ends otherwise would be started again. How the run went is in its record.
work={WORK} tick=${{PODWRIGHT_TICK_S:-1}} pause=${{PODWRIGHT_TICK_S:-5}}
mkdir -p "$HOME" "$work/ssh" && chmod 700 "$work/ssh" || exit 1
cp {SSH}/id_rsa "$work/ssh/key" && chmod 600 "$work/ssh/key" || exit 1
trap 'exit 143' TERM INT
first=$PODWRIGHT_RUN-worker-0.$PODWRIGHT_RUN

over() {{
    echo "podwright: $1" >&2
    [ -z "$asked" ] || kill "$asked" 2>/dev/null
    exit 0
}}

rest() {{  # a signal ends a wait, not a sleep
    sleep "$1" &
    wait $!
}}

# Node 0 says that it is there, and then how it ended. A claim tells it too, also when node 0 is gone.
missed=0
while [ -n "$PODWRIGHT_CLAIM" ] || [ "$missed" -lt {MAX_MISSED} ]; do
    {REMOTE} "$first" 'echo here; until cat {WORK}/ended 2>/dev/null; do sleep 1; done' >"$work/heard" &
    asked=$!
    while kill -0 "$asked" 2>/dev/null; do
        [ ! -s "${{PODWRIGHT_CLAIM:-/none}}/lease/ended" ] || over "the run is over"
        rest "$tick"
    done
    code=$(sed -n 2p "$work/heard")
    [ -z "$code" ] || over "the run ended with $code"
    missed=$((missed + 1))
    [ ! -s "$work/heard" ] || missed=0
    rest "$pause"
done
over "node 0 of the run cannot be reached any more"
"""

SCRIPTS = {
    "enter.sh": ENTER,
    "pilot.sh": PILOT,
    "ship.sh": SHIPPING,
    "sshd.sh": SSHD,
    "mpirun.sh": MPIRUN,
    "launch.sh": LAUNCH,
}


def payload_digest(files: Mapping[str, bytes]) -> str:
    """Return one name for the pilot and its scripts together: another release of either is another ConfigMap."""
    digest = hashlib.sha256()
    for name in sorted(files):
        digest.update(f"{name} {len(files[name])}\n".encode() + files[name])
    return digest.hexdigest()[:12]
