"""The workload: what to train and what it needs."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, product
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, PrivateAttr

from podwright.pilot.protocol import goal_reached
from podwright.spec.findings import Finding, problems
from podwright.spec.inputs import Input, resolve_input
from podwright.spec.placeholders import Scalar
from podwright.spec.problems import Problem, Refusal
from podwright.spec.types import (
    Argv,
    AsWritten,
    Count,
    Duration,
    EnvName,
    FieldName,
    Flag,
    Image,
    Line,
    LinePattern,
    Lines,
    Name,
    Number,
    PathPattern,
    Point,
    Size,
    Slower,
    Span,
    Strict,
    Whole,
)
from podwright.spec.workload_warnings import LOOKS
from podwright.spec.yaml_document import Document

Launcher = Literal["torchrun", "mpi", "ranks"]
Runtime = Literal["bare", "container"]


class Resources(Strict):
    """What one node of a run gets."""

    gpus: Whole = Field(default=0, description="GPUs per node; with `mig`, the number of slices")
    cpus: Count | None = Field(default=None, description="CPU cores per node; left out: what the target gives")
    memory_bytes: Size | None = Field(
        default=None, alias="memory", description="memory per node; left out: what the target gives"
    )
    shm_bytes: Size | None = Field(
        default=None, alias="shm", description="shared memory per node, for data loaders in containers"
    )
    rdma: Flag = Field(default=False, description="the ranks talk over InfiniBand or RoCE")
    mig: Line | None = Field(
        default=None, description="the profile of a GPU slice, such as 1g.10gb, instead of whole GPUs"
    )


class Build(Strict):
    """How to make the image, when there is none yet."""

    base: Image = Field(description="the image to start from")
    apt: tuple[Line, ...] = Field(default=(), description="Debian packages to add")
    pip: tuple[Line, ...] = Field(default=(), description="Python packages to add")
    files: dict[Line, Line] = Field(
        default={}, description="files to add: path beside this file -> absolute path in the image"
    )
    user: Line | None = Field(default=None, description="the user that the image runs as")
    sshd: Flag = Field(default=False, description="add an SSH server, which MPI on Kubernetes needs")


class Goal(Strict):
    """The quality that ends the clock of time to train."""

    metric: Line = Field(description="the name under which the program reports the value")
    at_least: Number | None = Field(default=None, description="reached when the value is this or more")
    at_most: Number | None = Field(default=None, description="reached when the value is this or less")

    def reached_by(self, value: float) -> bool:
        """Return whether this value reaches the goal."""
        return goal_reached({"at_least": self.at_least, "at_most": self.at_most or 0.0}, value)


class LocalOptions(Strict):
    """What `local` alone needs."""

    oversubscribe: Flag = Field(
        default=False, description="whether a run may ask for more nodes or memory than this machine should carry"
    )


class SlurmOptions(Strict):
    """What Slurm alone needs."""

    partition: Line | None = Field(default=None, description="the partition to run in")
    account: Line | None = Field(default=None, description="the account to charge")
    qos: Line | None = Field(default=None, description="the quality of service")
    reservation: Line | None = Field(default=None, description="the reservation to use")
    time_s: Duration | None = Field(
        default=None, alias="time", description="the length of one slice; a longer run goes on in the next"
    )
    exclusive: Flag = Field(default=False, description="share the nodes with nobody")
    parallel: Count | None = Field(default=None, description="how many points of a matrix may run at once")
    options: tuple[Line, ...] = Field(default=(), description="further #SBATCH options, taken verbatim")


class Toleration(Strict):
    """A taint of nodes that does not keep a run away from them, in Kubernetes' own words."""

    key: Line | None = Field(default=None, description="the key of the taint; left out: of any")
    operator: Literal["Exists", "Equal"] = Field(default="Equal", description="whether its value counts")
    value: AsWritten | None = Field(default=None, description="the value of the taint")
    effect: Literal["NoSchedule", "PreferNoSchedule", "NoExecute"] | None = Field(
        default=None, description="what the taint does; left out: anything"
    )

    def as_object(self) -> dict[str, str]:
        """Return it as a Kubernetes pod has it."""
        return self.model_dump(exclude_none=True)


