"""What a run asks of Slurm: options of sbatch and of the step, and what of it the cluster cannot give."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TYPE_CHECKING

from podwright.design.topology import unit_size
from podwright.engines.slurm import containers
from podwright.engines.slurm.containers import Problem
from podwright.engines.slurm.facts import Partition, SlurmFacts, SlurmNodeKind, time_text
from podwright.spec.nearest import near
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
SWITCHES_S = 60.0
"""A job that could start elsewhere waits no longer than this for nodes under one switch."""
MANGLED = re.compile(r"[\s%\\'\"#]")
"""What sbatch replaces, drops or takes for an end where it stands in a path or a name."""


def sbatch_options(
    request: Request, pod: Pod, scheduler: SlurmScheduler, facts: SlurmFacts, runs: str, after: str | None = None
) -> Options:
    """Return the #SBATCH lines of a run whose folders lie in `runs`; `after` is the Slurm job that it waits for.

    Refuse everything that the cluster cannot give, all at once.
    """
    check(request, pod, scheduler, facts)
    check_folder(runs)
    return [
        *_name(request),
        *_size(request, facts),
        *_time(request.workload, facts),
        *queue_options(request.workload),
        *_place(request.workload, pod, facts),
        *_order(request, after),
        *_files(request, runs),
        *((option, "") for option in request.workload.slurm.options),
    ]


def sbatch_lines(options: Iterable[tuple[str, str]]) -> str:
    """Return options as a script has them."""
    return "\n".join(f"#SBATCH {name}={value}" if value else f"#SBATCH {name}" for name, value in options)


def step_options(request: Request, facts: SlurmFacts) -> list[str]:
    """Return the options of the one step: a pilot on each node, which sees all that the job was given there."""
    nodes, cpus = request.workload.allocated_nodes, _cpus(request.workload, facts)
    options = ["--export=ALL", f"--nodes={nodes}", f"--ntasks={nodes}", "--ntasks-per-node=1"]
    if cpus:
        options.append(f"--cpus-per-task={cpus}")
    options += unbound(facts)
    # With spares the step outlives a pilot and a node; else what is lost is given to Slurm to replace.
    bad_exit = ["--kill-on-bad-exit=0", "--no-kill"] if request.workload.spares else ["--kill-on-bad-exit=1"]
    # What a rank starts with srun of its own shares all there is with the pilots.
    return [*options, "--overlap", "--mpi=none", *bad_exit, "--wait=0", "--label"]


def unbound(facts: SlurmFacts) -> list[str]:
    """Return what keeps Slurm from binding a task to a part of the cores: the pilot binds ranks itself."""
    if "affinity" in facts.task_plugins:
        return ["--cpu-bind=none"]
    return []


def _name(request: Request) -> Options:
    return [("--job-name", request.run_id), ("--comment", "podwright")]


def _size(request: Request, facts: SlurmFacts) -> Options:
    workload, resources = request.workload, request.workload.resources
    cpus, memory = _cpus(workload, facts), resources.memory_bytes
    options: Options = [("--nodes", str(workload.allocated_nodes)), ("--ntasks-per-node", "1")]
    if cpus:
        options.append(("--cpus-per-task", str(cpus)))
    options += _gpus(workload, facts)
    if memory is not None:
        options.append(("--mem", f"{_mib(memory)}M"))
    if workload.spares:
        options.append(("--no-kill", ""))  # the job goes on when a node is lost
    if workload.slurm.exclusive:
        options.append(("--exclusive", ""))
    if workload.slurm.exclusive and memory is None:
        options.append(("--mem", "0"))  # all that the node has
    return options


def _cpus(workload: Workload, facts: SlurmFacts) -> int | None:
    """Return the cores to ask for: as given, else one for each rank.

    None where the site gives them by itself: with whole nodes, or with each GPU.
    """
    partitions = chosen(workload, facts)
    if workload.resources.cpus is not None:
        return workload.resources.cpus
    if workload.slurm.exclusive or any(partition.exclusive for partition in partitions):
        return None
    if workload.resources.gpus > 0 and any(partition.cpus_per_gpu for partition in partitions):
        return None
    return workload.ranks_per_node


def _gpus(workload: Workload, facts: SlurmFacts) -> Options:
    """Return how GPUs are asked for: only cons_tres knows `--gpus-per-node`, every other Slurm takes a GRES."""
    count, profile = workload.resources.gpus, workload.resources.mig
    if count == 0:
        return []
    if profile is not None:
        return [("--gres", f"gpu:{_slice_type(profile, facts)}:{count}")]
    if facts.select == "cons_tres":
        return [("--gpus-per-node", str(count))]
    return [("--gres", f"gpu:{count}")]


def _slice_type(profile: str, facts: SlurmFacts) -> str | None:
    """Return the cluster's name for a slice of a GPU; Slurm names slices after their GPU: `a100_1g.5gb`."""
    fitting = (name for name in facts.gpu_types if name == profile or name.endswith(f"_{profile}"))
    return next(fitting, None)


