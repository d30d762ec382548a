"""What a run asks of Slurm: options of sbatch and of the step, and what of it the cluster cannot give."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from typing import TYPE_CHECKING

from podwright.design.topology import unit_size
from podwright.engines.slurm import containers
from podwright.engines.slurm.containers import Problem
from podwright.engines.slurm.facts import Partition, SlurmFacts, SlurmNodeKind, time_text
from podwright.spec.problems import refuse, short
from podwright.spec.quantity import exact_duration
from podwright.theme.words import format_size

if TYPE_CHECKING:
    from podwright.engines.base import Request
    from podwright.spec import Pod, SlurmScheduler, Workload

Options = list[tuple[str, str]]
"""In the order of the script; an option without a value has an empty one."""

MARGIN_S = 300
"""Joining and clearing up, beside the time that the run itself may take."""
NOTICE_S = 30
"""Between Slurm's signal and the pilots hearing of it, and for writing the last events."""
EARLY_S = 60
"""Slurm looks at the clock once a minute, so that its signal may come that much sooner."""
MANGLED = re.compile(r"[\s%\\'\"#]")
"""What sbatch replaces, drops or takes for an end where it stands in a path or a name."""


def sbatch_options(
    request: Request, pod: Pod | None, scheduler: SlurmScheduler, facts: SlurmFacts, runs: str, after: str | None = None
) -> Options:
    """The #SBATCH lines of a run whose folders lie in `runs`; `after` is the Slurm job that it waits for.

    Raises a refusal of everything that the cluster cannot give, all at once.
    """
    check(request, scheduler, facts)
    check_folder(runs)
    return [
        *_name(request),
        *_size(request, facts),
        *_time(request.workload, facts),
        *_queue(request.workload),
        *_place(request.workload, pod, facts),
        *_order(request, after),
        *_files(request, runs),
        *((option, "") for option in request.workload.slurm.options),
    ]


def step_options(request: Request, facts: SlurmFacts) -> list[str]:
    """Options of the one step: a pilot on each node, which sees the whole of what the job was given there.

    The pilot binds ranks itself, so Slurm must not bind it to a part of the cores.
    """
    nodes, cpus = request.workload.nodes, _cpus(request.workload, facts)
    return [
        "--export=ALL",
        f"--nodes={nodes}",
        f"--ntasks={nodes}",
        "--ntasks-per-node=1",
        *([f"--cpus-per-task={cpus}"] if cpus else []),
        *(["--cpu-bind=none"] if "affinity" in facts.task_plugins else []),
        "--mpi=none",
        "--kill-on-bad-exit=1",
        "--wait=0",
        "--label",
    ]


def _name(request: Request) -> Options:
    return [("--job-name", request.run_id), ("--comment", "podwright")]


def _size(request: Request, facts: SlurmFacts) -> Options:
    workload, resources = request.workload, request.workload.resources
    cpus, memory = _cpus(workload, facts), resources.memory_bytes
    options: Options = [("--nodes", str(workload.nodes)), ("--ntasks-per-node", "1")]
    if cpus:
        options.append(("--cpus-per-task", str(cpus)))
    options += _gpus(workload, facts)
    if memory is not None:
        options.append(("--mem", f"{_mib(memory)}M"))
    if workload.slurm.exclusive:
        options += [("--exclusive", ""), *([] if memory is not None else [("--mem", "0")])]
    return options


def _cpus(workload: Workload, facts: SlurmFacts) -> int | None:
    """As given; else what the site gives by itself: whole nodes, or cores that come with each GPU; else one a rank."""
    partitions = chosen(workload, facts)
    if workload.resources.cpus is not None:
        return workload.resources.cpus
    if workload.slurm.exclusive or any(one.exclusive for one in partitions):
        return None
    with_gpus = workload.resources.gpus > 0 and any(one.cpus_per_gpu for one in partitions)
    return None if with_gpus else workload.ranks_per_node


def _gpus(workload: Workload, facts: SlurmFacts) -> Options:
    """`--gpus-per-node` is known to cons_tres alone; every other Slurm takes a GRES."""
    count, profile = workload.resources.gpus, workload.resources.mig
    if count == 0:
        return []
    if profile is not None:
        return [("--gres", f"gpu:{_slice_type(profile, facts)}:{count}")]
    if facts.select == "cons_tres":
        return [("--gpus-per-node", str(count))]
    return [("--gres", f"gpu:{count}")]


def _slice_type(profile: str, facts: SlurmFacts) -> str | None:
    """Slurm names the slices of a GPU after it: `a100_1g.5gb`."""
    fitting = (name for name in facts.gpu_types if name == profile or name.endswith(f"_{profile}"))
    return next(fitting, None)


def _time(workload: Workload, facts: SlurmFacts) -> Options:
    """A slice ends early enough to write a checkpoint; without slices Slurm's limit comes after the run's own."""
    limit_s, slice_s = workload.time_limit_s, workload.slurm.time_s
    options: Options = []
    if slice_s is not None:
        options = [("--time", time_text(slice_s)), ("--signal", f"B:USR2@{notice_s(workload)}")]
    elif limit_s is not None:
        most = [one.time_limit_s for one in chosen(workload, facts)]
        wanted = limit_s + workload.grace_s + MARGIN_S
        options = [("--time", time_text(min([wanted, *(one for one in most if one is not None)])))]
    return options


