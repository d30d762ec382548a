#!/bin/sh
#SBATCH --job-name=long-2222
#SBATCH --comment=podwright
#SBATCH --nodes=8
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=128
#SBATCH --gpus-per-node=8
#SBATCH --time=06:00:00
#SBATCH --signal=B:USR2@150
#SBATCH --switches=1@00:01:00
#SBATCH --requeue
#SBATCH --export=NONE
#SBATCH --propagate=NONE
#SBATCH --chdir=/scratch/alice/podwright/runs/long-2222
#SBATCH --output=/scratch/alice/podwright/runs/long-2222/slurm.log
#SBATCH --open-mode=append

# One attempt of this run: a pilot on each node. Slurm starts the script again when the job goes back into the queue.
PODWRIGHT_RUN=long-2222
run=/scratch/alice/podwright/runs/$PODWRIGHT_RUN
job=$run/job
self=$SLURM_JOB_ID
order=$run/job/order.json
stopped=no noticed=no

# The mark of a matrix means all its points.
cancelled() {
    [ -e "$run/cancelled" ] || [ -e "${job%/job}/cancelled" ]
}

# A rank may have put a pipe, which holds its reader up, or a link in the place of any file.
says() {
    pattern=$1
    shift
    for file; do
        [ -f "$file" ] && [ ! -L "$file" ] && grep -qs "$pattern" "$file" && return 0
    done
    return 1
}

# A run that has ended is over, whatever Slurm says: a controller that lost its last minutes starts it again, and so
# does whoever releases a held job. The leader claims the end in the lease folder; its words are the second witness.
ended() {
    says "\"state\": \"$1\"" "$run/lease/ended" ||
        says "\"k\":\"end\",\"state\":\"$1\"" "$run"/record/n0.r*/events.jsonl
}
leave_ended() {
    ! ended succeeded || exit 0
    ! ended failed || exit 77
    ! cancelled || exit 143
}

# A slice that ended before the ranks had written their checkpoint goes on in the next one too.
overrun() {
    [ -e "$run/yield.$restart" ] && ! cancelled || return 0
    scontrol show job "$self" 2>/dev/null | grep -q 'Reason=TimeLimit' && scontrol requeue "$self"
}

unset SLURM_EXPORT_ENV  # what the ranks start with srun gets their environment
export PODWRIGHT_RUN
hosts=$SLURM_JOB_NODELIST
case $hosts in
    *[[,]*) hosts=$(scontrol show hostnames "$hosts" | tr '\n' ' ') ;;
esac
PODWRIGHT_LEADER=${hosts%% *}
export PODWRIGHT_LEADER="${PODWRIGHT_LEADER:-$(hostname)}"

# A network file system may show a new folder late.
look='
turn=0
until [ -r "$1" ]; do
    if [ "$turn" -ge 15 ]; then
        echo "podwright: ${SLURMD_NODENAME:-this node} does not see $1" >&2
        echo "hint: \`folder:\` of the scheduler must lie on a file system that all nodes share" >&2
        exit 66
    fi
    turn=$((turn + 1))
    sleep 2
done
shift
# Options of this step are no options of those that a rank starts.
unset SLURM_LABELIO SLURM_MPI_TYPE SLURM_CPU_BIND SLURM_CPU_BIND_TYPE SLURM_CPU_BIND_LIST SLURM_CPU_BIND_VERBOSE
exec "$@"
'
/bin/sh -c "$look" look "$job/node.sh" true || exit 66

# The first job of this run has it for good. Another, from a submission that was thought lost, leaves it alone.
ln -s "$self" "$run/owner" 2>/dev/null
owner=$(readlink "$run/owner") || owner=$self  # the folder cannot be written: the pilots say why
if [ "$owner" != "$self" ]; then
    echo "podwright: job $owner has this run, job $self starts nothing" >&2
    exit 76
fi
leave_ended

# Slurm's count of restarts is not believed: it is one of the things that a controller can lose.
PODWRIGHT_RESTART=0
until mkdir "$run/start.$PODWRIGHT_RESTART" 2>/dev/null; do
    [ -d "$run/start.$PODWRIGHT_RESTART" ] || break  # the folder cannot be written: the pilots say why
    PODWRIGHT_RESTART=$((PODWRIGHT_RESTART + 1))
done
export PODWRIGHT_RESTART
restart=$PODWRIGHT_RESTART
trap 'noticed=yes; touch "$run/yield.$restart"' USR2  # the slice is nearly over: the pilots look for this file
trap 'noticed=yes stopped=yes; overrun' TERM  # Slurm itself ends the job, or moves it

