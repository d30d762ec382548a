"""What all jobs of a Slurm cluster do and did: one squeue and one sinfo tell the one, one sacct the other.

The commands print text in formats of our own: they are the same from 22.05 on, where JSON is not. Times are Unix
seconds, since the login node's time zone is not ours.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from podwright.clients.reasons import last_line
from podwright.clients.ssh import Reach
from podwright.engines.slurm.states import seen
from podwright.engines.usage import Allocation, NodeUse, Past, QueuedJob
from podwright.pilot.protocol import whole_number
from podwright.spec.problems import refuse

ENVIRONMENT = {"LC_ALL": "C", "SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0"}
"""Without the last, squeue cuts the numbers of an array's tasks short."""

# A name comes last: it is the one field that may hold a bar.
QUEUE = (
    *("JobArrayID", "State", "UserName", "Partition", "NumNodes", "tres-alloc"),
    *("StartTime", "EndTime", "NodeList", "Reason", "Name"),
)
NODES = ("Partition", "NodeList", "StateCompact", "Gres", "GresUsed", "Reason")
PAST = (
    *("JobID", "User", "Partition", "Eligible", "Start", "End"),
    *("TimelimitRaw", "NNodes", "ReqTRES", "AllocTRES", "JobName"),
)

NodeState = Literal["free", "part", "used", "away"]
NODE_STATES: Mapping[str, NodeState] = {
    "idle": "free",
    "plnd": "free",
    "mix": "part",
    "alloc": "used",
    "comp": "used",
    "drng": "away",
}
"""sinfo's short words for nodes that run jobs or could; whatever is not here takes none."""
NO_ANSWER = "*$!%@^"
"""Marks behind a node's state of which each says that it takes no job: silent, in maintenance, going down."""


class SlurmUsage:
    """One cluster, asked through its login node."""

    def __init__(self, reach: Reach) -> None:
        self._reach = reach

    def queue(self) -> list[QueuedJob]:
        """Return the jobs that run or wait, by one squeue."""
        return parse_jobs(self._ask(["squeue", "--noheader", f"--Format={_untruncated(QUEUE)}"]))

    def nodes(self) -> list[NodeUse]:
        """Return the nodes of all partitions, by one sinfo."""
        return parse_nodes(self._ask(["sinfo", "--noheader", "--Node", f"--Format={_untruncated(NODES)}"]))

    def past(self, since_s: float) -> Past | None:
        """Return the jobs that ran or waited in these last seconds; None where nobody keeps account."""
        how = ["--allusers", "--allocations", "--duplicates", "--noheader", "--parsable2"]
        command = ["sacct", *how, f"--starttime=now-{int(since_s)}seconds", f"--format={','.join(PAST)}"]
        answer = self._reach.call(command, env=ENVIRONMENT)
        if answer.code and "disabled" in answer.err:
            return None
        if answer.code:
            reason = last_line(answer.err, "no answer")
            raise refuse(f"Slurm's accounting does not answer: {reason}", exit_code=3)
        gpus = {node.node: node.gpus for node in self.nodes() if node.state != "away"}
        return Past(tuple(parse_past(answer.text)), sum(gpus.values()))

    def hidden(self) -> list[str]:
        """Return nothing: what a site hides from its users, Slurm leaves out without a word."""
        return []

    def _ask(self, command: list[str]) -> str:
        answer = self._reach.call(command, env=ENVIRONMENT)
        if answer.code:
            reason = last_line(answer.err, "no answer")
            raise refuse(f"Slurm does not answer: {reason}", hint=f"does `{command[0]}` work?", exit_code=3)
        return answer.text


def _untruncated(fields: Sequence[str]) -> str:
    """Return a format that gives each field as long as it is, with a bar behind all but the last."""
    return ",".join([*(f"{name}:|" for name in fields[:-1]), f"{fields[-1]}:"])


