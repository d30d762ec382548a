"""The local engine: all nodes of a run are pilots on this machine, kept by one detached process."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from podwright.clients.machine import memory_bytes, visible_gpus
from podwright.clients.reasons import last_line
from podwright.engines.base import NO_ROUTE, Engine, Files, Job, Request, Status, parts_of
from podwright.engines.frames import assemble
from podwright.engines.local import container
from podwright.engines.payload import STUB
from podwright.files.locks import locked_text
from podwright.pilot.protocol import whole_number
from podwright.runs import RunFolder
from podwright.spec.problems import refuse
from podwright.theme.words import count, format_size

if TYPE_CHECKING:
    from podwright.spec import Workload

MIN_NODES = 8
NODES_PER_CPU = 2
"""How many nodes of a run a machine carries: that many for each CPU, and a few on the smallest one."""
START = """\
#!/bin/sh
# Starts this run on this machine; `keep` goes on when its starter is gone.
job=$(CDPATH= cd -- "$(dirname -- "$0")" && pwd)
export PODWRIGHT_PYTHON={python}
export PATH={path}
exec "$PODWRIGHT_PYTHON" -I -S "$job/pilot.pyz" keep {arguments}
"""


@dataclass(frozen=True)
class LocalFacts:
    """What is known of this machine before anything is planned."""

    python: str
    path: str
    """What start.sh writes behind `PATH=`, quoted for a shell."""
    gpus: tuple[str, ...]
    """As CUDA_VISIBLE_DEVICES names them."""
    cpus: int
    memory_bytes: int
    mpirun: bool
    missing_data: tuple[str, ...] = ()
    """Paths that are not there."""
    container: container.ContainerFacts | None = None
    """None for a run without a container."""


@dataclass(frozen=True)
class LocalJob(Job):
    """A job with what its start.sh says, and the files that lie beside it."""

    python: str = ""
    path: str = ""
    at_once: int = 1
    """How many parts run side by side."""
    gpus: tuple[str, ...] = ()
    """Shared out among parts side by side, and among the nodes of each; none where one node may see them all."""
    beside_start: Mapping[str, str] = field(default_factory=dict)


CACHE = "../../../cache"
"""In the home, as a job's folder sees it: all nodes of this machine have one."""
GONE_S = 30.0
"""How long the folder of a run may be gone until the run ends: long enough for a folder that is moved and put back."""
RUN_MARK = re.compile(rb"(?:^|\0)PODWRIGHT_RUN=([a-z0-9-]+)(?:\0|$)")


