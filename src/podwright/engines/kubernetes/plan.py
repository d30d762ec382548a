"""From a request and what is known of the cluster to everything that is applied there. Pure."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from io import BufferedIOBase
from typing import TYPE_CHECKING, Any

from podwright.clients.kubernetes import names
from podwright.clients.kubernetes.manifest import yaml_text
from podwright.engines.base import Files, Job, Part, Request, order_of
from podwright.engines.kubernetes.checks import check
from podwright.engines.kubernetes.data import FORGETS
from podwright.engines.kubernetes.facts import KubernetesFacts
from podwright.engines.kubernetes.objects import run_objects
from podwright.engines.kubernetes.run_spec import RunSpec, image_of, run_spec_of
from podwright.engines.kubernetes.scripts import SCRIPTS
from podwright.engines.network import network_env
from podwright.engines.site import SITE
from podwright.engines.staged import cache_of

if TYPE_CHECKING:
    from podwright.spec import KubernetesScheduler, Pod

OBJECTS = "job/objects.yaml"
OPEN = (
    "you may not make NetworkPolicies in the namespace {namespace}: whoever reaches its Kubernetes pods reaches the "
    "ports of this run; `podwright pod grant` gives the right"
)
UNLOCKED = (
    "the Pod Security of the namespace {namespace} forbids IPC_LOCK, without which RDMA may find too little memory "
    "that stays in place; `podwright pod grant {pod} --namespace {namespace} --rdma` gives it"
)
GZIP = 16
"""Added to what zlib has for its window: a header as gzip writes it."""


@dataclass(frozen=True)
class KubernetesJob(Job):
    """A job with the objects of each of its parts, and what later clients need of it."""

    objects: Mapping[str, list[dict[str, Any]]] = field(default_factory=dict)
    site: Mapping[str, Any] = field(default_factory=dict)
    layer: tuple[str, BufferedIOBase] | None = field(default=None, repr=False)
    """An image and the code that is to be a layer of it."""


def plan_job(request: Request, pod: Pod, scheduler: KubernetesScheduler, facts: KubernetesFacts) -> KubernetesJob:
    """Decide everything that is applied for a job, or refuse all that cannot be at once."""
    check(request, pod, scheduler, facts)
    if request.code:
        file = names.CODE_FILE if facts.code_image else f"{names.WORK}/code.tar"
        request = replace(request, code={**request.code, "file": file})
    run = run_spec_of(request, pod, scheduler, facts)
    parts = []
    for index, (run_id, point) in enumerate(zip(request.part_ids(), request.points, strict=True)):
        order = order_of(request, index, **_of_engine(request, pod, scheduler, run, run_id))
        parts.append(Part(run_id, point or None, order))
    objects = {part.run_id: run_objects(run, part.run_id, part.order.text(), at) for at, part in enumerate(parts)}
    layer = None
    if facts.code_image and request.code_tar is not None:
        layer = (image_of(request.workload, scheduler), request.code_tar)
    return KubernetesJob(
        run_id=request.run_id,
        parts=tuple(parts),
        after=request.after,
        objects=objects,
        site=_site(run),
        layer=layer,
        gaps=tuple(_gaps(run, pod, scheduler)),
    )


def _gaps(run: RunSpec, pod: Pod, scheduler: KubernetesScheduler) -> Iterator[str]:
    """Yield what the target does not give the run, which goes on without it."""
    if lost := scheduler.nothing_kept():
        yield lost
    if not run.policy:
        yield OPEN.format(namespace=run.namespace)
    if run.data and not run.data.cache.claim:
        yield FORGETS
    if run.rdma and not run.lock_memory:
        yield UNLOCKED.format(pod=pod.name, namespace=run.namespace)


def _of_engine(request: Request, pod: Pod, scheduler: KubernetesScheduler, run: RunSpec, run_id: str) -> dict[str, Any]:
    """Return what the engine adds to an order; names of a node's own network mean nothing inside a container."""
    model = pod.model_of(pod.scheduler_hosts(scheduler)[0])
    env = network_env(request, pod, model)
    env.pop("NCCL_SOCKET_IFNAME", None)
    return {
        "engine": "kubernetes",
        "folder": names.run_folder(run_id) if run.claim else f"{names.WORK}/run",
        "scratch": f"{names.WORK}/scratch",
        "shared": run.claim is not None,
        "keep": list(request.workload.keep) if run.claim else None,
        "bind": "0.0.0.0",
        "mpi": ["/bin/sh", f"{names.JOB_FOLDER}/mpirun.sh"] if run.mpi else [],
        "manifests": f"{names.WORK}/",
        "cache": _cache(request, pod, run),
        "hardware": model.hardware() if request.workload.resources.gpus else None,
        "env": env,
    }


def _cache(request: Request, pod: Pod, run: RunSpec) -> dict[str, Any] | None:
    """Return where the pilots keep data, as the order says it."""
    cache = cache_of(request.staged, request.workload, pod)
    if cache is None or run.data is None:
        return None
    return {"path": f"{names.CACHE}/podwright", "bytes": run.data.cache.most_bytes}


def _site(run: RunSpec) -> dict[str, Any]:
    return {
        "namespace": run.namespace,
        "kind": run.kind.name,
        "image": run.image,
        "claim": run.claim,
        "uid": run.uid,
        "payload": {"name": names.payload_name(run.payload), "files": list(run.pilot_files)},
        "code": list(run.code),
        "data": run.data.maps if run.data else {},
        "parallel": run.placement.parallel,
    }


def render_job(job: KubernetesJob) -> Files:
    """Return the files of a job: orders, objects, the scripts, and what later clients need."""
    files: Files = {}
    for part in job.parts:
        files[f"{part.run_id}/job/order.json"] = part.order.text()
        files[f"{part.run_id}/{OBJECTS}"] = yaml_text(job.objects[part.run_id])
    files |= {f"{job.run_id}/job/{name}": text for name, text in SCRIPTS.items()}
    files[f"{job.run_id}/{SITE}"] = json.dumps(job.site, indent=2) + "\n"
    return files


def code_pieces(tar: BufferedIOBase) -> Iterator[bytes]:
    """Yield the code as it lies in ConfigMaps: compressed, always the same bytes, cut where a ConfigMap is full.

    What is far too much is compressed in a hurry, since it is only counted.
    """
    level = 1
    if sum(map(len, _compressed(tar, level))) < 2 * names.MAX_PIECES * names.PIECE_BYTES:
        level = 9
    held = bytearray()
    for packed in _compressed(tar, level):
        held += packed
        while len(held) > names.PIECE_BYTES:
            yield bytes(held[: names.PIECE_BYTES])
            del held[: names.PIECE_BYTES]
    yield bytes(held)


def _compressed(tar: BufferedIOBase, level: int) -> Iterator[bytes]:
    """Yield the tar as gzip writes it, without a time."""
    packer = zlib.compressobj(level, wbits=zlib.MAX_WBITS | GZIP)
    tar.seek(0)
    while piece := tar.read(names.PIECE_BYTES):
        yield packer.compress(piece)
    yield packer.flush()
