"""What every engine is: the life of a run on a target, as the rest of Podwright asks for it.

An engine is one folder with one public class that derives from `Engine`. It schedules nothing: it gives a job to
whoever does (a keeper on this machine, Slurm, Kubernetes) and answers what became of it. To write another one, read
this page, `order_of` below, and `engines/local`, which is the smallest.

**The order of calls.** To start: `unsupported`, then `probe` once, `plan` and `render` (both pure: the facts come in
as an argument), `preflight`, and only now the run's folders are written; then `submit`. To follow, again and again and
from any client: `status`, then `collect`, always in this order, so that a run that ends in between is found ended and
never lost, then `tend`; when it is over and gone, `collect` and `fetch` once more, and the folder is sealed. At any
time: `cancel`, `shell`, `connect`, `clean` (of a run that is lost, or over and still there) and `remove`; `usage` for
what the target does beside our runs, `found` for runs that other homes of the user have there. `close` comes last.

**After another run.** A scheduler that knows which job comes after which is told so by `plan`. Where it does not
(`holds`), `submit` makes the job so that it does not start, `status` says which run it is `held_for`, and whoever looks
next calls `release` when that run has succeeded, or `cancel` when it never will.

**Folders.** A run lies in `runs/ID`; a run of several parts has one folder for the job, `runs/PARENT`, where the files
that all parts share lie (`job/`), and one for each part beside it. `render` names files by `ID/path`; the same files
lie there when `submit` is called, and nothing else is needed to submit: a client that died in between is replaced by
one that knows only the folders.

**What may be raised.** `Refusal`, with words and an exit code: 2 when the user must change something, 3 when the target
cannot be reached. `status` and `collect` never raise because a target is away for a moment: what cannot be asked has
not changed. A target that stays away, or does not know the user any more, is `silent` in the status. A fault of ours
may end in any exception; it is reported as such.

**Submitting twice starts once.** `submit` may come again for the same run, from another client, at any later time; with
`again` it is known that an earlier call may have got through. A job that is many objects to its target does not start
before all of them are there: until then `status` calls it `unfinished`, and `submit` raises `Unfinished` where the
target goes away meanwhile. Whoever looks next submits those parts again.

**Threads.** A session calls an engine from one thread at a time. Engines of different targets run side by side.

**The record** is the pilots' business: they write events, metrics and logs, and `collect` brings those files into the
run's folder, whatever carried them. So there is no method for logs, metrics or results: everything else reads folders.

**`lag_s`** covers the time by which the record in the folder may be older than the engine's own news (a cached answer,
a mirror that is asked every half second): a run whose engine says `gone` and whose record has no end is given this long
before it is called lost.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from io import BufferedIOBase
from typing import TYPE_CHECKING, Any, Protocol

from podwright.engines.found import FoundRun
from podwright.engines.mirror import Trees
from podwright.engines.staged import StagedData, staged_entries
from podwright.engines.usage import ClusterUsage
from podwright.pilot.protocol import SILENCE_S, Order
from podwright.runs import RunFolder
from podwright.runs.copies import LeftOut
from podwright.runs.points import point_id
from podwright.spec.placeholders import fill
from podwright.spec.problems import Refusal, refuse

if TYPE_CHECKING:
    from podwright.spec import Pod, Workload
    from podwright.spec.inputs import Input

Files = dict[str, str]
"""Rendered texts by path: `ID/job/order.json`. Engines and bring-up give the same type."""


@dataclass(frozen=True)
class Part:
    """One run of a job: a point of a matrix, one of several repeats, or the only one."""

    run_id: str
    matrix: dict[str, Any] | None
    order: Order


@dataclass(frozen=True)
class Job:
    """A typed request: what an engine was asked to start, before any of it is text. Engines add fields of their own."""

    run_id: str
    parts: tuple[Part, ...]
    after: str | None = None
    root: str | None = None
    """Where the runs' folders must lie for the nodes to see them; None: in the client's home."""
    image: Mapping[str, Any] | None = None
    """What the engine found under the image's name (`name`, `digest`, ...), where it looked for it."""
    gaps: tuple[str, ...] = ()
    """What the target does not give a run that goes on without it: sentences, said once and kept in its record."""


