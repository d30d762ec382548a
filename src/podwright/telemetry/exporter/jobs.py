"""Whose a GPU is: from the record of the job, or the label of the Kubernetes pod, that its processes are in.

Both are known by the processes' control groups, which no user changes. Only where a process is in neither its own word
counts, and what it says of itself it says of the GPUs it holds: others are not touched by it.
"""

from __future__ import annotations

import contextlib
import pwd
import re
import subprocess
import time
from typing import Callable, Dict, Iterable, List, NamedTuple, Optional, Tuple

from ...pilot.sensors.proc import Scope
from ...pilot.system.numbers import whole_number
from ...pilot.system.plain_files import read_text
from ..page import Labels

_IN_SLURM = re.compile(r"/job_(\d{1,12})(?:/|$)", re.MULTILINE)
_IN_KUBERNETES = re.compile(r"pod([0-9a-f]{8}[-_](?:[0-9a-f]{4}[-_]){3}[0-9a-f]{12})")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}\Z")
_MARK = "podwright"
_TIMEOUT_S, _FRESH_S = 10.0, 60.0


class Owner(NamedTuple):
    """Who holds a GPU: what is not known is empty."""

    run: str = ""
    user: str = ""
    job: str = ""
    rank: str = ""

    def labels(self) -> Labels:
        """Return it as labels of a series."""
        return tuple(self._asdict().items())


class JobRecord(NamedTuple):
    """What a scheduler knows of a job: its name counts as a run's only where the job is one of ours."""

    user: str
    job: str
    run: str


class Processes:
    """What the kernel says of processes, read once each: a process stays in its job."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def began(self, pid: int) -> str:
        """Return when a process began, in the kernel's ticks; nothing where it has ended."""
        return _began(read_text(self._path(pid, "stat")))

    def uid(self, pid: int) -> Optional[int]:
        """Return the user that a process really is."""
        found = re.search(r"^Uid:\s+(\d+)", read_text(self._path(pid, "status")), re.MULTILINE)
        return None if found is None else int(found[1])

    def groups(self, pid: int) -> str:
        """Return the control groups that a process is in."""
        return read_text(self._path(pid, "cgroup"))

    def environment(self, pid: int) -> Dict[str, str]:
        """Return what a process was started with."""
        rows = read_text(self._path(pid, "environ")).split("\0")
        return dict(row.split("=", 1) for row in rows if "=" in row)

    def _path(self, pid: int, name: str) -> str:
        return self._scope.path("/proc/%d/%s" % (pid, name))


def _began(stat: str) -> str:
    # The name in brackets may hold anything, also a bracket.
    fields = stat.rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 else ""


AskJob = Callable[[str], Optional[JobRecord]]


class Owners:
    """Whose processes are: asked of a scheduler once for each job, and kept as long as the process lives."""

    def __init__(self, processes: Processes, slurm: AskJob, kubernetes: AskJob) -> None:
        self._processes, self._slurm, self._kubernetes = processes, slurm, kubernetes
        self._known: Dict[Tuple[int, str], Owner] = {}
        self._of_pid: Dict[int, Owner] = {}

    def look(self, pids: Iterable[int]) -> None:
        """Find out whose these processes are; what is known of others is forgotten."""
        known: Dict[Tuple[int, str], Owner] = {}
        of_pid: Dict[int, Owner] = {}
        for pid in set(pids):
            key = (pid, self._processes.began(pid))
            owner = self._known.get(key) or self._found(pid)
            of_pid[pid] = owner
            # What a scheduler could not say this time is asked again.
            if owner.user:
                known[key] = owner
        self._known, self._of_pid = known, of_pid

    def of(self, pids: Iterable[int]) -> List[Owner]:
        """Return the owners of these processes, each once, as far as was looked."""
        found = {self._of_pid[pid] for pid in pids if pid in self._of_pid}
        return sorted(owner for owner in found if owner != Owner())

    def users_of(self, run: str) -> List[str]:
        """Return who holds GPUs under a run's name."""
        return sorted({owner.user for owner in self._of_pid.values() if owner.run == run})

    def owner(self, pid: int) -> Owner:
        """Return whose a process is."""
        return self._of_pid.get(pid, Owner())

    def _found(self, pid: int) -> Owner:
        groups, environment = self._processes.groups(pid), self._processes.environment(pid)
        rank = environment.get("RANK", "")
        rank = rank if whole_number(rank) is not None else ""
        for pattern, ask in ((_IN_SLURM, self._slurm), (_IN_KUBERNETES, self._kubernetes)):
            inside = pattern.search(groups)
            if inside is not None:
                job = ask(inside[1].replace("_", "-"))
                return Owner() if job is None else Owner(_run_of(job, environment), job.user, job.job, rank)
        uid = self._processes.uid(pid)
        run = run_name(environment.get("PODWRIGHT_RUN", ""))
        return Owner() if uid is None else Owner(run, user_name(uid), "", rank)


def _run_of(job: JobRecord, environment: Dict[str, str]) -> str:
    """Return the run of a job; which point of a matrix it is only the process knows, and it may say that alone."""
    said = run_name(environment.get("PODWRIGHT_RUN", ""))
    is_point = job.run and whole_number(said[len(job.run) + 1 :]) is not None
    return said if is_point and said.startswith(job.run + "-") else job.run


def run_name(text: str) -> str:
    """Return a name that a run can have; nothing for any other text."""
    return text if _NAME.match(text) else ""


def user_name(uid: int) -> str:
    """Return a user's name, or the number where this host does not know it."""
    with contextlib.suppress(KeyError):
        return pwd.getpwuid(uid).pw_name
    return str(uid)


class Slurm:
    """Slurm's own record of a job, asked once in a while for each."""

    def __init__(self, run: Callable[[List[str]], str]) -> None:
        self._run = run
        self._known: Dict[str, Tuple[float, Optional[JobRecord]]] = {}

    def __call__(self, number: str) -> Optional[JobRecord]:
        asked, job = self._known.get(number, (float("-inf"), None))
        if time.monotonic() - asked > _FRESH_S:
            self._known = {key: row for key, row in self._known.items() if time.monotonic() - row[0] <= _FRESH_S}
            job = self._ask(number)
            self._known[number] = (time.monotonic(), job)
        return job

    def _ask(self, number: str) -> Optional[JobRecord]:
        try:
            return parse_job(self._run(["scontrol", "--oneliner", "show", "job", number]))
        except (OSError, subprocess.SubprocessError):
            return None


def parse_job(line: str) -> Optional[JobRecord]:
    """Return the job of a line of `scontrol --oneliner show job`; its fields hold no blanks before the comment."""
    fields: Dict[str, str] = {}
    for word in line.split():
        name, _, value = word.partition("=")
        fields.setdefault(name, value)
    user = fields.get("UserId", "").partition("(")[0]
    if not user:
        return None
    job = fields.get("JobId", "")
    if fields.get("ArrayJobId") and whole_number(fields.get("ArrayTaskId", "")) is not None:
        job = "%s_%s" % (fields["ArrayJobId"], fields["ArrayTaskId"])
    is_ours = fields.get("Comment", "").startswith(_MARK)
    return JobRecord(user, job, run_name(fields.get("JobName", "")) if is_ours else "")


def said(command: List[str]) -> str:
    """Return what a command printed."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True, timeout=_TIMEOUT_S)
    return done.stdout.decode("utf-8", "replace")