def _rows(text: str, fields: Sequence[str]) -> Iterator[list[str]]:
    """Yield the lines that have all fields; the last may hold a bar."""
    for line in text.splitlines():
        parts = [part.strip() for part in line.split("|", len(fields) - 1)]
        if len(parts) == len(fields):
            yield parts


def parse_jobs(text: str) -> list[QueuedJob]:
    """Read squeue's lines; jobs that are over and only not yet forgotten are left out."""
    return [job for row in _rows(text, QUEUE) if (job := _job(*row))]


def _job(*row: str) -> QueuedJob | None:
    job, state, user, partition, nodes, tres, starts, ends, hosts, reason, name = row
    known = seen(state, reason)
    if known.state == "gone":
        return None
    waits = known.state == "waiting"
    return QueuedJob(
        job=job,
        name=name,
        user=user,
        state="waiting" if waits else "running",
        partition=partition,
        nodes=whole_number(nodes) or 0,
        gpus=gpus_in(tres),
        tasks=tasks_in(job),
        hosts=hosts,
        why=known.reason,
        starts_at=_moment(starts),
        ends_at=None if waits else _moment(ends),
    )


def tasks_in(job: str) -> int:
    """Return how many tasks an array's row stands for: `7_[1-5,9%2]` are six, `7_[0-8:2]` five."""
    match = re.search(r"_\[([^%\]]*)", job)
    if match is None:
        return 1
    count = 0
    for first, last, step in re.findall(r"(\d+)(?:-(\d+))?(?::(\d+))?", match[1]):
        count += len(range(int(first), int(last or first) + 1, int(step or 1)))
    return count or 1


def parse_nodes(text: str) -> list[NodeUse]:
    """Read sinfo's lines, one per node and partition."""
    return [_node(*row) for row in _rows(text, NODES)]


def _node(partition: str, node: str, state: str, gres: str, used: str, reason: str) -> NodeUse:
    name = state.rstrip("*~#!%$@^-")
    marks = state[len(name) :]
    known = NODE_STATES.get(name, "away")
    if any(mark in NO_ANSWER for mark in marks):
        known = "away"
    why = ""
    if known == "away" and reason not in ("none", "(null)"):
        why = reason
    return NodeUse(partition.rstrip("*"), node, known, _gres_gpus(gres), _gres_gpus(used), why)


def _gres_gpus(text: str) -> int:
    """Count the GPUs in `gpu:a100:8(S:0-1)`, `gpu:4`, `gpu:a100:2(IDX:0-1),gpu:v100:1(IDX:7)`."""
    return sum(int(count) for count in re.findall(r"(?:^|,)gpu(?::[^:,()]+)?:(\d+)", text))


def parse_past(text: str) -> list[Allocation]:
    """Read sacct's lines, one for each time that a job was started or waited to be."""
    return [allocation for row in _rows(text, PAST) if (allocation := _allocation(*row))]


def _allocation(*row: str) -> Allocation | None:
    job, user, partition, eligible, starts, ends, limit, nodes, asked, given, name = row
    since = _moment(eligible) or _moment(starts)
    if since is None:  # it depends on another job, or is held: nothing waits for it
        return None
    minutes, held = whole_number(limit), gpus_in(given)
    return Allocation(
        job=job,
        name=name,
        user=user,
        partition=partition,
        eligible_at=since,
        started_at=_moment(starts),
        ended_at=_moment(ends),
        limit_s=None if minutes is None else 60.0 * minutes,
        nodes=whole_number(nodes) or 0,
        gpus_asked=gpus_in(asked) or held,
        gpus=held,
    )


def gpus_in(tres: str) -> int:
    """Count the GPUs in `cpu=4,mem=256M,node=4,gres/gpu=32`; of sites that count types only, all types."""
    counts = dict(re.findall(r"gres/(gpu(?::[^=,]+)?)=(\d+)", tres))
    if "gpu" in counts:
        return int(counts["gpu"])
    return sum(map(int, counts.values()))


def _moment(text: str) -> float | None:
    seconds = whole_number(text)
    return None if seconds is None else float(seconds)
