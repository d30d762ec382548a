"""What a run is to Kubernetes: everything its objects say, before any of it is an object."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from podwright.clients.kubernetes.kinds import KINDS, ObjectKind
from podwright.clients.kubernetes.names import ACCOUNT, CLIQUE, NVLINK_DOMAIN, UNIT, USER, code_names
from podwright.design.topology import unit_size
from podwright.engines.kubernetes.data import RunData, run_data
from podwright.engines.kubernetes.facts import KubernetesFacts
from podwright.engines.kubernetes.resources import RdmaShare, limits, rdma_share
from podwright.engines.kubernetes.scripts import SCRIPTS

if TYPE_CHECKING:
    from podwright.engines.base import Request
    from podwright.spec import KubernetesScheduler, NodeModel, Pod, Workload

COUNTS = (1, 29)
"""The first release that counts replacements node by node, and lets side containers end after the others."""
SCRATCH_BYTES = 256 << 30
"""A run that fills the disk of a node takes others with it; one that needs more says so with `kubernetes.patch`."""
MARGIN_S = 300
"""Unpacking and clearing up, beside the time that the run itself may take."""


def kind_of(workload: Workload) -> ObjectKind:
    """Return the kind of object that a run becomes.

    An MPI program needs hosts that it can reach by ssh, which an MPIJob gives it and no other does.
    """
    if workload.launcher == "mpi":
        return KINDS["mpi"]
    return KINDS[workload.kubernetes.kind]


@dataclass(frozen=True)
class Mount:
    """A storage system of the pod, as a claim of the same name brings it into the container."""

    claim: str
    path: str
    read_only: bool


@dataclass(frozen=True)
class PodPlacement:
    """Which nodes a run may go to, who places it there, and how many points of a sweep at once."""

    scheduler: str | None = None
    selector: dict[str, str] = field(default_factory=dict)
    tolerations: tuple[dict[str, str], ...] = ()
    pull_secrets: tuple[str, ...] = ()
    parallel: int | None = None
    rdma: RdmaShare = field(default_factory=RdmaShare)


@dataclass(frozen=True)
class RunSpec:
    """A run with everything decided that its objects say."""

    parent: str
    name: str
    namespace: str
    counted: bool
    """Kubernetes counts by itself how often the place of each node was filled."""
    nodes: int
    ranks_per_node: int
    kind: ObjectKind
    image: str
    openshift: bool
    claim: str | None
    limits: dict[str, str | int]
    rdma: bool
    lock_memory: bool
    """The capability IPC_LOCK may be asked for here."""
    shm_bytes: int | None
    grace_s: int
    deadline_s: int | None
    after: str | None
    """The run that must succeed first."""
    queue: str | None
    priority: str | None
    near: tuple[str, ...]
    """Labels of nodes: where these are alike its Kubernetes pods are near each other. The narrowest comes first."""
    secrets: tuple[str, ...]
    mounts: tuple[Mount, ...]
    payload: str
    pilot_files: tuple[str, ...]
    code: tuple[str, ...]
    """ConfigMaps that hold it, piece by piece."""
    uid: int | None
    """Who the processes are; None where the cluster decides."""
    named_uid: int | None
    """The same, where it must have a name: sshd lets nobody in who has none."""
    account: str | None
    policy: bool
    """A NetworkPolicy keeps others from the run's nodes."""
    placement: PodPlacement
    limit_bytes: int = SCRATCH_BYTES
    """Of each folder that is a Kubernetes pod's own and on the node's disk."""
    data: RunData | None = None
    """What the pilots bring to the nodes."""
    training_runtime: str = ""
    patch: dict[str, Any] = field(default_factory=dict)

    @property
    def mpi(self) -> bool:
        """Return whether it is an MPI program."""
        return self.kind is KINDS["mpi"]