@dataclass(frozen=True)
class Request:
    """What a user wants started, with everything that had to be looked up already in it."""

    run_id: str
    workload: Workload
    pod: Pod | None
    points: tuple[dict[str, Any], ...]
    """One per part; a single run has one empty point."""
    code: dict[str, str] | None
    data: Mapping[str, Input]
    after: str | None = None
    after_handle: str | None = None
    """What the engine calls the run that this one comes after."""
    pinned: Mapping[str, Any] = field(default_factory=dict)
    """What selections were when the run was asked for, by the name of the input: `selection`, `split`, `digest`."""
    staged: Mapping[str, StagedData] = field(default_factory=dict)
    """By the name of the input."""
    verified: Mapping[str, Any] | None = None
    """How the files of selections were compared with those that were chosen."""
    code_tar: BufferedIOBase | None = None
    """The code itself, where an engine must know how much of it there is."""

    @property
    def is_parent(self) -> bool:
        """Return whether the job has several parts."""
        return len(self.points) > 1

    def with_shared_code(self) -> Request:
        """Return the same for parts that find the code in their parent's job folder, where it lies once."""
        if self.code is None or not self.is_parent:
            return self
        return replace(self, code={**self.code, "file": f"../../{self.run_id}/job/{self.code['file']}"})

    def part_id(self, index: int) -> str:
        """Return the run id of one part; of the only one it is the job's own."""
        if self.is_parent:
            return point_id(self.run_id, index)
        return self.run_id

    def part_ids(self) -> list[str]:
        """Return the run ids of all parts, in the order of the points."""
        return [self.part_id(index) for index in range(len(self.points))]

    def target_paths(self) -> list[tuple[str, str]]:
        """Return the absolute paths that the target must have already, each behind the name of its input."""
        paths = [(name, given.text) for name, given in self.data.items() if given.kind == "path"]
        for name, staged in self.staged.items():
            paths += [(name, path) for path in staged.paths]
        return paths

    @property
    def manifests(self) -> str:
        """Return where an order finds the manifests of data: beside it, or beside its parent's."""
        return f"../../{self.run_id}/job/" if self.is_parent else ""

    def shown_paths(self) -> list[str]:
        """Return the absolute paths that ranks must see: those of the target, and what links in them lead into."""
        paths = [path for _, path in self.target_paths()]
        for given in self.data.values():
            paths += given.behind
        return paths


@dataclass(frozen=True)
class Status:
    """What the engine itself knows of a run: `waiting` where no part of it runs, `there` or `gone`, and why.

    `outcome` is how a run ended that is gone (`succeeded`, `failed`, `cancelled`, or `lost` where somebody else took it
    away), where the engine itself knows.
    """

    state: str
    reason: str = ""
    outcome: str = ""
    handle: str = ""
    """What the engine calls the job, where its list of jobs tells."""
    unknown_to_engine: bool = False
    """It is gone without a trace, from the list of jobs and on the nodes: whoever accepted it lost it."""
    held_for: str = ""
    """The run that it waits for until a client releases it, on an engine that `holds`."""
    unfinished: bool = False
    """Whoever submitted it did not get to the end: `submit` of this part alone finishes it."""
    unheard: str = ""
    """How long its pilots were not heard of, where the target says that it runs and they should have been."""
    silent: str = ""
    """Why the target could not be asked just now, once it was waited for long enough; then nothing else is known."""
    told: bool = False
    """The outcome is what its pilots said, by the code that the job left with: also a success is believed."""
    unread: str = ""
    """Why what its pilots wrote could not be read just now: their last word may be there."""


class Unfinished(Refusal):
    """The target went away while it was given a job: some of it may be there, and a later `submit` finishes it."""