def _time(workload: Workload, facts: SlurmFacts) -> Options:
    """Return the time to ask for, and when the run is warned.

    A slice ends early enough to write a checkpoint; without slices Slurm's limit comes after the run's own.
    """
    limit_s, slice_s = workload.time_limit_s, workload.slurm.time_s
    if slice_s is not None:
        return [("--time", time_text(slice_s)), ("--signal", f"B:USR2@{notice_s(workload)}")]
    if limit_s is None:
        return []
    wanted = limit_s + workload.grace_s + MARGIN_S
    limits = [partition.time_limit_s for partition in chosen(workload, facts) if partition.time_limit_s is not None]
    return [("--time", time_text(min([wanted, *limits])))]


def notice_s(workload: Workload) -> int:
    """Return how long before the end of a slice the run is warned."""
    return int(workload.grace_s) + NOTICE_S


def queue_options(workload: Workload) -> Options:
    """Return which queue a run is in, and on whose account."""
    names = ("partition", "account", "qos", "reservation")
    return [(f"--{name}", value) for name in names if (value := getattr(workload.slurm, name))]


def _place(workload: Workload, pod: Pod, facts: SlurmFacts) -> Options:
    """Return what keeps a job that fits into one scalable unit under its leaf switches, if that costs no long wait."""
    if not switches_wait_s(workload, pod, facts):
        return []
    return [("--switches", f"1@{time_text(SWITCHES_S)}")]


def switches_wait_s(workload: Workload, pod: Pod, facts: SlurmFacts) -> float:
    """Return how long a job waits at most for nodes under one leaf switch; 0 where it takes any."""
    unit = unit_size(pod)
    if facts.topology != "tree" or unit is None or not 1 < workload.allocated_nodes <= unit:
        return 0.0
    return SWITCHES_S


def _order(request: Request, after: str | None) -> Options:
    options: Options = []
    if request.is_parent:
        options.append(("--array", _array(len(request.points), request.workload.slurm.parallel)))
    if after is not None:
        options += [("--dependency", f"afterok:{after}"), ("--kill-on-invalid-dep", "yes")]
    return [*options, ("--requeue", "")]


def _array(points: int, parallel: int | None) -> str:
    if parallel is None:
        return f"1-{points}"
    return f"1-{points}%{parallel}"


def _files(request: Request, runs: str) -> Options:
    """Return where the job runs and writes; the node's environment and limits count, not those of the submitting shell.

    Secrets are named here and take their values from sbatch's environment, never from its command line.
    """
    point = request.run_id
    if request.is_parent:
        point = f"{request.run_id}-%a"
    return [
        ("--export", ",".join(request.workload.secrets) or "NONE"),
        ("--propagate", "NONE"),
        ("--chdir", f"{runs}/{request.run_id}"),
        ("--output", f"{runs}/{point}/slurm.log"),
        ("--open-mode", "append"),
    ]


def check_folder(folder: str) -> None:
    """Refuse a folder that sbatch would not take as it is."""
    if not folder.startswith("/"):
        raise refuse(f'"{short(folder)}" is not an absolute path', field="folder", hint="write the whole path")
    if match := MANGLED.search(folder):
        what = "a space" if match[0].isspace() else f"`{match[0]}`"
        message = f'"{short(folder)}" has {what} in it, which Slurm changes'
        raise refuse(message, field="folder", hint="name another folder with `folder:` of the scheduler")


