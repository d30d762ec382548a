"""A small job beside that of a run: while the run waits, it fills a cache that all nodes share.

The run does not wait for it: what is not there when its nodes are given, its own pilots bring. It ends when the run's
job starts or is cancelled.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from podwright.clients.ssh import Reach
from podwright.engines.slurm.containers import cache_inside
from podwright.engines.slurm.facts import SlurmFacts, time_text
from podwright.engines.slurm.resources import Options, chosen, queue_options, sbatch_lines
from podwright.spec.problems import Refusal

if TYPE_CHECKING:
    from podwright.engines.base import Request
    from podwright.spec import Pod, SlurmScheduler, Workload

SCRIPT_NAME = "prefetch.sh"
MIN_S = 600
BYTES_S = 50_000_000
"""What a source gives in a second at the least: by this the job's time is asked for. A short job finds a gap sooner."""
OF_THE_QUEUE = re.compile(r"(--(partition|account|qos|reservation)|-[pAq])(?![a-z-])")
"""Verbatim options of a workload that say which queue it is in; others are about its own nodes."""
LATE = "data comes when the run has its nodes, not while it waits for them:"
SHARE = "one below the `mount` of a storage system in the pod file is filled meanwhile"

SCRIPT = """\
#!/bin/sh
{options}

# Brings the data of a run into the cache that its nodes share, while its job, which is named, waits.
squeue --noheader --jobs="$1" --format=%T 2>/dev/null | grep -q PENDING || exit 0
exec {python} -I -S {job}/pilot.pyz stage {order}
"""
SUBMIT = """\
exec sbatch --parsable "$1/job/prefetch.sh" "$2" >>"$1/prefetch.log" 2>&1
"""
END = """\
for name; do scancel --quiet --user="$(id -un)" --name="$name"; done
exit 0
"""


@dataclass(frozen=True)
class PrefetchJob:
    """Everything the script says, before it is text."""

    options: tuple[tuple[str, str], ...]
    python: str
    job: str
    order: str


def why_not(request: Request, pod: Pod, facts: SlurmFacts) -> str | None:
    """Return why the data of a run cannot come while its job waits; None where it can, or where there is none."""
    if not request.staged:
        return None
    cache = cache_inside(pod, facts)
    mounts = [storage.mount.rstrip("/") for storage in pod.storage if storage.mount]
    if "$" in cache or not any(cache.startswith(f"{mount}/") for mount in mounts):
        return f"{LATE} the cache {cache} is each node's own; {SHARE}"
    whole = [partition.name for partition in chosen(request.workload, facts) if partition.exclusive]
    if whole:
        return f"{LATE} {whole[0]} gives whole nodes, and bringing data needs none"
    return None


def prefetch_job(
    request: Request, pod: Pod, scheduler: SlurmScheduler, facts: SlurmFacts, runs: str
) -> PrefetchJob | None:
    """Return the job that fills the cache, or None where there is nothing to fill or no way to."""
    if not request.staged or why_not(request, pod, facts):
        return None
    folder = f"{runs}/{request.run_id}"
    return PrefetchJob(
        options=tuple(_options(request, facts, folder)),
        python=scheduler.python or "python3",
        job=f"{folder}/job",
        order=f"{runs}/{request.part_id(0)}/job/order.json",
    )


def _options(request: Request, facts: SlurmFacts, folder: str) -> Iterator[tuple[str, str]]:
    workload = request.workload
    yield from [("--job-name", job_name(request.run_id)), ("--comment", "podwright")]
    yield from [("--nodes", "1"), ("--ntasks", "1"), ("--cpus-per-task", "1")]
    yield "--time", time_text(_time_s(request, facts))
    yield from queue_options(workload)
    yield from _verbatim(workload)
    yield from [("--no-requeue", ""), ("--export", ",".join(workload.secrets) or "NONE"), ("--propagate", "NONE")]
    yield from [("--chdir", folder), ("--output", f"{folder}/prefetch.log"), ("--open-mode", "append")]


def _verbatim(workload: Workload) -> Options:
    return [(option, "") for option in workload.slurm.options if OF_THE_QUEUE.match(option)]


def _time_s(request: Request, facts: SlurmFacts) -> int:
    need = sum(given.size_bytes for given in request.staged.values())
    limits = [partition.time_limit_s for partition in chosen(request.workload, facts) if partition.time_limit_s]
    return min([MIN_S + need // BYTES_S, *limits])


def render_prefetch(job: PrefetchJob) -> str:
    """Return the script as text, POSIX sh."""
    return SCRIPT.format(
        options=sbatch_lines(job.options), python=quote(job.python), job=quote(job.job), order=quote(job.order)
    )


def job_name(run_id: str) -> str:
    """Return Slurm's name for the job; no run has such a one."""
    return f"{run_id}.prefetch"


def begin(reach: Reach, job_path: Path, folder: str, handle: str, env: Mapping[str, str]) -> None:
    """Give Slurm the job of a run that it has taken; what it says to that is in the job's log, and is no fault."""
    if _is_there(job_path):
        with suppress(Refusal):
            reach.call(["sh", "-c", SUBMIT, "podwright", folder, handle], env=env)


def end(reach: Reach, job_paths: Iterable[Path]) -> None:
    """End the jobs of runs that are over, wherever they have one."""
    names = [job_name(job_path.name) for job_path in job_paths if _is_there(job_path)]
    if names:
        reach.call(["sh", "-c", END, "podwright", *names])


def _is_there(job_path: Path) -> bool:
    return (job_path / "job" / SCRIPT_NAME).exists()
