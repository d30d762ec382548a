"""What waits in a cluster and why: rows of a queue from the objects that a look at the cluster brought. Pure.

A row is what somebody submitted: a Job, or the MPIJob, JobSet or TrainJob that made it, or a Kubernetes pod of nobody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from podwright.clients.kubernetes import names
from podwright.clients.kubernetes.quantities import moment, number_of
from podwright.engines.kubernetes.resources import GPU, MIG, SHARED_GPU
from podwright.engines.kubernetes.states import is_launcher, kueue_reason, seen, waiting_words
from podwright.engines.usage import NodeUse, QueuedJob
from podwright.spec.hostlist import fold_hosts

Object = Mapping[str, Any]
PRODUCT = "nvidia.com/gpu.product"
"""The label by which nodes with the same GPUs are known; NVIDIA's feature discovery sets it."""
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"


@dataclass(frozen=True)
class SubmittedObject:
    """An object that makes Kubernetes pods, and its kind, which a list does not repeat in every item."""

    kind: str
    item: Object

    @property
    def uid(self) -> str:
        """Return what owner references call it."""
        return str(self.item["metadata"]["uid"])

    @property
    def labels(self) -> Mapping[str, str]:
        """Return its labels, of which it may have none."""
        return self.item["metadata"].get("labels") or {}


@dataclass(frozen=True)
class ClusterSnapshot:
    """The objects of a cluster that say what waits, as far as the user may see them."""

    jobs: tuple[SubmittedObject, ...] = ()
    pods: tuple[Object, ...] = ()
    nodes: tuple[Object, ...] = ()
    events: tuple[Object, ...] = ()
    workloads: tuple[Object, ...] = ()
    """Kueue's."""


@dataclass(frozen=True)
class _Owners:
    """Who made what: by the controller of each object, up to the one that somebody submitted."""

    makers: Mapping[str, str]

    def top(self, uid: str) -> str:
        """Return the submitted object above this one; itself where nobody made it."""
        while uid in self.makers:
            uid = self.makers[uid]
        return uid

    def gather(self, items: Iterable[Object], owner: Callable[[Object], str]) -> dict[str, list[Object]]:
        """Return the objects by the submitted object that they belong to."""
        groups: dict[str, list[Object]] = {}
        for item in items:
            groups.setdefault(self.top(owner(item)), []).append(item)
        return groups


def queue_rows(snapshot: ClusterSnapshot) -> list[QueuedJob]:
    """Return a row for each run of ours, and for all else that holds GPUs or waits for them."""
    known = {job.uid for job in snapshot.jobs}
    makers = {job.uid: _controller(job.item) for job in snapshot.jobs if _controller(job.item) in known}
    owners = _Owners(makers)
    pods = owners.gather(snapshot.pods, _controller)
    events = owners.gather(snapshot.events, lambda event: str(event["involvedObject"].get("uid", "")))
    workloads = owners.gather(snapshot.workloads, _controller)
    rows = []
    for job in snapshot.jobs:
        if job.uid in makers:
            continue
        row = _job_row(job, pods.get(job.uid, []), events.get(job.uid, []), workloads.get(job.uid, []))
        if row is not None:
            rows.append((job.labels.get(names.JOB, ""), row))
    return [*_folded(rows), *_pod_rows(snapshot.pods, owners, known)]


def _controller(item: Object) -> str:
    """Return the uid of the object that made this one; nothing where a person did."""
    for owner in item["metadata"].get("ownerReferences") or []:
        if owner.get("controller"):
            return str(owner["uid"])
    return ""


def _job_row(
    job: SubmittedObject, pods: Sequence[Object], events: Sequence[Object], workloads: Sequence[Object]
) -> QueuedJob | None:
    """Return None for what is over, and for what neither is a run of ours nor wants GPUs."""
    sizes = list(SIZES[job.kind](job.item["spec"]))
    gpus = sum(count * pod_gpus(spec) for count, spec in sizes)
    if not gpus and names.RUN not in job.labels:
        return None
    node_pods = [pod for pod in pods if not is_launcher(pod)]
    status = seen(job.item, node_pods, events)
    if status.state == "gone":
        return None
    metadata = job.item["metadata"]
    row = QueuedJob(
        job=metadata["name"],
        name=metadata["name"],
        user=metadata["namespace"],
        state="running",
        partition=str(job.labels.get(names.QUEUE, "")),
        nodes=sum(count for count, _ in sizes),
        gpus=gpus,
    )
    if status.state == "waiting":
        reason = status.reason
        if not status.held_for:
            reason = next(filter(None, map(kueue_reason, workloads)), reason)
        return replace(row, state="waiting", why=reason)
    return replace(row, hosts=_hosts(node_pods), starts_at=_began(node_pods), ends_at=_ends(job.item, node_pods))


def _folded(rows: Sequence[tuple[str, QueuedJob]]) -> Iterator[QueuedJob]:
    """Yield the rows; points of one matrix that wait for the same reason are one row, named by their parent."""
    groups: dict[tuple[str, str], list[QueuedJob]] = {}
    for parent, row in rows:
        # What runs keeps a row of its own, as does what belongs to no matrix.
        key = (parent, row.why)
        if row.state == "running" or not parent:
            key = (row.name, "")
        groups.setdefault(key, []).append(row)
    for (name, _), group in groups.items():
        if len(group) == 1:
            yield group[0]
        else:
            yield replace(group[0], job=name, name=name, tasks=len(group))