def cluster_folder(scheduler: SlurmScheduler, facts: SlurmFacts) -> str:
    """Return where runs live on the cluster, absolute: `$USER`, `$HOME` and `~` are those of the login node."""
    folder = scheduler.folder or "$HOME/podwright"
    known = {"USER": facts.user, "HOME": facts.home, "LOGNAME": facts.user}
    folder = re.sub(r"^~(?=/|$)", lambda _: facts.home, folder)
    folder = re.sub(r"\$(?:(\w+)|\{(\w+)\})", lambda match: known.get(match[1] or match[2], match[0]), folder)
    if "$" in folder:
        hint = "$USER and $HOME are known"
        raise refuse(f'"{short(folder)}" has a variable nobody knows', field="folder", hint=hint)
    check_folder(folder)
    return folder.rstrip("/")


def chosen(workload: Workload, facts: SlurmFacts) -> list[Partition]:
    """Return the partitions a run may go to, of those there are; a verbatim option counts last, as in Slurm."""
    names: list[str | None] = [*_partition_names(workload)] or [None]
    partitions = [facts.partition(name) for name in names]
    return [partition for partition in partitions if partition is not None]


def _partition_names(workload: Workload) -> list[str]:
    given = workload.slurm.partition or ""
    for option in workload.slurm.options:
        if match := re.match(r"(?:--partition[= ]|-p[= ]?)\s*(\S+)", option):
            given = match[1]
    return [name for name in given.split(",") if name]


def check(request: Request, pod: Pod, scheduler: SlurmScheduler, facts: SlurmFacts) -> None:
    """Refuse what the cluster cannot give, all of it at once."""
    workload = request.workload
    problems = [*_names_problems(workload), *_partition_problems(workload, facts)]
    partitions = chosen(workload, facts)
    if partitions:
        problems += [*_node_problems(workload, partitions), *_time_problems(workload, partitions)]
    problems += [*_slice_problems(workload), *_mpi_problems(workload, facts), *_mig_problems(workload, facts)]
    if request.is_parent and len(request.points) >= facts.max_array_size:
        most = facts.max_array_size - 1
        message = f"has {len(request.points)} points, and the cluster takes {most} in one array"
        problems.append(("matrix", message, "split it into several workloads"))
    problems += containers.problems(request, pod, scheduler, facts)
    if problems:
        raise workload.refusal(problems)


def _names_problems(workload: Workload) -> Iterator[Problem]:
    for name in ("partition", "account", "qos", "reservation"):
        value = getattr(workload.slurm, name)
        if value and MANGLED.search(value):
            yield f"slurm.{name}", f'"{short(value)}" is no name that Slurm takes', None


def _partition_problems(workload: Workload, facts: SlurmFacts) -> Iterator[Problem]:
    names = [partition.name for partition in facts.partitions]
    for name in _partition_names(workload):
        partition = facts.partition(name)
        if partition is None:
            yield "slurm.partition", f'the cluster has no partition "{short(name)}"', _nearest(name, names)
        elif not partition.up:
            yield "slurm.partition", f"the partition {name} is closed", None
    if names and not _partition_names(workload) and facts.partition(None) is None:
        yield "slurm.partition", "the cluster has no default partition", f"name one of {', '.join(names)}"


def _nearest(name: str, names: list[str]) -> str:
    hint = f"partitions are {', '.join(names)}"
    close = near(name, names)
    if close:
        hint += f"; did you mean `{close}`?"
    return hint


def _node_problems(workload: Workload, partitions: list[Partition]) -> Iterator[Problem]:
    """Yield what no node has; else, where too few nodes have all of it, how many there are."""
    where = _names_of(partitions)
    kinds = list(chain.from_iterable(partition.nodes for partition in partitions))
    lacking = list(_lacking(workload, kinds, where))
    yield from lacking
    most = max(_most_nodes(workload, partition) for partition in partitions)
    if not lacking and workload.allocated_nodes > most:
        such = "such nodes" if any(partition.size > most for partition in partitions) else "nodes"
        yield "nodes", f"{workload.allocated_nodes} nodes are asked for; {where} gives {most} {such}", None


def _names_of(partitions: list[Partition]) -> str:
    return " or ".join(partition.name for partition in partitions)