def notice_s(workload: Workload) -> int:
    """How long before the end of a slice the run is told."""
    return int(workload.grace_s) + NOTICE_S


def _queue(workload: Workload) -> Options:
    names = ("partition", "account", "qos", "reservation")
    return [(f"--{name}", value) for name in names if (value := getattr(workload.slurm, name))]


def _place(workload: Workload, pod: Pod | None, facts: SlurmFacts) -> Options:
    """A job that fits into one scalable unit is kept under its leaf switches."""
    unit = unit_size(pod) if pod else None
    fits = unit is not None and 1 < workload.nodes <= unit
    return [("--switches", "1")] if fits and facts.topology == "tree" else []


def _order(request: Request, after: str | None) -> Options:
    options: Options = []
    if request.is_parent:
        options.append(("--array", f"1-{len(request.points)}"))
    if after is not None:
        options += [("--dependency", f"afterok:{after}"), ("--kill-on-invalid-dep", "yes")]
    return [*options, ("--requeue", "")]


def _files(request: Request, runs: str) -> Options:
    """The node's own environment and limits count, not those of the shell that submits.

    Secrets are named here and take their values from sbatch's environment, never from its command line.
    """
    point = f"{request.run_id}-%a" if request.is_parent else request.run_id
    return [
        ("--export", ",".join(request.workload.secrets) or "NONE"),
        ("--propagate", "NONE"),
        ("--chdir", f"{runs}/{request.run_id}"),
        ("--output", f"{runs}/{point}/slurm.log"),
        ("--open-mode", "append"),
    ]


def check_folder(folder: str) -> None:
    """Refuses a folder that sbatch would not take as it is."""
    if not folder.startswith("/"):
        raise refuse(f'"{short(folder)}" is not an absolute path', field="folder", hint="write the whole path")
    if found := MANGLED.search(folder):
        what = "a space" if found[0].isspace() else f"`{found[0]}`"
        words = f'"{short(folder)}" has {what} in it, which Slurm changes'
        raise refuse(words, field="folder", hint="name another folder with `folder:` of the scheduler")


def cluster_folder(scheduler: SlurmScheduler, facts: SlurmFacts) -> str:
    """Where runs live on the cluster, absolute: `$USER`, `$HOME` and `~` are those of the login node."""
    folder = scheduler.folder or "$HOME/podwright"
    known = {"USER": facts.user, "HOME": facts.home, "LOGNAME": facts.user}
    folder = re.sub(r"^~(?=/|$)", lambda _: facts.home, folder)
    folder = re.sub(r"\$(?:(\w+)|\{(\w+)\})", lambda found: known.get(found[1] or found[2], found[0]), folder)
    if "$" in folder:
        hint = "$USER and $HOME are known"
        raise refuse(f'"{short(folder)}" has a variable nobody knows', field="folder", hint=hint)
    check_folder(folder)
    return folder.rstrip("/")


def chosen(workload: Workload, facts: SlurmFacts) -> list[Partition]:
    """The partitions a run may go to, of those there are; a verbatim option counts last, as in Slurm."""
    names = _partition_names(workload)
    found = [facts.partition(name) for name in names] if names else [facts.partition(None)]
    return [one for one in found if one is not None]


def _partition_names(workload: Workload) -> list[str]:
    given = workload.slurm.partition or ""
    for option in workload.slurm.options:
        if match := re.match(r"(?:--partition[= ]|-p[= ]?)\s*(\S+)", option):
            given = match[1]
    return [name for name in given.split(",") if name]


def check(request: Request, scheduler: SlurmScheduler, facts: SlurmFacts) -> None:
    """Refuses what the cluster cannot give, all of it at once."""
    workload = request.workload
    found = [*_names_problems(workload), *_partition_problems(workload, facts)]
    partitions = chosen(workload, facts)
    if partitions:
        found += [*_node_problems(workload, partitions), *_time_problems(workload, partitions)]
    found += [*_slice_problems(workload), *_mpi_problems(workload, facts), *_mig_problems(workload, facts)]
    if request.is_parent and len(request.points) >= facts.max_array_size:
        most = facts.max_array_size - 1
        words = f"has {len(request.points)} points, and the cluster takes {most} in one array"
        found.append(("matrix", words, "split it into several workloads"))
    found += containers.problems(request, scheduler, facts)
    if found:
        raise workload.refusal(found)


def _names_problems(workload: Workload) -> Iterator[Problem]:
    for name in ("partition", "account", "qos", "reservation"):
        value = getattr(workload.slurm, name)
        if value and MANGLED.search(value):
            yield f"slurm.{name}", f'"{short(value)}" is no name that Slurm takes', None