class KubernetesOptions(Strict):
    """What Kubernetes alone needs."""

    namespace: Line | None = Field(default=None, description="the namespace to run in")
    queue: Line | None = Field(default=None, description="the Kueue queue")
    priority: Line | None = Field(default=None, description="the name of a priority class")
    kind: Literal["job", "jobset", "trainjob"] = Field(
        default="job", description="what the run becomes: a Job, a JobSet or a TrainJob; an MPI program is an MPIJob"
    )
    training_runtime: Line = Field(
        default="torch-distributed", description="of a TrainJob: the ClusterTrainingRuntime that it starts from"
    )
    scheduler: Literal["volcano"] | None = Field(
        default=None, description="who places it instead of Kubernetes' own scheduler; untested"
    )
    parallel: Count | None = Field(default=None, description="points of a sweep that run at once; left out: all")
    pull_secrets: tuple[Line, ...] = Field(default=(), description="Secrets that hold logins to registries")
    node_selector: dict[Line, AsWritten] = Field(default={}, description="labels that its nodes must have")
    tolerations: tuple[Toleration, ...] = Field(default=(), description="taints that do not keep it away")
    patch: dict[str, Any] = Field(default={}, description="merged into the Kubernetes pod template")


class Workload(Strict):
    """What to train and what it needs, as one file says it; defaults are resolved."""

    name: Name = Field(description="lower-case letters, digits and dashes")
    argv: Argv = Field(
        alias="command", description="what each rank runs: split like a shell would, or a list taken as it is"
    )
    code: Line | None = Field(default=None, description="the folder that travels with the run; ranks start in it")
    include: tuple[PathPattern, ...] = Field(
        default=(), description="files of that folder that travel although git ignores them, as patterns"
    )
    setup: Lines = Field(default=(), description="shell lines before the ranks, such as `module load` or an activate")
    nodes: Count = Field(default=1, description="how many nodes")
    spares: Whole = Field(
        default=0,
        description="nodes more that join and wait: one of them takes the place of a node that is lost, without a way"
        " through the queue",
    )
    replace_slow: Slower | None = Field(
        default=None,
        description="a node with a rank whose own work of a step takes longer than that of the others by this much"
        " gives its place to a spare, once an hour at most",
    )
    ranks_per_node_given: Count | None = Field(
        default=None, alias="ranks_per_node", description="processes per node; left out: one per GPU, else 1"
    )
    launcher_given: Launcher | None = Field(
        default=None,
        alias="launcher",
        description="what starts the ranks: torchrun, mpi, or the pilot itself (ranks); left out: ranks, and one rank"
        " in all is a plain process without RANK and the like",
    )
    image: Image | None = Field(default=None, description="the container image")
    build: Build | None = Field(default=None, description="how to make the image, instead of naming one")
    runtime_given: Runtime | None = Field(
        default=None,
        alias="runtime",
        description="bare or container; left out: container when there is an image or build",
    )
    resources: Resources = Field(default=Resources(), description="what each node gets")
    data: dict[FieldName, Line] = Field(default={}, description="data in, by name: a path, data://..., or a selection")
    env: dict[EnvName, AsWritten] = Field(default={}, description="environment of the ranks")
    secrets: tuple[EnvName, ...] = Field(
        (), description="environment variables taken from the user's own, by name, and never written down"
    )
    checkpoint: Line = Field(
        "checkpoints", description="the folder for checkpoints; relative: inside the run's own folder"
    )
    keep: tuple[Line, ...] = Field(
        default=(),
        description="patterns of what is kept, as results/workdir, of the files that ranks left in the folder they"
        " started in; left out: all, up to 1GiB",
    )
    stdin: Line | None = Field(
        default=None, description="a file inside `code` that every rank reads as its input, under mpi rank 0 alone"
    )
    retries: Whole = Field(default=0, description="how often ranks that fail or hang start again from the checkpoint")
    grace_s: Span = Field(
        default=30.0,
        alias="grace",
        description="time between the request to stop and the kill",
        json_schema_extra={"default": "30s"},
    )
    time_limit_s: Duration | None = Field(
        default=None, alias="time_limit", description="of the whole run, all attempts"
    )
    hang_after_s: Duration | None = Field(
        default=None, alias="hang_after", description="no output and no progress for so long ends the attempt"
    )
    join_timeout_s: Duration = Field(
        default=600.0,
        alias="join_timeout",
        description="how long nodes wait for each other",
        json_schema_extra={"default": "10m"},
    )
    goal: Goal | None = Field(default=None, description="the quality that ends the clock of time to train")
    results: dict[FieldName, LinePattern] = Field(
        default={},
        description="name -> pattern with one group: values in the output of programs that tell none by themselves;"
        " common forms need no pattern",
    )
    matrix: dict[FieldName, tuple[Point, ...]] = Field(
        default={},
        description="one run for each combination of these values; on `local` side by side as far as `cpus`, `gpus` and"
        " `memory` fit, one after the other without `cpus`",
    )
    local: LocalOptions = Field(default=LocalOptions(), description="what `local` alone needs")
    slurm: SlurmOptions = Field(default=SlurmOptions(), description="what Slurm alone needs")
    kubernetes: KubernetesOptions = Field(default=KubernetesOptions(), description="what Kubernetes alone needs")

    _path: Path = PrivateAttr(default=Path("workload.yaml"))
    _source: bytes = PrivateAttr(default=b"")
    _document: Document = PrivateAttr(default=Document("workload.yaml"))

    def refusal(self, wrong: Iterable[tuple[str, str, str | None]]) -> Refusal:
        """Return a refusal of what a target finds wrong: field, message, hint; each gets its place in the file."""
        findings = [Finding(tuple(name.split(".")), message, hint) for name, message, hint in wrong]
        return Refusal(problems(findings, self._document))

    def warnings(self) -> list[Problem]:
        """Return what is allowed and most often a slip; a workload that was not read from a file has none."""
        tree = self._document.value or {}
        return problems(chain.from_iterable(look(tree, self.folder) for look in LOOKS), self._document)

    @property
    def path(self) -> Path:
        """Return the file it was read from, absolute."""
        return self._path

    @property
    def source(self) -> bytes:
        """Return the file's bytes as given."""
        return self._source

    @property
    def folder(self) -> Path:
        """Return the file's folder, to which paths in it are relative."""
        return self._path.parent

    @property
    def code_folder(self) -> Path | None:
        """Return the folder that travels with the run, absolute."""
        if self.code is None:
            return None
        return (self.folder / self.code).resolve()

    def inputs(self) -> dict[str, Input]:
        """Return what each entry of `data` is, by name."""
        code = self.code_folder
        return {name: resolve_input(text, self.folder, code) for name, text in self.data.items()}

    @property
    def allocated_nodes(self) -> int:
        """Return how many nodes to ask for: those that train and the spares."""
        return self.nodes + self.spares

    @property
    def ranks_per_node(self) -> int:
        """Return the processes per node: as given, else one per GPU, else 1."""
        return self.ranks_per_node_given or self.resources.gpus or 1

    @property
    def launcher(self) -> Launcher:
        """Return what starts the ranks."""
        return self.launcher_given or "ranks"

    @property
    def is_plain(self) -> bool:
        """Return whether it is one process that is told nothing of others, as its file names no launcher."""
        return self.launcher_given is None and self.nodes * self.ranks_per_node == 1

    @property
    def stdin_in_code(self) -> str | None:
        """Return the file that ranks read as their input, by its path in the code."""
        if self.stdin is None:
            return None
        return resolve_input(self.stdin, self.folder, self.code_folder).text

    @property
    def runtime(self) -> Runtime:
        """Return the runtime as given, else container when there is an image or a way to build one."""
        if self.runtime_given:
            return self.runtime_given
        return "container" if self.image or self.build else "bare"


def points(workload: Workload) -> list[dict[str, Scalar]]:
    """Return the combinations of the matrix in the file's order, the last name varying fastest; none: an empty list."""
    if not workload.matrix:
        return []
    return [dict(zip(workload.matrix, values, strict=True)) for values in product(*workload.matrix.values())]


def workload_json(workload: Workload) -> dict[str, Any]:
    """Return the resolved workload as JSON under the names of the file; `Workload.model_validate` takes it back."""
    values = workload.model_dump(mode="json", by_alias=True)
    return {**values, "ranks_per_node": workload.ranks_per_node, "runtime": workload.runtime}
