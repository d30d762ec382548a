"""The one batch script of a run: what Slurm starts, and what happens by how the pilots ended."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from shlex import quote
from typing import TYPE_CHECKING

from podwright.engines.slurm.containers import JOB, RUN, wrap
from podwright.engines.slurm.prefetch import PrefetchJob, job_name, prefetch_job
from podwright.engines.slurm.resources import sbatch_lines, sbatch_options, step_options
from podwright.pilot import protocol

if TYPE_CHECKING:
    from podwright.engines.base import Request
    from podwright.engines.slurm.facts import SlurmFacts
    from podwright.spec import Pod, SlurmScheduler

EXIT_NO_FOLDER = 66
MAX_LOST, MAX_UNBORN = 10, 2
"""How often a run is started again after a pilot was lost, or never began. Lost nodes are Slurm's to count."""
FULL = "the run's folder is full"

SCRIPT = """\
#!/bin/sh
{options}

# One attempt of this run: a pilot on each node. Slurm starts the script again when the job goes back into the queue.
{names}
order=$run/job/order.json
stopped=no noticed=no

# The mark of a matrix means all its points.
cancelled() {{
    [ -e "$run/cancelled" ] || [ -e "${{job%/job}}/cancelled" ]
}}

# A rank may have put a pipe, which holds its reader up, or a link in the place of any file.
says() {{
    pattern=$1
    shift
    for file; do
        [ -f "$file" ] && [ ! -L "$file" ] && grep -qs "$pattern" "$file" && return 0
    done
    return 1
}}

# A run that has ended is over, whatever Slurm says: a controller that lost its last minutes starts it again, and so
# does whoever releases a held job. The leader claims the end in the lease folder; its words are the second witness.
ended() {{
    says "\\"state\\": \\"$1\\"" "$run/lease/ended" ||
        says "\\"k\\":\\"end\\",\\"state\\":\\"$1\\"" "$run"/record/n0.r*/events.jsonl
}}
leave_ended() {{
    ! ended succeeded || exit 0
    ! ended failed || exit {failed}
    ! cancelled || exit {stopped}
}}

# A slice that ended before the ranks had written their checkpoint goes on in the next one too.
overrun() {{
    [ -e "$run/yield.$restart" ] && ! cancelled || return 0
    scontrol show job "$self" 2>/dev/null | grep -q 'Reason=TimeLimit' && scontrol requeue "$self"
}}

unset SLURM_EXPORT_ENV  # what the ranks start with srun gets their environment
export PODWRIGHT_RUN
{exports}hosts=$SLURM_JOB_NODELIST
case $hosts in
    *[[,]*) hosts=$(scontrol show hostnames "$hosts" | tr '\\n' ' ') ;;
esac
PODWRIGHT_LEADER=${{hosts%% *}}
export PODWRIGHT_LEADER="${{PODWRIGHT_LEADER:-$(hostname)}}"

# A network file system may show a new folder late.
look='
turn=0
until [ -r "$1" ]; do
    if [ "$turn" -ge 15 ]; then
        echo "podwright: ${{SLURMD_NODENAME:-this node}} does not see $1" >&2
        echo "hint: \\`folder:\\` of the scheduler must lie on a file system that all nodes share" >&2
        exit {no_folder}
    fi
    turn=$((turn + 1))
    sleep 2
done
shift
# Options of this step are no options of those that a rank starts.
unset SLURM_LABELIO SLURM_MPI_TYPE SLURM_CPU_BIND SLURM_CPU_BIND_TYPE SLURM_CPU_BIND_LIST SLURM_CPU_BIND_VERBOSE
{find_node}exec "$@"
'
/bin/sh -c "$look" look "$job/node.sh" true || exit {no_folder}

# The first job of this run has it for good. Another, from a submission that was thought lost, leaves it alone.
ln -s "$self" "$run/owner" 2>/dev/null
owner=$(readlink "$run/owner") || owner=$self  # the folder cannot be written: the pilots say why
if [ "$owner" != "$self" ]; then
    echo "podwright: job $owner has this run, job $self starts nothing" >&2
    exit {fenced}
fi
leave_ended
{end_prefetch}
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
at_work() {{
    claim=$(find "$run/lease" -type f -name '[0-9]*.[0-9]*' 2>/dev/null | sort | tail -n 1)
    [ -n "$claim" ] && [ -n "$(find "$claim" -mmin -1 2>/dev/null)" ] || return 1
    older=$(sed -n 's/.*"copy": "\\([0-9]*\\)".*/\\1/p' "$claim")
    [ ! -e "$run/over.$older" ] && [ ! -e "$run/record/n0.r$older/closed" ]
}}
while [ "$restart" -gt 0 ] && [ "$stopped" = no ] && at_work; do
    sleep 2
    leave_ended
done
[ "$stopped" = no ] || exit {stopped}
{folders}
# What the leader wrote last counts more than how some other pilot went.
wrote() {{
    says "\\"k\\":$1" "$run/record/n0.r$restart/events.jsonl"
}}

srun {srun} \\
{around}    /bin/sh -c "$look" look "$job/node.sh" /bin/sh "$job/node.sh" "$order" &
step=$!

{end_step}code=127
while :; do  # a signal ends a wait, not the step
    noticed=no
    wait "$step" 2>/dev/null  # that it was killed is no news
    seen=$?
    [ "$seen" -eq 127 ] || code=$seen
    [ "$noticed" = yes ] && [ "$seen" -ne 127 ] || break
done
{step_ended}touch "$run/over.$restart"

# Slurm keeps what the run's folder has no room for.
room() {{
    probe=$(mktemp "$run/.room.XXXXXX") || return 1
    echo over | dd of="$probe"
    set -- "$?"
    rm -f "$probe"
    return "$1"
}}
why=$({{ export LC_ALL=C; room; }} 2>&1) || case $why in
    *' space left'* | *quota*) scontrol update JobId="$self" Comment="podwright: {full}" ;;
esac

# Ends this job by putting it back into the queue, unless it is being ended: that would bring it back to life.
again() {{
    for pause in 1 5 20 60; do
        [ "$stopped" = no ] && ! cancelled || exit {stopped}
        case $(squeue --noheader --jobs="$self" --format=%T 2>/dev/null) in
            RUNNING) scontrol requeue "$self" && exit "$code" ;;
            ?*) exit "$code" ;;
        esac
        sleep "$pause"
    done
    echo "podwright: the job could not be put back into the queue" >&2
    exit "$code"
}}

# A pilot that ended by its own will has closed its record; a slow file system may show that late.
closed() {{
    for pause in 0 1 2 4; do
        sleep "$pause"
        set -- "$run"/record/n*.r"$restart"/closed
        [ "$#" -ge {nodes} ] && [ -e "$1" ] && return 0
    done
    return 1
}}

[ "$stopped" = no ] || exit {stopped}
wrote '"end","state":"succeeded"' && exit 0
wrote '"end","state":"failed"' && exit {failed}
wrote '"given_back"' && code={given_back}  # a pilot that Slurm stopped because the leader had left was not lost
case $code in
    0 | {final}) exit "$code" ;;
    {given_back})  # not at the same time as another run that waits for the same nodes
        [ -e "$run/yield.$restart" ] || [ -e "$run/lease/back.$restart" ] || sleep $(((SLURM_JOB_ID + $$) % 20 + 1))
        again
        ;;
    {stopped})  # by Slurm for a job that is more urgent, by a user, or because one pilot was lost
        scontrol show job "$self" 2>/dev/null | grep -q 'PreemptTime=[0-9]' && again
        closed && exit {stopped}
        ;;
esac
most={most_lost}
set -- "$run"/record/n*.r"$restart"
[ -e "$1" ] || most={most_unborn}  # no pilot began: an image or a program is missing, and will be the next time too
touch "$run/lost.$restart"
set -- "$run"/lost.*
[ "$#" -gt "$most" ] || again
echo "podwright: the step ended with $code, $# times by now; the run is not started again" >&2
exit "$code"
"""

