"""What a cluster cannot give a run, all of it at once, before anything is started."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from podwright.clients.kubernetes.kinds import KINDS
from podwright.clients.kubernetes.names import MAX_PIECES, PIECE_BYTES
from podwright.clients.kubernetes.paths import GROUPS
from podwright.engines.kubernetes import resources
from podwright.engines.kubernetes.data import MAX_MANIFEST_PIECES
from podwright.engines.kubernetes.facts import ClaimFacts, KubernetesFacts
from podwright.engines.kubernetes.objects import PATCHED
from podwright.engines.kubernetes.resources import Problem
from podwright.engines.kubernetes.run_spec import COUNTS, is_in, kind_of, mounts, namespace_of
from podwright.spec.problems import refuse, short
from podwright.theme.words import format_size

if TYPE_CHECKING:
    from podwright.engines.base import Request
    from podwright.spec import KubernetesScheduler, Pod

LESS_CODE = "leave things out with .podwrightignore, put them into the image, or give data as a path on a claim"


def check(request: Request, pod: Pod, scheduler: KubernetesScheduler, facts: KubernetesFacts) -> None:
    """Refuse what cannot run there: first what keeps everything from running, then the workload's own fields."""
    workload, namespace = request.workload, namespace_of(request.workload, scheduler, facts.home)
    if not facts.namespace:
        hint = f"an administrator makes it: `kubectl create namespace {namespace}`"
        raise refuse(f"there is no namespace {namespace}", hint=hint, field="kubernetes.namespace")
    if facts.refused:
        message = f"you may not {', '.join(facts.refused)} in the namespace {namespace}"
        hint = f"an administrator grants it: `podwright pod grant {pod.name} --namespace {namespace}`"
        raise refuse(message, hint=hint, exit_code=3)
    model = pod.model_of(pod.scheduler_hosts(scheduler)[0])
    problems = [
        *_image(request, scheduler),
        *_code(facts),
        *_queue(request, facts),
        *_scheduler(request, facts),
        *_kind(request, scheduler, facts),
        *_claims(request, pod, scheduler, facts),
        *_staged(request, pod, facts),
        *resources.problems(workload, facts, model),
    ]
    if problems:
        raise workload.refusal(problems)


def _image(request: Request, scheduler: KubernetesScheduler) -> Iterator[Problem]:
    workload = request.workload
    if workload.image or (scheduler.image and not workload.build):
        return
    if workload.build:
        hint = "make it with `podwright image build` and `podwright image push`, then name it with `image:`"
        yield "build", "the image is not in a registry yet, from where Kubernetes could fetch it", hint
    else:
        hint = "name one with `image:` here, or of the scheduler in the pod file"
        yield "image", "is missing: on Kubernetes everything runs in an image", hint


def _code(facts: KubernetesFacts) -> Iterator[Problem]:
    """Yield why code cannot travel: what ConfigMaps do not hold becomes a layer of the image, in its registry."""
    if facts.code_pieces > MAX_PIECES and not facts.code_image:
        size, most = format_size(facts.code_bytes), format_size(MAX_PIECES * PIECE_BYTES)
        why = facts.code_refused or "its registry was not asked"
        message = f"takes {size} when it is compressed; more than {most} travels as a layer of the image: {why}"
        yield "code", message, LESS_CODE


def _queue(request: Request, facts: KubernetesFacts) -> Iterator[Problem]:
    queue = request.workload.kubernetes.queue
    if queue is None:
        return
    if not facts.has("kueue.x-k8s.io"):
        yield "kubernetes.queue", "the cluster has no Kueue, which keeps queues", "leave it out to run at once"
    elif facts.queues is not None and queue not in facts.queues:
        hint = "it has none"
        if facts.queues:
            hint = f"queues are {', '.join(facts.queues)}"
        yield "kubernetes.queue", f'the namespace has no queue "{short(queue)}"', hint


def _scheduler(request: Request, facts: KubernetesFacts) -> Iterator[Problem]:
    options = request.workload.kubernetes
    if options.scheduler is None:
        return
    if not facts.has(GROUPS["PodGroup"].partition("/")[0]):
        yield "kubernetes.scheduler", f"the cluster has no {options.scheduler}", "leave it out"
    if options.queue:
        yield "kubernetes.scheduler", "Kueue places what stands in a queue", "leave `queue` or `scheduler` out"