def _lacking(workload: Workload, kinds: list[SlurmNodeKind], where: str) -> Iterator[Problem]:
    for name, of_kind, describe in AMOUNTS:
        wanted, most = _asked(workload)[name], max(map(of_kind, kinds), default=0)
        if wanted > most:
            message = f"a node of {where} has {describe(most)}, and {describe(wanted)} are asked for"
            yield f"resources.{name}", message, None


def _most_nodes(workload: Workload, partition: Partition) -> int:
    fitting = sum(kind.count for kind in partition.nodes if _fits(workload, kind))
    if partition.max_nodes is None:
        return fitting
    return min(fitting, partition.max_nodes)


def _fits(workload: Workload, kind: SlurmNodeKind) -> bool:
    asked = _asked(workload)
    return all(asked[name] <= of_kind(kind) for name, of_kind, _ in AMOUNTS)


def _asked(workload: Workload) -> dict[str, int]:
    """Return what is asked of each node, by the names of the table."""
    resources = workload.resources
    return {"gpus": resources.gpus, "cpus": resources.cpus or 0, "memory": _mib(resources.memory_bytes or 0)}


AMOUNTS: tuple[tuple[str, Callable[[SlurmNodeKind], int], Callable[[int], str]], ...] = (
    ("gpus", lambda kind: kind.gpus, lambda count: f"{count} GPUs"),
    ("cpus", lambda kind: kind.cpus, lambda count: f"{count} cores"),
    ("memory", lambda kind: kind.memory_mib, lambda mib: format_size(mib << 20)),
)
"""(the field, what a node has of it, how an amount is written)"""


def _mib(size_bytes: int) -> int:
    return -(-size_bytes // (1 << 20))


def _time_problems(workload: Workload, partitions: list[Partition]) -> Iterator[Problem]:
    limits = [partition.time_limit_s for partition in partitions if partition.time_limit_s is not None]
    if len(limits) < len(partitions):  # in one of them a job may run for ever
        return
    most, slice_s, limit_s = max(limits), workload.slurm.time_s, workload.time_limit_s
    longest = exact_duration(most)
    message = f"{_names_of(partitions)} lets a job run for {longest}"
    if slice_s is not None and slice_s > most:
        yield "slurm.time", message, f"write `time: {longest}`"
    elif slice_s is None and limit_s is not None and limit_s > most:
        yield "time_limit", message, f"let it go on in slices: `slurm: {{time: {longest}}}`"


def _slice_problems(workload: Workload) -> Iterator[Problem]:
    slice_s, least = workload.slurm.time_s, notice_s(workload) + EARLY_S
    if slice_s is not None and slice_s <= 2 * least:
        message = f"is too short a slice: its last {least} s go to the checkpoint"
        # Slurm counts whole minutes.
        shortest = exact_duration(2 * least // 60 * 60 + 60)
        hint = f"it must be longer than {exact_duration(2 * least)}, as `time: {shortest}` is"
        if slice_s > 2 * (NOTICE_S + EARLY_S):
            hint += "; or shorten `grace`"
        yield "slurm.time", message, hint


def _mpi_problems(workload: Workload, facts: SlurmFacts) -> Iterator[Problem]:
    if workload.launcher != "mpi":
        return
    in_container = workload.runtime == "container"
    # An image or a `module load` may bring mpirun along.
    may_be_brought = bool(workload.setup) or in_container
    if workload.allocated_nodes > 1 and in_container:
        message = "ranks of MPI in containers on several nodes cannot be started from inside one of them"
        yield "launcher", message, "set `runtime: bare`, or `launcher: ranks` or `torchrun`"
    elif not (facts.mpi_plugin or "mpirun" in facts.programs or may_be_brought):
        message = "the cluster's Slurm has no PMIx, and mpirun is not on its login node"
        yield "launcher", message, "load your site's MPI: `setup: [module load openmpi]`"


def _mig_problems(workload: Workload, facts: SlurmFacts) -> Iterator[Problem]:
    profile = workload.resources.mig
    if profile is not None and _slice_type(profile, facts) is None:
        slices = [name for name in facts.gpu_types if re.search(r"\dg\.\d", name)]
        hint = f"it has {', '.join(slices)}" if slices else "it has whole GPUs only"
        yield "resources.mig", f'the cluster has no slices "{short(profile)}"', hint
