"""What stands beside the ranks of a run that is at work: a shell in its job, and a connection to one of its nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podwright.engines.slurm.containers import JOB, RUN
from podwright.runs import RunFolder
from podwright.runs.events import AttemptStarted
from podwright.spec.problems import refuse

SHELL = ("sh", "-c", 'exec "$(command -v bash || command -v sh)" -i')


def host_of(folder: RunFolder, node: int) -> str | None:
    """Return the host that a node of the run's last attempt is on; None where no attempt has begun."""
    hosts = [event.hosts for event in folder.events_of(AttemptStarted)]
    if hosts and node < len(hosts[-1]):
        return hosts[-1][node]
    return None


def host_at_work(folder: RunFolder, node: int) -> str:
    """Return the host of a node; refuse where nobody knows it yet."""
    host = host_of(folder, node)
    if host is None:
        raise refuse(f"node {node} of {folder.id} does not run just now")
    return host


def shell_step(folder: RunFolder, site: Mapping[str, Any], job: str | None, node: int) -> list[str]:
    """Return the command, where Slurm's commands are, of a step of the run's own job, in its container."""
    step = ["srun", f"--jobid={job}", "--pty", "--nodes=1", "--ntasks=1", "--overlap"]
    host = host_of(folder, node)
    if host:
        step.append(f"--nodelist={host}")
    around = [_filled(text, site["folder"], folder) for text in (*site["step"], *site["wrap"])]
    return [*step, "--mpi=none", "--export=ALL", *around, *SHELL]


def _filled(text: str, root: str, folder: RunFolder) -> str:
    """Return a word of the batch script with its variables filled in as the script fills them."""
    return text.replace(RUN, f"{root}/runs/{folder.id}").replace(JOB, f"{root}/runs/{folder.asked.job_id}/job")