def _pod_rows(pods: Sequence[Object], owners: _Owners, jobs: set[str]) -> Iterator[QueuedJob]:
    """Yield a row for each Kubernetes pod with GPUs that no job made."""
    for pod in pods:
        gpus = pod_gpus(pod["spec"])
        if not gpus or owners.top(_controller(pod)) in jobs:
            continue
        metadata = pod["metadata"]
        reason = waiting_words(pod)
        row = QueuedJob(
            job=metadata["name"],
            name=metadata["name"],
            user=metadata["namespace"],
            state="running",
            partition="",
            nodes=1,
            gpus=gpus,
        )
        if reason:
            yield replace(row, state="waiting", why=reason)
        else:
            yield replace(row, hosts=_hosts([pod]), starts_at=_began([pod]), ends_at=_ends({}, [pod]))


# how many nodes and GPUs


def _job_sizes(spec: Object) -> Iterator[tuple[int, Object]]:
    yield int(spec.get("parallelism", 1)), spec["template"]["spec"]


def _jobset_sizes(spec: Object) -> Iterator[tuple[int, Object]]:
    for part in spec.get("replicatedJobs") or []:
        for count, pod_spec in _job_sizes(part["template"]["spec"]):
            yield int(part.get("replicas", 1)) * count, pod_spec


def _mpijob_sizes(spec: Object) -> Iterator[tuple[int, Object]]:
    """Yield the workers alone: the launcher is no node."""
    workers = spec.get("mpiReplicaSpecs", {}).get("Worker")
    if workers:
        yield int(workers.get("replicas", 1)), workers["template"]["spec"]


def _trainjob_sizes(spec: Object) -> Iterator[tuple[int, Object]]:
    """Yield what the TrainJob itself says; what it leaves out is its training runtime's."""
    trainer = spec.get("trainer") or {}
    container = {"resources": trainer.get("resourcesPerNode") or {}}
    yield int(trainer.get("numNodes", 1)), {"containers": [container]}


SIZES: Mapping[str, Callable[[Object], Iterator[tuple[int, Object]]]] = {
    "Job": _job_sizes,
    "JobSet": _jobset_sizes,
    "MPIJob": _mpijob_sizes,
    "TrainJob": _trainjob_sizes,
}
"""How many Kubernetes pods of which kind an object makes, by its own kind."""


def gpus_in(resources: Object) -> int:
    """Count GPUs as the cluster gives them away: whole ones, shares, and slices."""
    return sum(number_of(amount) for name, amount in resources.items() if _is_gpu(name))


def _is_gpu(name: str) -> bool:
    return name in (GPU, SHARED_GPU) or name.startswith(MIG)


def pod_gpus(spec: Object) -> int:
    """Count the GPUs of one Kubernetes pod; containers that run before the others take them over."""
    at_once = [_limits(container) for container in spec.get("containers") or []]
    before = [_limits(container) for container in spec.get("initContainers") or []]
    return max([sum(at_once), *before])


def _limits(container: Object) -> int:
    return gpus_in((container.get("resources") or {}).get("limits") or {})


# where and when


def _hosts(pods: Iterable[Object]) -> str:
    hosts = {pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")}
    return fold_hosts(sorted(hosts))


def _began(pods: Iterable[Object]) -> float | None:
    moments = [moment(pod["status"].get("startTime")) for pod in pods]
    return min(filter(None, moments), default=None)


def _ends(job: Object, pods: Iterable[Object]) -> float | None:
    """Return when the time of a job is over at the latest, where it or its Kubernetes pods have a deadline."""
    ends = [_deadline(item) for item in (job, *pods)]
    return max(filter(None, ends), default=None)


def _deadline(item: Object) -> float | None:
    began = moment(item.get("status", {}).get("startTime"))
    limit_s = item.get("spec", {}).get("activeDeadlineSeconds")
    if began is None or limit_s is None:
        return None
    return began + float(limit_s)


# nodes


def node_rows(snapshot: ClusterSnapshot) -> list[NodeUse]:
    """Return the nodes with the GPUs that Kubernetes pods hold on them; those of the control plane take no work."""
    used: dict[str, int] = {}
    busy: set[str] = set()
    for pod in snapshot.pods:
        host = pod["spec"].get("nodeName")
        if host:
            used[host] = used.get(host, 0) + pod_gpus(pod["spec"])
        if host and not _is_of_every_node(pod):
            busy.add(host)
    rows = []
    for node in snapshot.nodes:
        name = node["metadata"]["name"]
        if not _is_control_plane(node):
            rows.append(_node_row(node, used.get(name, 0), name in busy))
    return rows


def _node_row(node: Object, used: int, busy: bool) -> NodeUse:
    labels = node["metadata"].get("labels") or {}
    gpus = gpus_in(node["status"].get("allocatable") or {})
    partition = labels.get(PRODUCT, "gpu" if gpus else "cpu")
    row = NodeUse(partition, node["metadata"]["name"], "free", gpus, min(used, gpus))
    why = _why_away(node)
    if why:
        return replace(row, state="away", why=why)
    if gpus and used >= gpus:
        return replace(row, state="used")
    # A node without GPUs shares its cores: nobody says when it is full.
    if used or (busy and not gpus):
        return replace(row, state="part")
    return row


def _why_away(node: Object) -> str:
    """Return why a node takes no work; nothing where it does."""
    ready: Object = {}
    for condition in node["status"].get("conditions") or []:
        if condition["type"] == "Ready":
            ready = condition
    if ready.get("status") != "True":
        return str(ready.get("message") or "is not ready")
    if node["spec"].get("unschedulable"):
        return "takes no new work (cordoned)"
    return ""


def _is_control_plane(node: Object) -> bool:
    return any(taint["key"] == CONTROL_PLANE for taint in node["spec"].get("taints") or [])


def _is_of_every_node(pod: Object) -> bool:
    """Return whether it is a part of the node itself, such as a device plugin."""
    owners = pod["metadata"].get("ownerReferences") or []
    return any(owner["kind"] in ("DaemonSet", "Node") for owner in owners)