class Engine(Protocol):
    """The methods of an engine; the module's docstring tells when each is called.

    A class of an engine derives from it: what has a body here is right for an engine that runs beside its client, and
    asks nobody.
    """

    name: str
    lag_s: float = 0.0
    holds: bool = False
    """A run that comes after another waits for a client of ours to release it."""
    sees_home: bool = False
    """Ranks see the client's home: a selection can be a folder of links there."""
    remains: bool = False
    """What the engine has of a run may outlast its end: whoever looks then calls `clean`."""

    def unsupported(self) -> Mapping[str, str]:
        """Return what this engine cannot do, each with the reason; shown before anything starts."""

    def probe(self, request: Request) -> Any:
        """Look at the target once, and return the facts: a frozen class of the engine's own."""

    def plan(self, request: Request, facts: Any) -> Job:
        """Decide everything, or refuse all that cannot be at once. Pure."""

    def render(self, job: Job) -> Files:
        """Return every file that `submit` needs, by run and path. Pure."""

    def preflight(self, job: Job) -> None:
        """Look at the target a last time before the run exists; refuse what could not run there."""
        return

    def submit(self, run_id: str, folders: Sequence[RunFolder], again: bool) -> str:
        """Start the job of these folders, or find it started, and return the engine's own name for it.

        `run_id` is the job's: of one run its id, of several parts the parent's.
        """

    def status(self, folders: Sequence[RunFolder]) -> dict[str, Status]:
        """Return what is known of each run, with one question for all; one that nobody knows is `gone`."""

    def cancel(self, folders: Sequence[RunFolder], whole: bool = False) -> None:
        """Ask the runs to end, with the grace they were promised; what still waits never starts.

        `whole`: they are all points of a matrix that have not ended, and an engine may end them as one.
        """

    def release(self, folders: Sequence[RunFolder]) -> None:
        """Let runs start that are held for another; one that another client has released is left alone."""
        return

    def tend(self, folders: Sequence[RunFolder]) -> None:
        """Do for runs that wait what nobody does while no client looks, such as to resume what this engine held."""
        return

    def collect(self, folders: Sequence[RunFolder]) -> dict[str, list[str]]:
        """Bring the pilots' records into the folders; return sentences about what is missing, by run."""

    def unread(self, folders: Sequence[RunFolder]) -> Mapping[str, str]:
        """Return why the last `collect` could not bring the records of these runs, by run."""
        return {}

    def peek(self, folders: Sequence[RunFolder], names: Sequence[str], limit_bytes: int) -> set[str]:
        """Bring these parts of runs that are at work, where a cheap question brings them, and nothing of their records.

        Return the runs of which all that is there came whole.
        """
        return {folder.id for folder in folders}

    def fetch(self, folders: Sequence[RunFolder], trees: Trees) -> dict[str, list[LeftOut]]:
        """Bring these parts of the runs' folders to this machine.

        Return the runs whose parts are here now, each with what was left out: too much, or no plain file. A run that is
        missing could not be brought just now.
        """
        return {folder.id: [] for folder in folders}

    def shell(self, folder: RunFolder, node: int) -> list[str]:
        """Return the command that opens a shell beside the ranks of a node."""

    def connect(self, folder: RunFolder, node: int, port: int) -> socket.socket:
        """Return a connection to a port of a node that is at work; OSError or an end where nobody listens there."""

    def expose(self, folder: RunFolder, node: int, port: int) -> AbstractContextManager[str]:
        """Let others than the user reach a port, at the address that comes, until it is left or the run ends.

        It is asked only where `unsupported` has no reason against it (`route`).
        """
        raise refuse(NO_ROUTE)

    def remove(self, folder: RunFolder) -> None:
        """Remove what the run left elsewhere; its folder here is not this method's."""

    def clear(self, folders: Sequence[RunFolder], name: str, remove: bool) -> dict[str, int]:
        """Return the bytes that a part of the runs' folders has elsewhere, and remove it there where that is asked.

        A run that has no such part there is missing.
        """
        return {}

    def clean(self, folder: RunFolder) -> None:
        """End whatever a run left behind that is lost, or that has ended and is still there."""

    def found(self, ids: Sequence[str] = ()) -> list[FoundRun]:
        """Return the runs of this user that the target has, whichever home started them, the newest first.

        Points of others are left out, unless they are among the `ids` that are asked for. What a run says of itself may
        be anything.
        """
        raise refuse(NO_FOUND, hint=NO_FOUND_HINT)

    def usage(self) -> ClusterUsage | None:
        """Return who answers for all jobs of the target; None where `unsupported` has the reason (`usage`)."""
        return None

    def close(self) -> None:
        """Let go of connections; runs go on. Nothing is called after it."""
        return


