"""The Slurm engine: plans and renders one batch script, and gives it to sbatch, squeue and scancel."""

from __future__ import annotations

import json
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from podwright.clients.ssh import Reach, reach_to
from podwright.engines.base import NO_ROUTE, Engine, Files, Job, Request, Status, parts_of
from podwright.engines.found import FoundRun, newest_first
from podwright.engines.mirror import RECORD_ONLY, Mirror, Trees
from podwright.engines.network import network_env
from podwright.engines.payload import STUB
from podwright.engines.site import SITE
from podwright.engines.slurm import prefetch
from podwright.engines.slurm.cancelled import cancelled_elsewhere
from podwright.engines.slurm.containers import cache_inside
from podwright.engines.slurm.controller import Controller, last_word
from podwright.engines.slurm.facts import PROBE, SlurmFacts, parse_probe
from podwright.engines.slurm.found import found_runs
from podwright.engines.slurm.mpi import mpi_command
from podwright.engines.slurm.queue import FORGOTTEN, SlurmQueue
from podwright.engines.slurm.resources import cluster_folder, switches_wait_s
from podwright.engines.slurm.script import ScriptJob, render_script, script_job
from podwright.engines.slurm.shared_folder import prove_shared
from podwright.engines.slurm.shell import host_at_work, shell_step
from podwright.engines.slurm.site import run_path, site_of
from podwright.engines.slurm.states import NOT_STARTED
from podwright.engines.slurm.stranded import LOOK_S, Unheard, is_overdue, release
from podwright.engines.slurm.upload import clear_part, pack, remove_run
from podwright.engines.slurm.usage import SlurmUsage
from podwright.engines.staged import cache_of, check_data
from podwright.runs import RunFolder
from podwright.runs.copies import LeftOut
from podwright.spec.problems import Refusal, refuse

if TYPE_CHECKING:
    from podwright.spec import Pod, SlurmScheduler

REJOIN_S = 60.0
"""Beyond the silence, how long a node that had joined may be away: Slurm itself may need minutes to miss it."""
MIRROR_S = 0.5
LOOK = """\
umask 077
mkdir -p "$1/runs" && cd "$1" || exit 1
pwd -P
[ -e proved ] && echo proved
shift
for path; do [ -e "$path" ] || echo "missing $path"; done
exit 0
"""


@dataclass(frozen=True)
class SlurmProbe:
    """What is known of a cluster and of this user's folder there."""

    slurm: SlurmFacts
    folder: str
    proved: bool
    """That login and compute nodes share the folder was seen before."""
    missing_data: tuple[str, ...] = ()
    """Paths that are not there."""


@dataclass(frozen=True)
class SlurmJob(Job):
    """A job with its script, and what later clients need of it."""

    script: ScriptJob | None = None
    site: Mapping[str, Any] | None = None
    folder: str = ""
    proved: bool = False


