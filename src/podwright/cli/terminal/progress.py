"""What is known of a run while it is followed: changes folded into figures and lines worth printing; draws nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from podwright import runs
from podwright.cli.terminal import figures
from podwright.cli.terminal.machines import GpuView, NodeView
from podwright.pilot.protocol import node_names

if TYPE_CHECKING:
    from podwright.runs import Record
    from podwright.runs.events import AttemptStarted, DeviceSeen, Event, FilesKept, GoalReached, RankHung, Sample

WordAndText = tuple[str, str]


class Progress:
    """One run as its followers see it. `goal` is the workload's, None when it has none."""

    def __init__(self, record: Record, goal: Mapping[str, Any] | None = None) -> None:
        self.record = record
        self.goal = goal
        self.nodes: dict[int, NodeView] = {}
        self.values: dict[str, float] = {}
        self._told: dict[int, dict[str, float]] = {}
        """By rank: what it told last."""
        self._ranks: dict[int, tuple[int, str]] = {}
        """By rank: its node and its GPU."""
        self.joined = 0
        self._staging: dict[int, tuple[float, float]] = {}
        """By node: the bytes of its data that are there, and all of them."""

    def take(self, record: Record, events: Iterable[Event], samples: Iterable[Sample]) -> list[WordAndText]:
        """Fold one change in; return the (word, text) lines that a reader should not miss."""
        self.record = record
        for sample in samples:
            self.node(sample.node).take(sample.values)
        return list(filter(None, map(self._event, events)))

    def node(self, number: int) -> NodeView:
        """Return the view of a node, made when it is first heard of."""
        return self.nodes.setdefault(number, NodeView(number))

    def _event(self, event: Event) -> WordAndText | None:
        kinds = runs.events
        if isinstance(event, kinds.PilotStarted):
            self.node(event.node).begin(event.host, event.memory_bytes, event.gpus)
        elif isinstance(event, kinds.Joined):
            self.joined += 1
        elif isinstance(event, kinds.RankStarted):
            self._ranks[event.rank] = (event.node, "" if event.gpu is None else str(event.gpu))
        elif isinstance(event, kinds.StagingProgress):
            self._staging[event.node] = (event.size_bytes or 0.0, event.of or 0.0)
        elif isinstance(event, kinds.AttemptStarted):
            self.joined = 0
            self._staging.clear()
        elif isinstance(event, kinds.ResultTold):
            self.values.update(event.values)
            self._told.setdefault(event.rank, {}).update(event.values)
            self._ranks.setdefault(event.rank, (event.node, ""))
        line_of = _LINES.get(event.kind)
        return line_of(self, event) if line_of else None

    def gpus(self) -> list[GpuView]:
        """Return all GPUs of the run, node by node."""
        views = []
        for number in sorted(self.nodes):
            views += self.nodes[number].gpus()
        return views

    def label(self, number: int) -> str:
        """Return what a node is called."""
        hosts = {node.number: node.host for node in self.nodes.values()}
        if self.record.hosts:
            hosts = dict(enumerate(self.record.hosts))
        return node_names(hosts).get(number, f"node{number}")

    def share(self) -> float | None:
        """Return how much is done, 0 to 1, as the program tells it."""
        return self.record.progress["share"] if self.record.progress else None

    def told_on(self, node: int) -> Mapping[str, float]:
        """Return what the lowest rank of a node told last."""
        ranks = [rank for rank, at in self._ranks.items() if at[0] == node and rank in self._told]
        return self._told[min(ranks)] if ranks else {}

    def told_with(self, node: int, gpu: str) -> Mapping[str, float]:
        """Return what the rank with this GPU told last."""
        ranks = [rank for rank, at in self._ranks.items() if at == (node, gpu) and rank in self._told]
        return self._told[min(ranks)] if ranks else {}

    def how_far(self) -> str:
        """Return how far the program says it is."""
        return figures.reached(self.record.progress)

    def quality(self) -> str:
        """Return the loss and what the goal is about, else the first two other results."""
        names = ["loss", self.goal["metric"]] if self.goal else list(self.values)
        return figures.results({name: self.values[name] for name in names if name in self.values}, limit=3)

    def news(self) -> str:
        """Return how far the run is and how good, in one line; of one that waits, why."""
        if self.record.state == "pending":
            return self.record.reason or ""
        return "  ".join(filter(None, (self.staging(), self.how_far(), self.eta(), self.rate(), self.quality())))

    def eta(self) -> str:
        """Return `ETA 3m 20s`, or nothing where nobody can say."""
        return figures.time_left(self.record.progress)

    def rate(self) -> str:
        """Return how fast it goes, or nothing before that is known."""
        return figures.rate(self.record.progress)

    def staging(self) -> str:
        """Return how much of the data of all nodes is there, while it is brought to them."""
        if not self._staging:
            return ""
        here, of = (sum(sizes) for sizes in zip(*self._staging.values(), strict=True))
        return f"data {figures.size(here)} of {figures.size(of)}"

    def waiting_for(self) -> str:
        """Say what a run that has no progress yet is waiting for."""
        if self._staging:
            return self.staging()
        if self.joined:
            return f"{self.joined} of {self.record.nodes} nodes joined"
        return self.record.reason or ""


