"""Runs that Slurm leaves where they are, until a client that looks helps them on.

One that gave its nodes back is put into the queue by its batch script, on the node that leads. Where that node was gone
and is back before Slurm missed it, nobody is left or the others leave, and Slurm believes that the job runs. And a job
that a node could not start is held: most often a controller that was killed starts it again where its older copy is not
gone yet.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from pathlib import Path

from podwright.clients.ssh import Reach
from podwright.engines.base import Status
from podwright.engines.slurm.shell import host_of
from podwright.engines.slurm.site import run_path
from podwright.pilot.protocol import record_folders
from podwright.runs import RunFolder
from podwright.runs.events import CancelAsked
from podwright.runs.typed import grace_s_of
from podwright.spec.problems import Refusal
from podwright.theme.words import format_duration

LOOK_S = 10.0
"""Between two looks for runs that nobody puts back into the queue."""
QUIET_S = 20.0
"""Without a word before it is said: pilots write every second."""
STALE_S = 60.0
"""A leader that nothing was heard of for so long is taken for dead, as by the pilots themselves."""
AGAIN_S = 5.0
"""Before a run that nothing is heard of is looked at once more, and put back."""
DEAF_S = 60.0
"""Beyond its grace, how long a cancelled run may take to end by itself."""
RELEASE = """\
while [ "$#" -gt 1 ]; do
    for turn in 1 2 3; do
        mkdir "$2/released.$turn" 2>/dev/null || continue
        scontrol release "$1"
        break
    done
    shift 2
done
exit 0
"""
"""Slurm drains the node that could not start a job, so that it goes to another: three times, whoever looks."""
LOOK = """\
root=$1 stale=$2 pause=$3
shift 3

# The time of the file system: the clocks of nodes differ. A folder that cannot be written says nothing of its runs.
moment() {
    probe=$(mktemp "$root/.look.XXXXXX") && stat -c %Y "$probe" && rm -f "$probe"
}
heard() {
    start=-1
    for path in "$1"/start.*; do
        [ "${path##*.}" -gt "$start" ] 2>/dev/null && start=${path##*.}
    done
    [ -d "$1/record/n0.r$start" ] && [ ! -s "$1/lease/ended" ] || return 1
    last=$(stat -c %Y "$1"/lease/[0-9]*.[0-9]* "$1/record/n0.r$start"/* 2>/dev/null | sort -n | tail -n 1)
    [ -n "$last" ]
}
put_back() {
    heard "$2" && [ "$start.$last" = "$3" ] && [ "$(squeue --noheader --jobs="$1" --format=%T)" = RUNNING ] || return 0
    mkdir "$2/put_back.$start" 2>/dev/null || return 0
    scontrol requeue "$1" || rmdir "$2/put_back.$start"
}

now=$(moment) || exit 0
left=0
while [ "$#" -gt "$left" ]; do
    job=$1 run=$2
    shift 2
    heard "$run" || continue
    age=$((now - last))
    echo "$age $run"
    [ "$age" -lt "$stale" ] || { set -- "$@" "$job" "$run" "$start.$last"; left=$((left + 3)); }
done
# A folder that was away a moment ago looks like pilots that are gone: they are given time to show that they live.
[ "$#" -eq 0 ] || sleep "$pause"
while [ "$#" -gt 0 ]; do
    put_back "$1" "$2" "$3" >&2
    shift 3
done
exit 0
"""
"""Prints for how many seconds each run was not heard of, and puts those back whose pilots are gone.

The leader touches its lease with every beat and its record every second. Whoever is first makes the folder that says
that this start was put back.
"""


class Unheard:
    """The runs of one cluster that Slurm believes to be at work, and that nothing is heard of."""

    def __init__(self, reach: Reach, clock: Callable[[], float]) -> None:
        self._reach, self._clock = reach, clock
        self._looked_at = -LOOK_S
        self._heard_at: dict[str, float] = {}

    def statuses(
        self, folders: Iterable[RunFolder], known: Mapping[str, Status], job_of: Callable[[RunFolder], str | None]
    ) -> dict[str, Status]:
        """Return what is known of runs that are at work by what Slurm says, and whose pilots do not say so."""
        at_work = [folder for folder in folders if (known[folder.id].state, known[folder.id].reason) == ("there", "")]
        sentences = self.look({folder: job for folder in at_work if (job := job_of(folder))})
        return {run_id: replace(known[run_id], unheard=words) for run_id, words in sentences.items()}

    def look(self, jobs: Mapping[RunFolder, str]) -> dict[str, str]:
        """Return what is known of those that were not heard of, by run; those whose pilots are gone are put back."""
        quiet = {folder: job for folder, job in jobs.items() if _is_quiet(folder)}
        if quiet and self._clock() - self._looked_at >= LOOK_S:
            self._looked_at = self._clock()
            with suppress(Refusal):  # the next look does it
                self._ask(quiet)
        now, sentences = self._clock(), {}
        for folder in quiet:
            silence_s = now - self._heard_at.get(folder.id, now)
            if silence_s >= QUIET_S:
                who = host_of(folder, 0) or "its nodes"
                sentences[folder.id] = f"no word from {who} for {format_duration(float(round(silence_s)))}"
        return sentences

    def _ask(self, jobs: Mapping[RunFolder, str]) -> None:
        paths = {run_path(folder): folder for folder in jobs}
        root = next(iter(paths)).rpartition("/")[0]
        rows = chain.from_iterable((jobs[folder], path) for path, folder in paths.items())
        limits = (f"{STALE_S:.0f}", f"{AGAIN_S:.0f}")
        answer = self._reach.call(["sh", "-c", LOOK, "podwright", root, *limits, *rows])
        asked_at = self._clock()
        self._heard_at = {}
        for line in answer.text.splitlines():
            age, _, path = line.partition(" ")
            if path in paths:
                self._heard_at[paths[path].id] = asked_at - int(age)


def _is_quiet(folder: RunFolder) -> bool:
    """Return whether nothing new of the leader came here lately; what is not here yet may lie on the cluster."""
    leaders = [path for node, _, path in record_folders(str(folder.record_path)) if node == 0]
    times = [0.0]
    for name in ("metrics.jsonl", "events.jsonl"):
        with suppress(OSError):
            times += [Path(path, name).stat().st_mtime for path in leaders[-1:]]
    return time.time() - max(times) >= QUIET_S


def is_overdue(folder: RunFolder) -> bool:
    """Return whether a run was cancelled, and its pilots have not ended it within its grace."""
    asked = [event.time for event in folder.client_events() if isinstance(event, CancelAsked)]
    return bool(asked) and time.time() - asked[0] > grace_s_of(folder.asked.workload) + DEAF_S


def release(reach: Reach, jobs: Mapping[str, str]) -> None:
    """Let held jobs go on, by the folder of their run on the cluster."""
    _run_each(reach, RELEASE, jobs)


def _run_each(reach: Reach, script: str, jobs: Mapping[str, str]) -> None:
    rows = [(job, folder) for folder, job in jobs.items()]
    if rows:
        reach.call(["sh", "-c", script, "podwright", *chain.from_iterable(rows)])