def _kind(request: Request, scheduler: KubernetesScheduler, facts: KubernetesFacts) -> Iterator[Problem]:
    workload = request.workload
    kind, asked = kind_of(workload), workload.kubernetes.kind
    if workload.launcher == "mpi" and asked != "job":
        hint = f"leave it out, or use `launcher: torchrun` or `ranks` for a {KINDS[asked].name}"
        yield "kubernetes.kind", "an MPI program runs as an MPIJob", hint
    elif kind.made_by and kind.version not in facts.kinds:
        other = "leave it out for a Job"
        if kind.field == "launcher":
            other = "use `launcher: torchrun` or `ranks`"
        yield kind.field, f"the cluster has no {kind.made_by} ({kind.name}, {kind.version})", f"install it, or {other}"
    elif kind is KINDS["trainjob"]:
        yield from _train_job(request, scheduler)


def _train_job(request: Request, scheduler: KubernetesScheduler) -> Iterator[Problem]:
    """Yield what a TrainJob cannot do: to its runtime's Kubernetes pods only what may be patched is added."""
    options = request.workload.kubernetes
    if scheduler.claim is None:
        hint = "name one with `claim:` of the scheduler in the pod file, or use `kind: jobset`"
        yield "kubernetes.kind", "a TrainJob has no side container, so that its record needs a volume claim", hint
    if options.scheduler:
        yield "kubernetes.scheduler", "a TrainJob is placed by whom its training runtime names", "use `kind: jobset`"
    if options.priority:
        yield "kubernetes.priority", "a TrainJob has the priority of its training runtime", "use `kind: jobset`"
    beyond = sorted(set(options.patch.get("spec", {})) - set(PATCHED))
    if beyond:
        hint = f"it lets these be patched: {', '.join(PATCHED)}"
        yield "kubernetes.patch", f"a TrainJob does not let {', '.join(beyond)} be patched", hint


def _claims(request: Request, pod: Pod, scheduler: KubernetesScheduler, facts: KubernetesFacts) -> Iterator[Problem]:
    """Yield what claims lack: the scheduler's own is the site's to mend, a storage system's may be the workload's."""
    if scheduler.claim is None and facts.version < COUNTS:
        version = ".".join(map(str, facts.version))
        message = f"Kubernetes {version} cannot carry a record without a volume claim"
        raise refuse(message, hint="name one with `claim:` of the scheduler in the pod file")
    if facts.claims is None:
        return
    if scheduler.claim:
        claim = facts.claims.get(scheduler.claim)
        for problem in claim_problems(scheduler.claim, claim, True, request.workload.allocated_nodes):
            raise refuse(problem, hint="`claim:` of the scheduler in the pod file names it")
    for mount in mounts(request, pod):
        field = next(
            (f"data.{name}" for name, path in request.target_paths() if path.startswith(mount.path)),
            "checkpoint",
        )
        claim = facts.claims.get(mount.claim)
        for problem in claim_problems(mount.claim, claim, not mount.read_only, request.workload.allocated_nodes):
            yield field, problem, f"`podwright pod grant {pod.name}` makes the claims of the pod's storage"


def _staged(request: Request, pod: Pod, facts: KubernetesFacts) -> Iterator[Problem]:
    """Yield why data cannot be brought to the nodes; the claim of the cache is the site's to mend."""
    folders = [mount.path for mount in mounts(request, pod)]
    for name, given in request.staged.items():
        for path in given.paths:
            if not any(is_in(path, folder) for folder in folders):
                hint = "scan it where the pod's `storage` mounts it, or behind an s3:// or http:// address"
                yield f"data.{name}", f"{path} is on no storage of the pod that containers see", hint
    size, most = sum(len(given.manifest) for given in request.staged.values()), MAX_MANIFEST_PIECES * PIECE_BYTES
    if size > most:
        message = f"the list of its files takes {format_size(size)}; {format_size(most)} travel to Kubernetes"
        yield "data", message, "choose fewer samples, or pack them into tar shards"
    if request.staged and pod.cache.claim and facts.claims is not None:
        claim = facts.claims.get(pod.cache.claim)
        for problem in claim_problems(pod.cache.claim, claim, True, request.workload.allocated_nodes):
            raise refuse(problem, hint="`claim:` of the `cache` in the pod file names it")


def claim_problems(name: str, claim: ClaimFacts | None, writes: bool, nodes: int) -> Iterator[str]:
    """Yield what keeps a run of so many nodes from using this claim."""
    if claim is None:
        yield f"the namespace has no volume claim {name}"
        return
    if claim.phase == "Lost":
        yield f"the volume of the claim {name} is gone"
    elif claim.words:
        yield f"the claim {name} is not bound: {claim.words}"
    many = ("ReadWriteMany",) if writes else ("ReadWriteMany", "ReadOnlyMany")
    if nodes > 1 and not set(many) & set(claim.modes):
        modes = ", ".join(claim.modes)
        yield f"the claim {name} can be used on one node only ({modes}); {nodes} nodes need ReadWriteMany"