def goal_text(goal: Mapping[str, Any]) -> str:
    """Return `>= 0.65` or `<= 3.2`."""
    least = goal.get("at_least")
    if least is not None:
        return f">= {figures.value(least)}"
    return f"<= {figures.value(goal.get('at_most'))}"


def _go(progress: Progress, event: AttemptStarted) -> WordAndText:
    proven = f"world size {event.world_size} proven in {figures.duration(event.took_s)}"
    if event.attempt in (None, 1):
        return "joined", proven
    return "joined", f"{proven}, attempt {event.attempt}"


def _hang(progress: Progress, event: RankHung) -> WordAndText:
    # The leader may tell of another node's rank.
    number = event.node if event.at_node is None else event.at_node
    return "hang", f"rank {event.rank} on {progress.label(number)} was silent for {figures.duration(event.silent_s)}"


def _goal(progress: Progress, event: GoalReached) -> WordAndText:
    wanted = f" {goal_text(progress.goal)}" if progress.goal else ""
    return "goal", f"{event.metric} {figures.value(event.value)}{wanted}"


def _seen(progress: Progress, event: DeviceSeen) -> WordAndText:
    device = f" {event.device}" if event.device else ""
    return "seen", f"{progress.label(event.node)}{device}: {event.text or event.what}"


def kept_text(run_id: str, event: FilesKept) -> str:
    """Return what is kept of the folder that ranks started in, and what of it is not, a line each."""
    lines = []
    if event.files:
        size = figures.size(event.size_bytes or 0)
        lines.append(f"{figures.count(event.files, 'file')}, {size}, as results/workdir: `podwright pull {run_id}`")
    lines += [f"not {row.get('path')}: {row.get('why')}" for row in event.left]
    if event.left_count > len(event.left):
        lines.append(f"nor {event.left_count - len(event.left)} more")
    return "\n".join(lines)


# What a follower is told at once; all other kinds are in the record and the report.
_LINES: dict[str, Callable[[Progress, Any], WordAndText]] = {
    "go": _go,
    "retry": lambda progress, event: ("retry", f"attempt {event.attempt}: {event.why}"),
    "hang": _hang,
    "slow": lambda progress, event: ("slow", event.text),
    "goal": _goal,
    "workdir": lambda progress, event: ("kept", kept_text(progress.record.id, event)),
    "seen": _seen,
    "fenced": lambda progress, event: ("fenced", f"{progress.label(event.node)} gave way to a newer attempt"),
    "requeued": lambda progress, event: ("waiting", f"the run {event.why}"),
    "alone": lambda progress, event: ("waiting", f"{progress.label(event.node)}: {event.why or ''}"),
    "given_back": lambda progress, event: ("waiting", f"{progress.label(event.node)}: {event.why or ''}"),
}