class SlurmEngine(Engine):
    """One pod's Slurm. What it asked the cluster a moment ago answers for all runs."""

    name = "slurm"
    lag_s = 10.0
    remains = True

    def __init__(
        self,
        pod: Pod,
        scheduler: SlurmScheduler,
        reach: Reach | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pod, self._scheduler = pod, scheduler
        self._reach = reach or reach_to(scheduler.login, scheduler.ssh_config)
        self._clock = clock
        self._queue = SlurmQueue(self._reach, clock)
        self._mirrored_at: dict[str, float] = {}
        self._gaps: dict[str, list[str]] = {}
        self._unread: dict[str, str] = {}
        self._tended_at = -LOOK_S
        self._unheard = Unheard(self._reach, clock)
        self._controller = Controller(self._reach, self._queue, clock)

    # pure

    def unsupported(self) -> Mapping[str, str]:
        return {"route": NO_ROUTE}

    def plan(self, request: Request, facts: SlurmProbe) -> SlurmJob:
        """Plan one batch script for all parts, and one order for each."""
        slurm = facts.slurm
        check_data(request.workload, request.target_paths(), facts.missing_data)
        root = f"{facts.folder}/runs"
        script = script_job(request, self._pod, self._scheduler, slurm, root, request.after_handle)
        model = self._pod.model_of(self._pod.scheduler_hosts(self._scheduler)[0])
        hardware = None
        if request.workload.resources.gpus:
            hardware = model.hardware()
        of_engine: dict[str, Any] = {
            "engine": self.name,
            "folder": "..",
            "scratch": "",
            "shared": True,
            "bind": "0.0.0.0",
            "mpi": mpi_command(request, slurm),
            "hardware": hardware,
            "rejoin_s": REJOIN_S,
            "cache": self._cache(request, slurm),
            "env": network_env(request, self._pod, model),
        }
        if request.is_parent:
            of_engine["parent"] = f"../../{request.run_id}"
        site: dict[str, Any] = {"folder": facts.folder, "step": list(script.step), "wrap": list(script.wrap)}
        if wait_s := switches_wait_s(request.workload, self._pod, slurm):
            site["switches_s"] = wait_s
        return SlurmJob(
            run_id=request.run_id,
            parts=parts_of(request.with_shared_code(), **of_engine),
            after=request.after,
            root=root if self._reach.is_here else None,
            gaps=tuple(filter(None, [prefetch.why_not(request, self._pod, slurm)])),
            script=script,
            site=site,
            folder=facts.folder,
            proved=facts.proved,
        )

    def _cache(self, request: Request, facts: SlurmFacts) -> dict[str, Any] | None:
        cache = cache_of(request.staged, request.workload, self._pod)
        if cache is None or request.workload.runtime == "bare":
            return cache
        return {**cache, "path": cache_inside(self._pod, facts)}

    def render(self, job: Job) -> Files:
        assert isinstance(job, SlurmJob)
        assert job.script is not None
        files = {f"{part.run_id}/job/order.json": part.order.text() for part in job.parts}
        files[f"{job.run_id}/job/node.sh"] = STUB
        files[f"{job.run_id}/job/batch.sh"] = render_script(job.script)
        if job.script.prefetch:
            files[f"{job.run_id}/job/{prefetch.SCRIPT_NAME}"] = prefetch.render_prefetch(job.script.prefetch)
        files[f"{job.run_id}/{SITE}"] = json.dumps(job.site, indent=2) + "\n"
        return files

    # looking at the cluster

    def probe(self, request: Request) -> SlurmProbe:
        """Ask the cluster what it has, make the user's folder there, and look for the data."""
        slurm = self._facts()
        folder = cluster_folder(self._scheduler, slurm)
        data = [path for _, path in request.target_paths()]
        look = self._reach.call(["sh", "-c", LOOK, "podwright", folder, *data])
        if look.code:
            message = f"the folder {folder} of the scheduler cannot be made: {last_word(look)}"
            raise refuse(message, hint="name one that you can write, with `folder:` of the scheduler in the pod file")
        lines = look.text.splitlines()
        missing = {line.partition(" ")[2] for line in lines if line.startswith("missing ")}
        missing_data = tuple(path for path in data if path in missing)
        return SlurmProbe(slurm, folder=lines[0], proved="proved" in lines, missing_data=missing_data)

    def _facts(self) -> SlurmFacts:
        answer = self._reach.call(["sh", "-c", PROBE])
        if answer.code:
            raise refuse(f"Slurm does not answer: {last_word(answer)}", hint="does `sinfo` work there?", exit_code=3)
        return parse_probe(answer.text)

    def found(self, ids: Sequence[str] = ()) -> list[FoundRun]:
        folder, python = cluster_folder(self._scheduler, self._facts()), self._scheduler.python or "python3"
        return newest_first(found_runs(self._reach, python, folder, ids, self._queue.rows()))

    def preflight(self, job: Job) -> None:
        """Prove once that login and compute nodes share the folder."""
        assert isinstance(job, SlurmJob)
        if not job.proved:
            prove_shared(self._reach, job.folder)

    # starting and ending

    def submit(self, run_id: str, folders: Sequence[RunFolder], again: bool) -> str:
        """Give the script to sbatch; a job that was perhaps taken is looked for by its name first."""
        parent = folders[0].path.parent / run_id
        site = site_of(folders[0])
        if not self._reach.is_here:
            points = [folder.path for folder in folders if folder.path != parent]
            pack(self._reach, site["folder"], [parent, *points])
        secrets = folders[0].asked.secrets
        env = {name: os.environ[name] for name in secrets}
        command = ["sbatch", "--parsable", f"{site['folder']}/runs/{run_id}/job/batch.sh"]
        handle = self._controller.take(run_id, command, env, [folder.id for folder in folders], again)
        prefetch.begin(self._reach, parent, f"{site['folder']}/runs/{run_id}", handle, env)
        return handle

    def cancel(self, folders: Sequence[RunFolder], whole: bool = False) -> None:
        """Remove what waits, and ask what runs to stop; its pilots give the ranks their grace.

        The mark tells the script that a run whose pilots were stopped is not to be started again. A whole matrix has
        one mark and one array.
        """
        submitted = [folder for folder in folders if self._queue.handle(folder)]
        if not submitted:
            return
        runs = f"{site_of(submitted[0])['folder']}/runs"
        parent, job = submitted[0].asked.parent, submitted[0].handle
        if whole and parent and job:
            self._queue.stop_array(job, f"{runs}/{parent}/cancelled")
            prefetch.end(self._reach, [submitted[0].job_path])
            return
        self._reach.call(["touch", "--", *(f"{runs}/{folder.id}/cancelled" for folder in submitted)])
        self._queue.stop(submitted, gently=True)
        prefetch.end(self._reach, [folder.path for folder in submitted])

    def clean(self, folder: RunFolder) -> None:
        with suppress(Refusal):
            self._queue.stop([folder], gently=False)
            prefetch.end(self._reach, [folder.path])

    # following

    def status(self, folders: Sequence[RunFolder]) -> dict[str, Status]:
        """Return what the queue knows; let Slurm end a run that was cancelled and whose pilots do not end it."""
        statuses = self._queue.status(folders)
        deaf = [folder for folder in folders if statuses[folder.id].state == "there" and is_overdue(folder)]
        if deaf:
            self._queue.stop(deaf, gently=False)
        statuses |= self._unheard.statuses(folders, statuses, self._queue.handle)
        unknown = [folder for folder in folders if statuses[folder.id] == FORGOTTEN]
        if unknown:
            statuses |= self._controller.lost(unknown)
        return statuses | cancelled_elsewhere(self._reach, folders, statuses)

    def tend(self, folders: Sequence[RunFolder]) -> None:
        """Let jobs go on that Slurm holds because a node could not start them."""
        if self._clock() - self._tended_at < LOOK_S:
            return
        self._tended_at = self._clock()
        statuses = self._queue.status(folders)
        held = [folder for folder in folders if statuses[folder.id].reason == NOT_STARTED]
        with suppress(Refusal):  # the next look does it
            release(self._reach, {run_path(folder): str(self._queue.handle(folder)) for folder in held})

    def collect(self, folders: Sequence[RunFolder]) -> dict[str, list[str]]:
        now = self._clock()
        due = [folder for folder in folders if now - self._mirrored_at.get(folder.id, -MIRROR_S) >= MIRROR_S]
        if due and not self._reach.is_here:
            self._unread.update(self._tried(due))
            self._mirrored_at.update(dict.fromkeys((folder.id for folder in due), self._clock()))
        return self._gaps

    def _tried(self, folders: Sequence[RunFolder]) -> dict[str, str]:
        """Bring records; return why they did not come: a cluster that is away for a while has lost nothing."""
        reason = ""
        try:
            self._exchange(folders)
        except Refusal as refusal:
            reason = refusal.problems[0].message
        return dict.fromkeys((folder.id for folder in folders), reason)

    def unread(self, folders: Sequence[RunFolder]) -> dict[str, str]:
        return {folder.id: reason for folder in folders if (reason := self._unread.get(folder.id))}

    def peek(self, folders: Sequence[RunFolder], names: Sequence[str], limit_bytes: int) -> set[str]:
        here = {folder.id for folder in folders if not self._far([folder])}
        return here.union(self._exchange(self._far(folders), Trees(names, limit_bytes, alone=True)))

    def fetch(self, folders: Sequence[RunFolder], trees: Trees) -> dict[str, list[LeftOut]]:
        here: dict[str, list[LeftOut]] = {folder.id: [] for folder in folders if not self._far([folder])}
        return here | self._exchange(self._far(folders), trees)

    def _exchange(self, folders: Sequence[RunFolder], trees: Trees = RECORD_ONLY) -> dict[str, list[LeftOut]]:
        submitted = [folder for folder in folders if self._queue.handle(folder)]
        if not submitted:
            return {}
        root, parent = f"{site_of(submitted[0])['folder']}/runs", submitted[0].asked.job_id
        command = [self._scheduler.python or "python3", "-I", "-S", f"{root}/{parent}/job/pilot.pyz", "mirror"]

        def ask(question: dict[str, Any]) -> bytes:
            answer = self._reach.call(command, json.dumps(question).encode())
            if answer.code:
                raise refuse(f"the record cannot be read on the cluster: {last_word(answer)}", exit_code=3)
            return answer.out

        with Mirror(submitted) as mirror:
            brought = mirror.bring(ask, root, trees)
            self._gaps.update(mirror.gaps)
            return brought

    def _far(self, folders: Sequence[RunFolder]) -> list[RunFolder]:
        """Return those that have a folder on the cluster besides the one here."""
        return [folder for folder in folders if not self._reach.is_here and self._queue.handle(folder)]

    def remove(self, folder: RunFolder) -> None:
        if self._far([folder]):
            remove_run(self._reach, run_path(folder))

    def clear(self, folders: Sequence[RunFolder], name: str, remove: bool) -> dict[str, int]:
        if far := self._far(folders):
            return clear_part(self._reach, f"{site_of(far[0])['folder']}/runs", far, name, remove)
        return {}

    def usage(self) -> SlurmUsage:
        """Return who answers for all jobs of the cluster."""
        return SlurmUsage(self._reach)

    def shell(self, folder: RunFolder, node: int) -> list[str]:
        return self._reach.terminal(shell_step(folder, site_of(folder), self._queue.handle(folder), node))

    def connect(self, folder: RunFolder, node: int, port: int) -> socket.socket:
        return self._reach.connect(host_at_work(folder, node), port)