FIND_NODE = """\
read -r name </proc/sys/kernel/hostname
node=0 found=no
for host in $PODWRIGHT_HOSTS; do
    [ "$host" != "${name%%.*}" ] || { found=yes; export SLURM_NODEID=$node; }
    node=$((node + 1))
done
if [ "$found" = no ] && [ "$node" -gt 1 ]; then
    echo "podwright: $name, as the container calls its node, is none of ${PODWRIGHT_HOSTS% }" >&2
    echo "hint: a bundle for several nodes has no uts namespace of its own" >&2
    exit 64
fi
"""

END_STEP = """\
# Pilots that {left} have left; srun may wait for a node that is gone, until Slurm finds that out.
nap() {
    sleep "$1" &
    napping=$!
    wait "$napping"
}
end_step() {
    trap 'kill "$napping" 2>/dev/null; exit' TERM  # no nap outlives the job
    until {wrote} && [ -e "$run/record/n0.r$restart/closed" ]; do
        nap 2
        kill -0 "$step" || return 0
    done
    nap 5
    kill -TERM "$step" && nap 10 && kill -KILL "$step"
}
end_step >/dev/null 2>&1 &
ender=$!
"""
"""Of a job with several nodes: the only node of any other takes the script with it."""
STEP_ENDED = """\
kill "$ender" 2>/dev/null
wait "$ender" 2>/dev/null
"""


@dataclass(frozen=True)
class ScriptJob:
    """Everything a batch script says, before it is text."""

    run_id: str
    runs: str
    """The folder on the cluster in which each run has its own."""
    nodes: int
    """With the spares."""
    options: tuple[tuple[str, str], ...]
    srun: tuple[str, ...]
    step: tuple[str, ...] = ()
    """Further options of srun, which put its command into a container."""
    wrap: tuple[str, ...] = ()
    """Words of a command that puts the one after it into a container."""
    folders: tuple[str, ...] = ()
    """Made before the step, so that they can be mounted."""
    on_nodes: tuple[str, ...] = ()
    """The same, on each node's own disk."""
    finds_node: bool = False
    environment: tuple[tuple[str, str], ...] = ()
    array: bool = False
    spares: int = 0
    prefetch: PrefetchJob | None = None
    """Another job of this run, which fills its cache until this one starts."""


