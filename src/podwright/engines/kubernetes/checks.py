"""What a cluster cannot give a run, all of it at once, before anything is started."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from podwright.engines.kubernetes import resources
from podwright.engines.kubernetes.facts import Claim, Facts
from podwright.engines.kubernetes.names import MOST_PIECES, PIECE_BYTES
from podwright.engines.kubernetes.resources import Problem
from podwright.engines.kubernetes.shape import COUNTS, mounts, namespace_of
from podwright.spec.problems import refuse, short
from podwright.spec.quantity import format_size

if TYPE_CHECKING:
    from podwright.engines.base import Request
    from podwright.spec import KubernetesScheduler, Pod


def check(request: Request, pod: Pod, scheduler: KubernetesScheduler, facts: Facts) -> None:
    """Refuses what cannot run there: first what keeps everything from running, then the workload's own fields."""
    workload, namespace = request.workload, namespace_of(request.workload, scheduler, facts.home)
    if not facts.namespace:
        hint = f"an administrator makes it: `kubectl create namespace {namespace}`"
        raise refuse(f"there is no namespace {namespace}", hint=hint, field="kubernetes.namespace")
    if facts.refused:
        words = f"you may not {', '.join(facts.refused)} in the namespace {namespace}"
        hint = f"an administrator grants it: `podwright pod grant {pod.name} --namespace {namespace}`"
        raise refuse(words, hint=hint, exit_code=3)
    model = pod.model_of(pod.scheduler_hosts(scheduler)[0])
    found = [
        *_image(request, scheduler),
        *_code(facts),
        *_queue(request, facts),
        *_mpi(request, facts),
        *_claims(request, pod, scheduler, facts),
        *resources.problems(workload, facts, model),
    ]
    if found:
        raise workload.refusal(found)


def _image(request: Request, scheduler: KubernetesScheduler) -> Iterator[Problem]:
    workload = request.workload
    if workload.image or scheduler.image:
        return
    if workload.build:
        hint = "make it with `podwright image build` and `podwright image push`, then name it with `image:`"
        yield "build", "the image is not in a registry yet, from where Kubernetes could fetch it", hint
    else:
        hint = "name one with `image:` here, or of the scheduler in the pod file"
        yield "image", "is missing: on Kubernetes everything runs in an image", hint


def _code(facts: Facts) -> Iterator[Problem]:
    if facts.code_pieces > MOST_PIECES:
        size, most = format_size(facts.code_bytes), format_size(MOST_PIECES * PIECE_BYTES)
        hint = "leave things out with .podwrightignore, put them into the image, or give data as a path on a claim"
        yield "code", f"takes {size} when it is compressed; at most {most} travel with a run on Kubernetes", hint


def _queue(request: Request, facts: Facts) -> Iterator[Problem]:
    queue = request.workload.kubernetes.queue
    if queue is None:
        return
    if not facts.has("kueue.x-k8s.io"):
        yield "kubernetes.queue", "the cluster has no Kueue, which keeps queues", "leave it out to run at once"
    elif facts.queues is not None and queue not in facts.queues:
        hint = f"queues are {', '.join(facts.queues)}" if facts.queues else "it has none"
        yield "kubernetes.queue", f'the namespace has no queue "{short(queue)}"', hint


def _mpi(request: Request, facts: Facts) -> Iterator[Problem]:
    if request.workload.launcher != "mpi":
        return
    if not facts.has("kubeflow.org"):
        hint = "install it, or use `launcher: torchrun` or `ranks`"
        yield "launcher", "the cluster has no MPI Operator (MPIJob, kubeflow.org/v2beta1)", hint


def _claims(request: Request, pod: Pod, scheduler: KubernetesScheduler, facts: Facts) -> Iterator[Problem]:
    """The scheduler's own claim is the site's to mend, that of a storage system may be the workload's."""
    if scheduler.claim is None and facts.version < COUNTS:
        version = ".".join(map(str, facts.version))
        words = f"Kubernetes {version} cannot carry a record without a volume claim"
        raise refuse(words, hint="name one with `claim:` of the scheduler in the pod file")
    if facts.claims is None:
        return
    if scheduler.claim:
        claim = facts.claims.get(scheduler.claim)
        for words in claim_problems(scheduler.claim, claim, True, request.workload.nodes):
            raise refuse(words, hint="`claim:` of the scheduler in the pod file names it")
    for mount in mounts(request, pod):
        field = next(
            (f"data.{name}" for name, path in request.data.items() if path.startswith(mount.path)), "checkpoint"
        )
        claim = facts.claims.get(mount.claim)
        for words in claim_problems(mount.claim, claim, not mount.read_only, request.workload.nodes):
            yield field, words, f"`podwright pod grant {pod.name}` makes the claims of the pod's storage"


def claim_problems(name: str, claim: Claim | None, writes: bool, nodes: int) -> Iterator[str]:
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