# An older start may still be at work on nodes that Slurm does not see: its ranks end first, or its lease grows old.
at_work() {
    claim=$(find "$run/lease" -type f -name '[0-9]*.[0-9]*' 2>/dev/null | sort | tail -n 1)
    [ -n "$claim" ] && [ -n "$(find "$claim" -mmin -1 2>/dev/null)" ] || return 1
    older=$(sed -n 's/.*"copy": "\([0-9]*\)".*/\1/p' "$claim")
    [ ! -e "$run/over.$older" ] && [ ! -e "$run/record/n0.r$older/closed" ]
}
while [ "$restart" -gt 0 ] && [ "$stopped" = no ] && at_work; do
    sleep 2
    leave_ended
done
[ "$stopped" = no ] || exit 143

# What the leader wrote last counts more than how some other pilot went.
wrote() {
    says "\"k\":$1" "$run/record/n0.r$restart/events.jsonl"
}

srun --export=ALL --nodes=8 --ntasks=8 --ntasks-per-node=1 --cpus-per-task=128 --cpu-bind=none --overlap --mpi=none --kill-on-bad-exit=1 --wait=0 --label \
    /bin/sh -c "$look" look "$job/node.sh" /bin/sh "$job/node.sh" "$order" &
step=$!

# Pilots that gave their nodes back have left; srun may wait for a node that is gone, until Slurm finds that out.
nap() {
    sleep "$1" &
    napping=$!
    wait "$napping"
}
end_step() {
    trap 'kill "$napping" 2>/dev/null; exit' TERM  # no nap outlives the job
    until wrote '"given_back"' && [ -e "$run/record/n0.r$restart/closed" ]; do
        nap 2
        kill -0 "$step" || return 0
    done
    nap 5
    kill -TERM "$step" && nap 10 && kill -KILL "$step"
}
end_step >/dev/null 2>&1 &
ender=$!
code=127
while :; do  # a signal ends a wait, not the step
    noticed=no
    wait "$step" 2>/dev/null  # that it was killed is no news
    seen=$?
    [ "$seen" -eq 127 ] || code=$seen
    [ "$noticed" = yes ] && [ "$seen" -ne 127 ] || break
done
kill "$ender" 2>/dev/null
wait "$ender" 2>/dev/null
touch "$run/over.$restart"

# Slurm keeps what the run's folder has no room for.
room() {
    probe=$(mktemp "$run/.room.XXXXXX") || return 1
    echo over | dd of="$probe"
    set -- "$?"
    rm -f "$probe"
    return "$1"
}
why=$({ export LC_ALL=C; room; } 2>&1) || case $why in
    *' space left'* | *quota*) scontrol update JobId="$self" Comment="podwright: the run's folder is full" ;;
esac

# Ends this job by putting it back into the queue, unless it is being ended: that would bring it back to life.
again() {
    for pause in 1 5 20 60; do
        [ "$stopped" = no ] && ! cancelled || exit 143
        case $(squeue --noheader --jobs="$self" --format=%T 2>/dev/null) in
            RUNNING) scontrol requeue "$self" && exit "$code" ;;
            ?*) exit "$code" ;;
        esac
        sleep "$pause"
    done
    echo "podwright: the job could not be put back into the queue" >&2
    exit "$code"
}

# A pilot that ended by its own will has closed its record; a slow file system may show that late.
closed() {
    for pause in 0 1 2 4; do
        sleep "$pause"
        set -- "$run"/record/n*.r"$restart"/closed
        [ "$#" -ge 8 ] && [ -e "$1" ] && return 0
    done
    return 1
}

[ "$stopped" = no ] || exit 143
wrote '"end","state":"succeeded"' && exit 0
wrote '"end","state":"failed"' && exit 77
wrote '"given_back"' && code=75  # a pilot that Slurm stopped because the leader had left was not lost
case $code in
    0 | 64 | 66 | 69 | 76 | 77) exit "$code" ;;
    75)  # not at the same time as another run that waits for the same nodes
        [ -e "$run/yield.$restart" ] || [ -e "$run/lease/back.$restart" ] || sleep $(((SLURM_JOB_ID + $$) % 20 + 1))
        again
        ;;
    143)  # by Slurm for a job that is more urgent, by a user, or because one pilot was lost
        scontrol show job "$self" 2>/dev/null | grep -q 'PreemptTime=[0-9]' && again
        closed && exit 143
        ;;
esac
most=10
set -- "$run"/record/n*.r"$restart"
[ -e "$1" ] || most=2  # no pilot began: an image or a program is missing, and will be the next time too
touch "$run/lost.$restart"
set -- "$run"/lost.*
[ "$#" -gt "$most" ] || again
echo "podwright: the step ended with $code, $# times by now; the run is not started again" >&2
exit "$code"
