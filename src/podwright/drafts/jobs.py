"""The workload of a job that was written for another system: its fields in ours, and what has no counterpart."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from podwright.drafts.draft import QUIET, DraftLine, Guess, mapping, name_of, quoted, scalar
from podwright.drafts.shell_body import ShellBody

FOREIGN = re.compile(r"\$\{?(SLURM_(?:PROCID|LOCALID|NTASKS|NODEID|JOB_NODELIST)|SKYPILOT_\w+)")
"""What a script reads of the system that it was written for; ranks of ours have RANK, LOCAL_RANK and the like."""
WHY_LAUNCHED = {
    "mpi": "mpirun started its ranks",
    "ranks": "srun started its ranks",
    "torchrun": "its ranks were told of each other as by torchrun",
}


@dataclass
class ForeignJob:
    """A job in the words of a workload."""

    source: str
    """What was read, such as `job.sbatch`."""
    folder: str
    """The name of the folder that travels."""
    name: str = ""
    code: str = "."
    nodes: int = 1
    ranks_per_node: int | None = None
    gpus: int = 0
    cpus: int | None = None
    memory: str = ""
    image: str = ""
    retries: int = 0
    body: ShellBody = field(default_factory=ShellBody)
    as_it_is: tuple[str, ...] = ()
    """The command that runs the whole script, where its steps cannot be told apart."""
    env: dict[str, str] = field(default_factory=dict)
    secrets: list[str] = field(default_factory=list)
    matrix: dict[str, list[int]] = field(default_factory=dict)
    slurm: dict[str, str] = field(default_factory=dict)
    """Fields of `slurm:`, each as YAML."""
    left_out: list[str] = field(default_factory=list)
    """What has no counterpart, as it is written."""


def guess_job(job: ForeignJob) -> Guess:
    """Return the workload file of a job."""
    lines = list(_lines(job))
    text = [f"# Made by `podwright init` from {job.source}: change what is wrong."]
    text += [line.text() for line in lines]
    text += [f"# not taken over: {words}" for words in job.left_out]
    foreign = sorted(set(FOREIGN.findall(" ".join((*_argv(job), *job.body.setup)))))
    if foreign:
        text.append(f"# it reads {', '.join(foreign)}: ranks have RANK, LOCAL_RANK, WORLD_SIZE and their kin instead")
    notes = [f"{line.field}: {line.value}   ({line.why})" for line in lines if line.why and line.field not in QUIET]
    notes += [f"not taken over: {words}" for words in job.left_out]
    missing = () if job.body.argv else ("one command that all ranks run",)
    advice = f"{job.source} has {len(job.body.steps)} lines that work; write the one into the file"
    return Guess("\n".join(text) + "\n", tuple(notes), missing, advice)


def _lines(job: ForeignJob) -> Iterator[DraftLine]:
    yield DraftLine("name", name_of(job.name or job.source, job.folder))
    yield DraftLine("code", scalar(job.code), "the folder that travels with the run")
    if job.body.setup:
        yield DraftLine("setup", "".join(f"\n- {json.dumps(line)}" for line in job.body.setup))
    yield _command(job)
    yield DraftLine("nodes", str(job.nodes))
    launcher = job.body.launcher
    if launcher:
        yield DraftLine("launcher", launcher, WHY_LAUNCHED[launcher])
    ranks = job.ranks_per_node or (1 if job.gpus and not launcher else None)
    if not job.body.argv:
        ranks = 1
    if ranks and ranks != job.gpus:
        yield DraftLine("ranks_per_node", str(ranks))
    if job.image:
        yield DraftLine("image", scalar(job.image))
    asked = {"gpus": job.gpus, "cpus": job.cpus, "memory": job.memory}
    if any(asked.values()):
        yield DraftLine("resources", _flow({name: str(value) for name, value in asked.items() if value}))
    if job.retries:
        yield DraftLine("retries", str(job.retries))
    if job.env:
        yield DraftLine("env", mapping(job.env))
    if job.secrets:
        yield DraftLine("secrets", f"[{', '.join(job.secrets)}]", "taken from your own environment, never written down")
    if job.matrix:
        matrix = {name: json.dumps(values) for name, values in job.matrix.items()}
        yield DraftLine("matrix", _flow(matrix), "its array, a run for each task")
    if job.slurm:
        yield DraftLine("slurm", _flow(job.slurm))


def _flow(values: Mapping[str, str]) -> str:
    return "{" + ", ".join(f"{name}: {value}" for name, value in values.items()) + "}"


def _argv(job: ForeignJob) -> tuple[str, ...]:
    return tuple(job.body.argv) or job.as_it_is


def _command(job: ForeignJob) -> DraftLine:
    argv = _argv(job)
    if not job.body.argv:
        return DraftLine("command", json.dumps(argv), "all of the script, on each rank: choose what ranks shall run")
    if argv[:2] == ("bash", "-c"):
        return DraftLine("command", json.dumps(argv, ensure_ascii=False), "its words are a shell's")
    return DraftLine("command", scalar(" ".join(quoted(word) for word in argv)))
