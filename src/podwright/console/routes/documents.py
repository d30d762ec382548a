"""The documents of the API, as types: what a client may rely on. More keys may stand beside these."""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict


class RunDocument(TypedDict):
    """A run, as `ps --json` and `show --json` have it; the latter with more."""

    id: str
    name: str
    parent: str | None
    matrix: dict[str, Any] | None
    target: str
    state: Literal["pending", "starting", "running", "succeeded", "failed", "cancelled", "lost"]
    reason: str
    exit_code: int | None
    attempts: int
    nodes: int
    hosts: list[str]
    world_size: int
    created_at: str
    started_at: str | None
    ended_at: str | None
    duration_s: float | None
    time_to_train_s: float | None
    results: dict[str, float]
    progress: dict[str, Any] | None
    cost: dict[str, Any] | None
    user: str | None
    team: str | None
    tags: list[str]
    note: str
    folder: str
    points: NotRequired[list[dict[str, Any]]]
    bytes: NotRequired[int]


class OverviewDocument(TypedDict):
    """How a home does: what is not over, the last day and week by state, the week's costs by currency."""

    open: int
    day: dict[str, int]
    week: dict[str, int]
    costs: dict[str, float]


class SeriesDocument(TypedDict):
    """What a run's charts are drawn of, on one axis of seconds since its start."""

    attempts: list[dict[str, Any]]
    charts: list[dict[str, Any]]
    curves: list[dict[str, Any]]


class LineDocument(TypedDict):
    """A line of a log, as `logs --json` has it."""

    t: float
    node: int
    rank: int | None
    stream: str
    text: str


class HitDocument(TypedDict):
    """A line that has what was looked for, and where it begins."""

    offset: int
    text: str


class SearchDocument(TypedDict):
    """One turn of a search in a log; `next` is where the next goes on."""

    hits: list[HitDocument]
    next: int | None
    size: int


class FileDocument(TypedDict):
    """A file or folder of a run."""

    name: str
    path: str
    is_folder: bool
    bytes: int
    modified_at: float


class FilesDocument(TypedDict):
    """What is in a folder of a run."""

    path: str
    files: list[FileDocument]
    left_out: int


class DiffDocument(TypedDict):
    """What differs between two runs, as `diff --json` has it."""

    differences: list[dict[str, Any]]


class TaggedDocument(TypedDict):
    """Runs, and the tags that they have now."""

    runs: list[str]
    tags: list[str]


class NotedDocument(TypedDict):
    """A run with its note."""

    run: str
    note: str


class CancelledDocument(TypedDict):
    """Runs that were asked to end; `was_over` are those that had."""

    runs: list[str]
    was_over: list[str]


class StartedDocument(TypedDict):
    """A run that was started from another's record."""

    id: str


class ComparisonDocument(TypedDict):
    """A side against the first, as `compare --json` has it."""

    ratio: float | None
    interval: list[float] | None
    n: list[int]
    p: float | None
    verdict: Literal["same", "different", "not proven"]
    margin: float
    needed: int | None
    metric: str
    causes: list[dict[str, Any]]
    sides: list[dict[str, Any]]


class SuiteDocument(TypedDict):
    """A suite's newest round, as `bench run --json` has it."""

    suite: str
    round: int
    cells: list[dict[str, Any]]


class GateDocument(TypedDict):
    """What the gate says of a suite, as `bench gate --json` has it."""

    suite: str
    verdict: str
    rounds: int
    needed: int | None
    metric: str
    direction: str
    margin: float
    findings: list[dict[str, Any]]
    broken: list[dict[str, Any]]
    accepted: list[dict[str, Any]]
    cells: list[dict[str, Any]]


class ScalingDocument(TypedDict):
    """How a workload scales, as `bench scale --json` has it."""

    workload: str
    target: str
    kind: str
    sizes: list[dict[str, Any]]
    no_prediction_beyond: int | None


class QueueDocument(TypedDict):
    """A target, as `queue --json` has it."""

    target: str
    error: str | None
    partitions: list[dict[str, Any]]
    nodes_away: list[dict[str, Any]]
    jobs: list[dict[str, Any]]


class PodDocument(TypedDict):
    """A pod that is known here, or why its file says nothing."""

    name: str
    error: str | None
    nodes: int
    gpus: int
    schedulers: list[str]


class LiveDocument(TypedDict):
    """What a pod does now, as `top POD --json` has it."""

    pod: str
    nodes: list[dict[str, Any]]
    jobs: dict[str, int]
    states: dict[str, int]
    critical: int
    warnings: int


class NodeDocument(TypedDict):
    """A node: its cables by design, the newest runs it took part in, and its share of the pod's last failures."""

    pod: str
    host: str
    cables: list[dict[str, Any]]
    runs: list[dict[str, Any]]
    failures: dict[str, Any] | None


class SpendingDocument(TypedDict):
    """What runs since a time cost, divided by field and by the classes of their time."""

    since: str
    totals: dict[str, float]
    without_price: int
    by: dict[str, list[dict[str, Any]]]


class AlertDocument(TypedDict):
    """What fires, as `alerts --json` has it."""

    name: str
    severity: str
    since: str
    host: str | None
    run: str | None
    reason: str
    cause: str
    command: str


class CatalogDocument(TypedDict):
    """Datasets and selections, as `data ls --json` has them."""

    datasets: list[dict[str, Any]]
    selections: list[dict[str, Any]]


class StatisticsDocument(TypedDict):
    """What the labels of a dataset hold, as `data stats --json` has it; nothing is counted for it."""

    dataset: str
    images: int
    broken: int
    classes: list[dict[str, Any]]


class DataDiffDocument(TypedDict):
    """How another selection differs, in samples, as `data diff --json` has it."""

    added: int
    removed: int
    kept: int
    distance: float | None


class PolicyDocument(TypedDict):
    """A policy and where it stands, as `data policy ls --json` has it."""

    name: str
    dataset: str
    where: str
    action: str
    matched: int
    done: int
    failed: int
    state: str
    why: str | None


class ChangesDocument(TypedDict):
    """Runs that changed behind a place in the feed."""

    id: str
    runs: list[str]
    reset: bool


class TokenDocument(TypedDict):
    """A token; `token` is its text, told once."""

    id: str
    name: str
    rights: list[str]
    ends_at: str
    token: NotRequired[str]


class ActDocument(TypedDict):
    """A line of the audit."""

    t: str
    who: str
    address: str
    what: str
    subject: dict[str, Any]
    outcome: str