class LocalEngine(Engine):
    """`shared` False makes the pilots send their record as frames, as on a cluster whose nodes share no folder."""

    name = "local"
    sees_home = True

    def __init__(self, shared: bool = True, gone_s: float = GONE_S) -> None:
        self._shared, self._gone_s = shared, gone_s

    def unsupported(self) -> Mapping[str, str]:
        unsupported = {
            "mig": "the local engine gives whole GPUs, not slices",
            "route": NO_ROUTE,
            "usage": "nobody on this machine knows what others run on it",
        }
        if not self._shared:
            unsupported["shared"] = "retries over several nodes need a checkpoint folder that all of them share"
        return unsupported

    def probe(self, request: Request) -> LocalFacts:
        """Look at this machine. An activated environment wins on PATH, else the one Podwright is installed in does."""
        own = shlex.quote(str(Path(sys.executable).parent))
        path = f'{own}:"$PATH"'
        if os.environ.get("VIRTUAL_ENV") or os.environ.get("CONDA_PREFIX"):
            path = f'"$PATH":{own}'
        missing = [path for _, path in request.target_paths() if not Path(path).exists()]
        return LocalFacts(
            python=sys.executable,
            path=path,
            gpus=visible_gpus(),
            cpus=len(os.sched_getaffinity(0)),
            memory_bytes=memory_bytes(),
            mpirun=shutil.which("mpirun") is not None,
            missing_data=tuple(missing),
            container=container.probe(request),
        )

    def plan(self, request: Request, facts: LocalFacts) -> LocalJob:
        """Plan one order for each part; all nodes of a run are on this machine."""
        self._check(request, facts)
        several = request.workload.allocated_nodes > 1
        env = {}
        if several:
            env["GLOO_SOCKET_IFNAME"] = "lo"
        image, beside = None, {"node.sh": STUB}
        if facts.container:
            image, beside = facts.container.image, container.files(request, facts.container)
        parts = parts_of(
            request.with_shared_code(),
            engine=self.name,
            folder="..",
            scratch="../scratch",
            shared=self._shared,
            bind="127.0.0.1",
            virtual=several,
            env=env,
            gone_s=self._gone_s,
            memory_bytes=request.workload.resources.memory_bytes,
            cache={"path": CACHE} if request.staged else None,
        )
        at_once = side_by_side(request.workload, len(parts), facts)
        is_shared_out = request.workload.resources.gpus and (several or at_once > 1)
        return LocalJob(
            run_id=request.run_id,
            parts=parts,
            after=request.after,
            image=image,
            python=facts.python,
            path=facts.path,
            at_once=at_once,
            gpus=facts.gpus if is_shared_out else (),
            beside_start=beside,
        )

    def _check(self, request: Request, facts: LocalFacts) -> None:
        workload = request.workload
        problems: list[tuple[str, str, str | None]] = []
        nodes = workload.allocated_nodes
        if workload.resources.gpus * nodes > len(facts.gpus):
            wanted = str(workload.resources.gpus)
            if nodes > 1:
                wanted = f"{nodes} x {wanted}"
            message = f"{wanted} GPUs are asked for and this machine has {len(facts.gpus)}"
            hint = "run it on a pod with --on, or try it here with --set resources.gpus=0"
            problems.append(("resources.gpus", message, hint))
        if workload.launcher == "mpi" and workload.runtime == "bare" and not facts.mpirun:
            hint = "apt-get install openmpi-bin, or load your site's MPI module"
            problems.append(("launcher", "mpirun is not on this machine", hint))
        if not workload.local.oversubscribe:
            problems += _too_much(workload, facts)
        for name, path in request.target_paths():
            if path in facts.missing_data:
                message = f"{path} is not on this machine"
                problems.append((f"data.{name}", message, "an absolute path must be there already"))
        if facts.container:
            problems += container.problems(request, facts.container)
        if problems:
            raise workload.refusal(problems)

    def render(self, job: Job) -> Files:
        """Return the order of each part; one start.sh for all, with what it starts."""
        assert isinstance(job, LocalJob)
        files = {f"{part.run_id}/job/order.json": part.order.text() for part in job.parts}
        files |= {f"{job.run_id}/job/{name}": text for name, text in job.beside_start.items()}
        arguments = [_beside(job.run_id, part.run_id, "job/order.json") for part in job.parts]
        if job.gpus:
            arguments = ["--gpus", shlex.quote(",".join(job.gpus)), *arguments]
        if job.at_once > 1:
            arguments = ["--at-once", str(job.at_once), *arguments]
        if job.after:
            arguments = ["--after", f'"$job/../../{job.after}"', *arguments]
        python = shlex.quote(job.python)
        files[f"{job.run_id}/job/start.sh"] = START.format(python=python, path=job.path, arguments=" ".join(arguments))
        return files

    def submit(self, run_id: str, folders: Sequence[RunFolder], again: bool) -> str:
        """Start the keeper. It takes each run's lock before it answers: a second one finds them taken and leaves."""
        starter = folders[0].path.parent / run_id / "job" / "start.sh"
        environ = {**os.environ, "PODWRIGHT_RUN": run_id}
        child = subprocess.Popen(
            ["/bin/sh", str(starter)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environ,
            cwd=starter.parent,
            start_new_session=True,
        )
        assert child.stdout is not None
        assert child.stderr is not None
        # The keeper says "kept" when it holds every lock: only from then on does the run live without this client. A
        # starter that ends without the word closes its output, so that this reading never hangs.
        if child.stdout.readline().strip() != b"kept":
            reason = last_line(child.communicate()[1].decode("utf-8", "replace"), "no answer")
            raise refuse(f"the run could not be started: {reason}", exit_code=3)
        # It writes nothing more to us: its logs are files, and a closed pipe cannot stop it.
        child.stdout.close()
        child.stderr.close()
        # The keeper goes on without us; without a code, Python would warn of a child that nobody waited for.
        child.returncode = 0
        return str(child.pid)

    def status(self, folders: Sequence[RunFolder]) -> dict[str, Status]:
        """Return what is known by the locks of runs that are kept; read the process table once for all others."""
        alive = {folder.id for folder in folders if lock_holder(folder) is not None}
        if len(alive) < len(folders):
            alive |= marked().keys()
        gone = Status("gone", "no process of it is left on this machine")
        statuses = {folder.id: gone for folder in folders}
        return statuses | {run_id: Status("there") for run_id in statuses if run_id in alive}

    def cancel(self, folders: Sequence[RunFolder], whole: bool = False) -> None:
        """Leave a mark, by which the keeper stops the run or never starts it; without one signal what is left of it."""
        for folder in folders:
            with suppress(OSError):  # its folder is gone: its processes are known by their mark
                (folder.path / "cancelled").touch(mode=0o600)
            if lock_holder(folder) is None:
                for pid in filter(_is_ours, marked().get(folder.id, [])):
                    _send(pid, signal.SIGTERM)

    def collect(self, folders: Sequence[RunFolder]) -> dict[str, list[str]]:
        if self._shared:
            return {}
        frames = {folder: folder.path / "frames" for folder in folders}
        return {
            folder.id: assemble(sorted(path.glob("*.log")), folder.record_path)
            for folder, path in frames.items()
            if path.is_dir()
        }

    def shell(self, folder: RunFolder, node: int) -> list[str]:
        """Return the command of a shell where the node's ranks started, with what they see of the run's folders."""
        scratch = folder.path / "scratch" / f"n{node}"
        code = [*sorted(scratch.glob("code-*")), *scratch.glob("work"), folder.path][0]
        shared = {"PODWRIGHT_RUN": folder.id, "PODWRIGHT_FOLDER": folder.path, "PODWRIGHT_SCRATCH": scratch}
        variables = [f"{name}={value}" for name, value in shared.items()]
        if _in_container(folder):
            return container.shell_command(folder.id, node, str(code), variables)
        return ["env", f"--chdir={code}", *variables, os.environ.get("SHELL") or "/bin/sh"]

    def connect(self, folder: RunFolder, node: int, port: int) -> socket.socket:
        """Return a connection on this machine: its network is that of all nodes."""
        return socket.create_connection(("127.0.0.1", port))

    def remove(self, folder: RunFolder) -> None:
        if _in_container(folder):
            container.clear(folder.id)

    def clean(self, folder: RunFolder) -> None:
        """End what is left of a run: processes that lost every parent are known by their environment."""
        deadline = time.monotonic() + 5.0
        while pids := marked().get(folder.id):
            for pid in pids:
                _send(pid, signal.SIGKILL)
            if time.monotonic() > deadline:
                return
            time.sleep(0.02)
        self.remove(folder)


def side_by_side(workload: Workload, parts: int, facts: LocalFacts) -> int:
    """Return how many points fit on this machine at once, by what each declares; one where none says its CPUs.

    Repeats of a run are samples: what runs beside one would change what it measures.
    """
    declared, nodes = workload.resources, workload.allocated_nodes
    if declared.cpus is None or not workload.matrix:
        return 1
    fits = [parts, facts.cpus // (declared.cpus * nodes)]
    if declared.gpus:
        fits.append(len(facts.gpus) // (declared.gpus * nodes))
    if declared.memory_bytes:
        fits.append(facts.memory_bytes // (declared.memory_bytes * nodes))
    return max(1, min(fits))


def _too_much(workload: Workload, facts: LocalFacts) -> Iterator[tuple[str, str, str]]:
    """Yield what would bring this machine to a stand: all nodes of a run share its cores and its memory."""
    hint = "run it on a pod with --on, or try it here all the same with --set local.oversubscribe=true"
    bound, nodes = max(MIN_NODES, NODES_PER_CPU * facts.cpus), workload.allocated_nodes
    if nodes > bound:
        message = f"{nodes} nodes are asked for; this machine has {count(facts.cpus, 'CPU')} and carries {bound}"
        yield "nodes", message, hint
    wanted_bytes = (workload.resources.memory_bytes or 0) * nodes
    if wanted_bytes > facts.memory_bytes:
        wanted, there = format_size(wanted_bytes), format_size(facts.memory_bytes)
        message = f"{wanted} are asked for, by {count(nodes, 'node')}; this machine has {there}"
        yield "resources.memory", message, hint


def _in_container(folder: RunFolder) -> bool:
    return folder.asked.workload.get("runtime") == "container"


def _beside(run_id: str, other: str, name: str) -> str:
    """Return a path in another run's folder, as start.sh in `run_id`/job sees it."""
    if other == run_id:
        return '"$job/order.json"'
    return f'"$job/../../{other}/{name}"'


def lock_holder(folder: RunFolder) -> int | None:
    """Return the process that keeps this run, if one does: its lock cannot outlive it."""
    text = locked_text(folder.path / "keeper.lock")
    if text is None:
        return None
    return whole_number(text.strip())


def marked(everyone: bool = False) -> dict[str, list[int]]:
    """Return processes of this user, or of all, by the run their environment says they belong to."""
    by_run: dict[str, list[int]] = {}
    for path in Path("/proc").iterdir():
        pid = whole_number(path.name)
        if pid is None or pid == os.getpid():
            continue
        with suppress(OSError):  # it ended meanwhile, or is not ours to read
            if everyone or path.stat().st_uid == os.getuid():
                mark = RUN_MARK.search((path / "environ").read_bytes())
                if mark:
                    by_run.setdefault(mark[1].decode(), []).append(pid)
    return by_run


def _is_ours(pid: int) -> bool:
    """Return whether a process is a pilot, or a keeper whose lock went with the run's folder: not a rank."""
    try:
        arguments = Path("/proc", str(pid), "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return bool({b"node", b"keep"}.intersection(arguments)) and arguments[-2].endswith(b"order.json")


def _send(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)