def _partition_problems(workload: Workload, facts: SlurmFacts) -> Iterator[Problem]:
    names = [one.name for one in facts.partitions]
    for name in _partition_names(workload):
        one = facts.partition(name)
        if one is None:
            yield "slurm.partition", f'the cluster has no partition "{short(name)}"', _nearest(name, names)
        elif not one.up:
            yield "slurm.partition", f"the partition {name} is closed", None
    if names and not _partition_names(workload) and facts.partition(None) is None:
        yield "slurm.partition", "the cluster has no default partition", f"name one of {', '.join(names)}"


def _nearest(name: str, names: list[str]) -> str:
    close = get_close_matches(name, names, n=1)
    return f"partitions are {', '.join(names)}" + (f"; did you mean `{close[0]}`?" if close else "")


def _node_problems(workload: Workload, partitions: list[Partition]) -> Iterator[Problem]:
    """What no node has is named; else it is said how many nodes have all of it."""
    where = " or ".join(one.name for one in partitions)
    lacking = list(_lacking(workload, [kind for one in partitions for kind in one.nodes], where))
    yield from lacking
    most = max(_most_nodes(workload, one) for one in partitions)
    if not lacking and workload.nodes > most:
        such = "such nodes" if any(one.size > most for one in partitions) else "nodes"
        yield "nodes", f"{workload.nodes} nodes are asked for; {where} gives {most} {such}", None


def _lacking(workload: Workload, kinds: list[SlurmNodeKind], where: str) -> Iterator[Problem]:
    asked = workload.resources
    rows: list[tuple[str, int, list[int], Callable[[int], str]]] = [
        ("gpus", asked.gpus, [kind.gpus for kind in kinds], lambda count: f"{count} GPUs"),
        ("cpus", asked.cpus or 0, [kind.cpus for kind in kinds], lambda count: f"{count} cores"),
        (
            "memory",
            _mib(asked.memory_bytes or 0),
            [kind.memory_mib for kind in kinds],
            lambda mib: format_size(mib << 20),
        ),
    ]
    for name, wanted, there, words in rows:
        if wanted > (most := max(there, default=0)):
            yield f"resources.{name}", f"a node of {where} has {words(most)}, and {words(wanted)} are asked for", None


def _most_nodes(workload: Workload, partition: Partition) -> int:
    fitting = sum(kind.count for kind in partition.nodes if _fits(workload, kind))
    return fitting if partition.max_nodes is None else min(fitting, partition.max_nodes)


def _fits(workload: Workload, kind: SlurmNodeKind) -> bool:
    resources = workload.resources
    enough = resources.gpus <= kind.gpus and (resources.cpus or 0) <= kind.cpus
    return enough and _mib(resources.memory_bytes or 0) <= kind.memory_mib


def _mib(size_bytes: int) -> int:
    return -(-size_bytes // (1 << 20))


def _time_problems(workload: Workload, partitions: list[Partition]) -> Iterator[Problem]:
    limits = [one.time_limit_s for one in partitions]
    known = [one for one in limits if one is not None]
    if not known or None in limits:
        return
    most, slice_s, limit_s = max(known), workload.slurm.time_s, workload.time_limit_s
    where = " or ".join(one.name for one in partitions)
    if slice_s is not None and slice_s > most:
        yield (
            "slurm.time",
            f"{where} lets a job run for {exact_duration(most)}",
            f"write `time: {exact_duration(most)}`",
        )
    elif slice_s is None and limit_s is not None and limit_s > most:
        hint = f"let it go on in slices: `slurm: {{time: {exact_duration(most)}}}`"
        yield "time_limit", f"{where} lets a job run for {exact_duration(most)}", hint


def _slice_problems(workload: Workload) -> Iterator[Problem]:
    slice_s, least = workload.slurm.time_s, notice_s(workload) + EARLY_S
    if slice_s is not None and slice_s <= 2 * least:
        words = f"is too short a slice: its last {least} s go to the checkpoint"
        yield "slurm.time", words, f"give it more than {exact_duration(2 * least)}, or shorten `grace`"


def _mpi_problems(workload: Workload, facts: SlurmFacts) -> Iterator[Problem]:
    """An image or a `module load` may bring mpirun along."""
    brought = bool(workload.setup) or workload.runtime == "container"
    if workload.launcher == "mpi" and workload.nodes > 1 and workload.runtime == "container":
        words = "ranks of MPI in containers on several nodes cannot be started from inside one of them"
        yield "launcher", words, "set `runtime: bare`, or `launcher: ranks` or `torchrun`"
    elif workload.launcher == "mpi" and not (facts.mpi_plugin or "mpirun" in facts.programs or brought):
        words = "the cluster's Slurm has no PMIx, and mpirun is not on its login node"
        yield "launcher", words, "load your site's MPI: `setup: [module load openmpi]`"


def _mig_problems(workload: Workload, facts: SlurmFacts) -> Iterator[Problem]:
    profile = workload.resources.mig
    if profile is not None and _slice_type(profile, facts) is None:
        slices = [name for name in facts.gpu_types if re.search(r"\dg\.\d", name)]
        hint = f"it has {', '.join(slices)}" if slices else "it has whole GPUs only"
        yield "resources.mig", f'the cluster has no slices "{short(profile)}"', hint