def near_labels(pod: Pod) -> tuple[str, ...]:
    """Return the labels by which nodes of a pod are near each other, the narrowest first."""
    has_domains = any(group.model.nvlink_domain for group in pod.nodes)
    labels = {
        CLIQUE: has_domains,
        NVLINK_DOMAIN: has_domains,
        UNIT: unit_size(pod) is not None,
    }
    return tuple(label for label, is_there in labels.items() if is_there)


def run_spec_of(request: Request, pod: Pod, scheduler: KubernetesScheduler, facts: KubernetesFacts) -> RunSpec:
    """Return what a request is to this cluster, with every default decided."""
    workload, openshift = request.workload, scheduler.dialect == "openshift"
    model = pod.model_of(pod.scheduler_hosts(scheduler)[0])
    locks = workload.resources.rdma and facts.pod_security not in ("baseline", "restricted")
    return RunSpec(
        parent=request.run_id,
        name=workload.name,
        namespace=namespace_of(workload, scheduler, facts.home),
        counted=facts.version >= COUNTS,
        nodes=workload.allocated_nodes,
        ranks_per_node=workload.ranks_per_node,
        kind=kind_of(workload),
        image=facts.code_image or image_of(workload, scheduler),
        openshift=openshift,
        claim=scheduler.claim,
        limits=limits(workload, facts, model),
        rdma=workload.resources.rdma,
        lock_memory=locks,
        shm_bytes=workload.resources.shm_bytes,
        grace_s=int(workload.grace_s) + 30,
        deadline_s=_deadline_s(workload),
        after=request.after,
        queue=workload.kubernetes.queue,
        priority=workload.kubernetes.priority,
        near=near_labels(pod) if workload.allocated_nodes > 1 else (),
        secrets=workload.secrets,
        mounts=tuple(mounts(request, pod)),
        payload=facts.payload,
        pilot_files=("pilot.pyz", *SCRIPTS),
        code=() if facts.code_image else tuple(code_names(facts.code, facts.code_pieces)),
        uid=None if openshift else USER,
        named_uid=facts.uid if openshift else USER,
        account=ACCOUNT if openshift and locks else None,
        policy=facts.policies,
        placement=_placement(workload, facts, model),
        data=run_data(request, pod),
        training_runtime=workload.kubernetes.training_runtime,
        patch=workload.kubernetes.patch,
    )


def _placement(workload: Workload, facts: KubernetesFacts, model: NodeModel) -> PodPlacement:
    options = workload.kubernetes
    return PodPlacement(
        scheduler=options.scheduler,
        selector=dict(options.node_selector),
        tolerations=tuple(toleration.as_object() for toleration in options.tolerations),
        pull_secrets=options.pull_secrets,
        parallel=options.parallel,
        rdma=rdma_share(workload, facts, model),
    )


def namespace_of(workload: Workload, scheduler: KubernetesScheduler, home: str) -> str:
    """Return the namespace of a run: the workload's, else the scheduler's, else that of the user's context."""
    return workload.kubernetes.namespace or scheduler.namespace or home


def image_of(workload: Workload, scheduler: KubernetesScheduler) -> str:
    """Return the image of a run: the workload's own, else the scheduler's."""
    return workload.image or scheduler.image or ""


def _deadline_s(workload: Workload) -> int | None:
    """Return how long a Kubernetes pod may run, not wait; the pilot itself is stricter."""
    if workload.time_limit_s is None:
        return None
    return int(workload.time_limit_s + workload.join_timeout_s + workload.grace_s) + MARGIN_S


def mounts(request: Request, pod: Pod) -> list[Mount]:
    """Return the storage that the workload names a path in; only what holds checkpoints is mounted for writing."""
    mounted = []
    checkpoint = request.workload.checkpoint
    for storage in pod.storage:
        inside = [path for _, path in request.target_paths() if storage.mount and is_in(path, storage.mount)]
        writes = storage.mount is not None and is_in(checkpoint, storage.mount)
        if storage.mount and (inside or writes):
            mounted.append(Mount(storage.name, storage.mount, not writes))
    return mounted


def is_in(path: str, folder: str) -> bool:
    """Return whether a path is a folder or below it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")