def script_job(
    request: Request, pod: Pod, scheduler: SlurmScheduler, facts: SlurmFacts, runs: str, after: str | None = None
) -> ScriptJob:
    """Return what the script of this run says; `after` is the Slurm job it waits for.

    Refuse what the cluster cannot give.
    """
    around = wrap(request, pod, scheduler, facts, runs)
    environment: tuple[tuple[str, str], ...] = ()
    if scheduler.python:
        environment = (("PODWRIGHT_PYTHON", scheduler.python),)
    return ScriptJob(
        run_id=request.run_id,
        runs=runs,
        nodes=request.workload.allocated_nodes,
        spares=request.workload.spares,
        options=tuple(sbatch_options(request, pod, scheduler, facts, runs, after)),
        srun=tuple(step_options(request, facts)),
        step=around.step,
        wrap=around.before,
        folders=around.folders,
        on_nodes=around.on_nodes,
        finds_node=around.finds_node,
        environment=environment,
        array=request.is_parent,
        prefetch=prefetch_job(request, pod, scheduler, facts, runs),
    )


def render_script(job: ScriptJob) -> str:
    """Return the script as text, POSIX sh."""
    final = (protocol.EXIT_BAD_ORDER, EXIT_NO_FOLDER, protocol.EXIT_NO_PYTHON, protocol.EXIT_FENCED)
    return SCRIPT.format(
        options=sbatch_lines(job.options),
        names=_names(job),
        exports="".join(f"export {name}={quote(value)}\n" for name, value in job.environment),
        end_prefetch=_end_prefetch(job),
        folders="".join(_before_step(job)),
        find_node=FIND_NODE if job.finds_node else "",
        srun=shlex.join(job.srun),
        end_step=_end_step(job),
        step_ended=STEP_ENDED if job.nodes > 1 else "",
        around="".join(f"    {_word(text)} \\\n" for text in (*job.step, *job.wrap)),
        nodes=job.nodes - job.spares,
        final=" | ".join(map(str, (*final, protocol.EXIT_FAILED))),
        no_folder=EXIT_NO_FOLDER,
        failed=protocol.EXIT_FAILED,
        given_back=protocol.EXIT_GIVEN_BACK,
        stopped=protocol.EXIT_STOPPED,
        fenced=protocol.EXIT_FENCED,
        full=FULL,
        most_lost=MAX_LOST,
        most_unborn=MAX_UNBORN,
    )


def _end_step(job: ScriptJob) -> str:
    """Return the lines that end a step whose srun waits for a node that is gone; a spare may have done its work."""
    if job.nodes == 1:
        return ""
    wrote, left = """wrote '"given_back"'""", "gave their nodes back"
    if job.spares:
        wrote, left = f"""{{ {wrote} || wrote '"end"'; }}""", f"{left}, or ended the run,"
    return END_STEP.replace("{wrote}", wrote).replace("{left}", left)


def _end_prefetch(job: ScriptJob) -> str:
    """Return the line that ends the job which fills the cache: from here on the pilots do that themselves."""
    if job.prefetch is None:
        return ""
    return f'scancel --quiet --user="$(id -un)" --name={job_name(job.run_id)}\n'


def _before_step(job: ScriptJob) -> Iterator[str]:
    if job.finds_node:
        yield 'export PODWRIGHT_HOSTS="$hosts"\n'
    if job.folders:
        yield f"mkdir -p {' '.join(map(_word, job.folders))} || exit {EXIT_NO_FOLDER}\n"
    if job.on_nodes:
        each = f"--nodes={job.nodes} --ntasks={job.nodes} --ntasks-per-node=1"
        yield f"srun {each} mkdir -p -m 0700 {' '.join(map(_word, job.on_nodes))}\n"


def _word(text: str) -> str:
    """Return a word as a shell reads it; the script's own variables in it are filled in there."""
    pieces = re.split(rf"({re.escape(RUN)}|{re.escape(JOB)})(?![a-z])", text)
    quoted = {RUN: f'"{RUN}"', JOB: f'"{JOB}"', "": ""}
    return "".join(quoted.get(piece, quote(piece)) for piece in pieces)


def _names(job: ScriptJob) -> str:
    """Return the lines that say who this is.

    A task of an array is asked for by both its numbers: one alone may mean the whole array.
    """
    if job.array:
        lines = [
            f"PODWRIGHT_RUN={job.run_id}-$SLURM_ARRAY_TASK_ID",
            f"run={quote(job.runs)}/$PODWRIGHT_RUN",
            f"job={quote(job.runs)}/{job.run_id}/job",
            "self=${SLURM_ARRAY_JOB_ID}_$SLURM_ARRAY_TASK_ID",
        ]
    else:
        lines = [
            f"PODWRIGHT_RUN={job.run_id}",
            f"run={quote(job.runs)}/$PODWRIGHT_RUN",
            "job=$run/job",
            "self=$SLURM_JOB_ID",
        ]
    return "\n".join(lines)
