"""What every engine is: pure `plan` and `render`, a handful of effects, and what it cannot do as data.

Logs, metrics and results need no method of their own: `collect` brings the pilots' record into the run's folder,
whatever carried it, and everything else reads that folder.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from podwright.pilot.protocol import Order
from podwright.runs import RunFolder
from podwright.spec.placeholders import fill

if TYPE_CHECKING:
    from podwright.spec import Pod, Workload

Files = dict[str, str]
"""Rendered files by path: `ID/job/order.json`."""


@dataclass(frozen=True)
class Part:
    """One run of a job: a point of a matrix, one of several repeats, or the only one."""

    run_id: str
    matrix: dict[str, Any] | None
    order: Order


@dataclass(frozen=True)
class Job:
    """A typed request: what an engine was asked to start, before any of it is text."""

    run_id: str
    parts: tuple[Part, ...]
    after: str | None
    facts: Mapping[str, Any]
    root: str | None = None
    """Where the runs' folders must lie for the nodes to see them; None: in the client's home."""


@dataclass(frozen=True)
class Request:
    """What a user wants started, with everything that had to be looked up already in it."""

    run_id: str
    workload: Workload
    pod: Pod | None
    points: tuple[dict[str, Any], ...]
    """One per part; a single run has one empty point."""
    code: dict[str, str] | None
    data: Mapping[str, str]
    after: str | None = None
    after_handle: str | None = None
    """What the engine calls the run that this one comes after."""
    code_tar: bytes | None = None
    """The code itself, where an engine must know how much of it there is."""

    @property
    def is_parent(self) -> bool:
        return len(self.points) > 1

    def part_id(self, index: int) -> str:
        return f"{self.run_id}-{index + 1}" if self.is_parent else self.run_id

    def part_ids(self) -> list[str]:
        return [self.part_id(index) for index in range(len(self.points))]


@dataclass(frozen=True)
class Seen:
    """What the engine itself knows of a run: `waiting` where no part of it runs, `there` or `gone`, and why.

    `outcome` is how a run ended that is gone (`succeeded`, `failed`, `cancelled`), where the engine itself knows.
    """

    state: str
    reason: str = ""
    outcome: str = ""
    handle: str = ""
    """What the engine calls the job, where its list of jobs tells."""
    never_began: bool = False
    """It is gone without a trace, from the list of jobs and on the nodes: whoever accepted it lost it."""
    held_for: str = ""
    """The run that it waits for until a client releases it, on an engine that `holds`."""


class Engine(Protocol):
    name: str
    lag_s: float
    """How long the record may come after the engine's own news: a run is not given up for lost before."""

    def lacks(self) -> Mapping[str, str]:
        """What this engine cannot do, each with the reason; shown before anything starts."""

    def probe(self, request: Request) -> Mapping[str, Any]:
        """Look at the target once; the facts are then passed in everywhere."""

    def plan(self, request: Request, facts: Mapping[str, Any]) -> Job: ...

    def render(self, job: Job) -> Files: ...

    def ready(self, job: Job) -> None:
        """A last look at the target before the run exists; refuses what could not run there."""

    def submit(self, job: Job, folders: Sequence[RunFolder]) -> str:
        """Start the job, or find it started: calling it twice starts it once. Gives the engine's name for it."""

    def status(self, folders: Sequence[RunFolder]) -> dict[str, Seen]:
        """Many at once; a run that the engine does not know is `gone`."""

    def cancel(self, folders: Sequence[RunFolder]) -> None: ...

    def collect(self, folders: Sequence[RunFolder]) -> dict[str, list[str]]:
        """Bring the pilots' records into the folders; gives words about what is missing from them, by run."""

    def fetch(
        self, folders: Sequence[RunFolder], names: Sequence[str], limit_bytes: int | None = None
    ) -> dict[str, list[str]]:
        """Bring these parts of the runs' folders to this machine.

        Gives the runs whose parts are here now, each with the names of what was too much; a run that is missing could
        not be brought just now.
        """

    def shell(self, folder: RunFolder, node: int) -> list[str]:
        """The command that opens a shell beside the ranks of a node."""

    def remove(self, folder: RunFolder) -> None:
        """What the run left elsewhere goes; its folder here is not this method's."""

    def clean(self, folder: RunFolder) -> None:
        """End whatever a lost run left behind."""


NEEDS: tuple[tuple[str, str, Any], ...] = (
    ("container", "runtime", lambda w, r: w.runtime == "container"),
    ("rdma", "resources.rdma", lambda w, r: w.resources.rdma),
    ("mig", "resources.mig", lambda w, r: w.resources.mig is not None),
    ("after", "", lambda w, r: r.after is not None),
    ("matrix", "matrix", lambda w, r: r.is_parent),
    ("shared", "retries", lambda w, r: w.retries > 0 and w.nodes > 1 and not w.checkpoint.startswith("/")),
)
"""(ability, the field that asks for it, whether this request does)"""


def check_abilities(engine: Engine, request: Request) -> None:
    lacks, workload = engine.lacks(), request.workload
    missing = [(field, lacks[name], None) for name, field, asks in NEEDS if name in lacks and asks(workload, request)]
    if missing:
        raise workload.refusal(missing)


def order_of(request: Request, index: int, **of_engine: Any) -> Order:
    """The order of one part: everything the workload says; the engine adds where and how.

    `{checkpoint}` stays in it: only the node knows where that folder is for it.
    """
    workload, point = request.workload, request.points[index]
    values: dict[str, Any] = {f"data.{name}": path for name, path in request.data.items()}
    values |= {f"matrix.{name}": value for name, value in point.items()}
    resources = workload.resources
    goal = workload.goal.model_dump(exclude_none=True) if workload.goal else None
    return Order(
        run=request.part_id(index),
        nodes=workload.nodes,
        ranks_per_node=workload.ranks_per_node,
        launcher=workload.launcher,
        command=[fill(word, values) for word in workload.argv],
        setup=list(workload.setup),
        env={**of_engine.pop("env", {}), **{name: fill(text, values) for name, text in workload.env.items()}},
        secrets=list(workload.secrets),
        gpus=resources.gpus,
        rdma=resources.rdma,
        retries=workload.retries,
        grace_s=workload.grace_s,
        time_limit_s=workload.time_limit_s,
        hang_after_s=workload.hang_after_s,
        join_timeout_s=workload.join_timeout_s,
        goal=goal,
        checkpoint=workload.checkpoint,
        code=request.code,
        **of_engine,
    )