NO_ROUTE = "only OpenShift has routes; `podwright forward` without `--route` brings the port to this machine"

NO_FOUND = "runs of this target are known to the homes that started them, and nowhere else"
NO_FOUND_HINT = "set PODWRIGHT_HOME to the home that is meant"

NEEDS: tuple[tuple[str, str, Any], ...] = (
    ("container", "runtime", lambda w, r: w.runtime == "container"),
    ("rdma", "resources.rdma", lambda w, r: w.resources.rdma),
    ("mig", "resources.mig", lambda w, r: w.resources.mig is not None),
    ("after", "", lambda w, r: r.after is not None),
    ("matrix", "matrix", lambda w, r: r.is_parent),
    ("shared", "spares", lambda w, r: w.spares > 0 and not w.checkpoint.startswith("/")),
    ("shared", "retries", lambda w, r: w.retries > 0 and w.nodes > 1 and not w.checkpoint.startswith("/")),
)
"""(ability, the field that asks for it, whether this request does)"""


def check_abilities(engine: Engine, request: Request) -> None:
    """Refuse what the workload asks for and the engine cannot do, all of it at once."""
    lacking, workload = engine.unsupported(), request.workload
    missing = [
        (field, lacking[name], None) for name, field, asks in NEEDS if name in lacking and asks(workload, request)
    ]
    if missing:
        raise workload.refusal(missing)


SPARED_SILENCE_S = 10.0
"""Of a run that has spares: to take one for a node that was only slow costs an attempt, no way through the queue."""


def parts_of(request: Request, **of_engine: Any) -> tuple[Part, ...]:
    """Return all parts, each with its order."""
    points = enumerate(zip(request.part_ids(), request.points, strict=True))
    return tuple(
        Part(run_id, point or None, order_of(request, index, **of_engine)) for index, (run_id, point) in points
    )


def order_of(request: Request, index: int, **of_engine: Any) -> Order:
    """Return the order of one part: everything the workload says; the engine adds where and how.

    `{checkpoint}` stays in it, and `{data.NAME}` of what is staged: only the node knows where those are for it.
    """
    workload, point = request.workload, request.points[index]
    given = {name: given for name, given in request.data.items() if name not in request.staged}
    values: dict[str, Any] = {f"data.{name}": given.text for name, given in given.items()}
    values |= {f"matrix.{name}": value for name, value in point.items()}
    resources = workload.resources
    goal = workload.goal.model_dump(exclude_none=True) if workload.goal else None
    return Order(
        run=request.part_id(index),
        nodes=workload.nodes,
        spares=workload.spares,
        replace_slow=workload.replace_slow,
        ranks_per_node=workload.ranks_per_node,
        launcher="plain" if workload.is_plain else workload.launcher,
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
        stdin=workload.stdin_in_code or "",
        results=dict(workload.results),
        keep=of_engine.pop("keep", list(workload.keep)),
        code=request.code,
        loader=bool(workload.data),
        silence_s=SPARED_SILENCE_S if workload.spares else SILENCE_S,
        data=staged_entries(request.staged, of_engine.pop("manifests", request.manifests)),
        **of_engine,
    )
