"""The objects of a run: an Indexed Job with its Service, or an MPIJob; its order as ConfigMap, its token as Secret."""

from __future__ import annotations

from typing import Any

from podwright.engines.kubernetes import names
from podwright.engines.kubernetes.merge import merged
from podwright.engines.kubernetes.shape import Shape
from podwright.engines.kubernetes.template import Object, launcher_template, node_template

PASSWD = """\
root:x:0:0:root:/root:/bin/sh
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
podwright:x:{uid}:{gid}:podwright:{home}:/bin/sh
"""
HELD = f"{names.DOMAIN}/holds"


def run_objects(shape: Shape, run_id: str, order: str) -> list[Object]:
    """In the order in which they are applied; the last one is the run itself, and owns the others."""
    common = [_order(shape, run_id, order), _secret(shape, run_id)]
    if shape.mpi:
        return [*common, _mpijob(shape, run_id)]
    service = [_service(shape, run_id)] if shape.nodes > 1 else []
    return [*common, *service, _job(shape, run_id)]


def _object(kind: tuple[str, str], shape: Shape, run_id: str, **fields: Any) -> Object:
    labels = names.labels(run_id, shape.parent, shape.name)
    metadata = {"name": run_id, "namespace": shape.namespace, "labels": labels}
    return {"apiVersion": kind[0], "kind": kind[1], "metadata": metadata, **fields}


def _order(shape: Shape, run_id: str, order: str) -> Object:
    data = {"order.json": order}
    if shape.mpi and shape.named_uid is not None:
        gid = shape.uid if shape.uid is not None else 0
        data["passwd"] = PASSWD.format(uid=shape.named_uid, gid=gid, home=f"{names.WORK}/home")
    return _object(("v1", "ConfigMap"), shape, run_id, immutable=True, data=data)


def _secret(shape: Shape, run_id: str) -> Object:
    """Without its values: they come in when it is submitted, and are written down nowhere else."""
    made = _object(("v1", "Secret"), shape, run_id, type="Opaque")
    made["metadata"]["annotations"] = {HELD: " ".join(["token", *(f"env.{name}" for name in shape.secrets)])}
    return made


def _service(shape: Shape, run_id: str) -> Object:
    """Without an address of its own: it gives the nodes of the run names, before they are ready."""
    selector = {names.RUN: run_id}
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": selector}
    return _object(("v1", "Service"), shape, run_id, spec=spec)


def _job(shape: Shape, run_id: str) -> Object:
    """No podFailurePolicy: with one, Kubernetes fills the place of a node that is gone only once that node is back."""
    spec: Object = {
        "completionMode": "Indexed",
        "completions": shape.nodes,
        "parallelism": shape.nodes,
        **_replaced(shape),
        "ttlSecondsAfterFinished": names.KEPT_S,
        "template": merged(node_template(shape, run_id), shape.patch),
    }
    return _queued(shape, _object(("batch/v1", "Job"), shape, run_id, spec=spec))


def _replaced(shape: Shape) -> Object:
    """How often nodes are: one that is lost again and again ends the run."""
    if shape.counted:
        return {"backoffLimitPerIndex": names.MOST_LOST, "maxFailedIndexes": 0}
    return {"backoffLimit": names.MOST_LOST * shape.nodes}


def _mpijob(shape: Shape, run_id: str) -> Object:
    """Workers are the nodes of the run. All stay when they are over: their logs may not be saved yet.

    Without a claim nobody counts how often a node began, so that it begins once only.
    """
    worker, launcher = node_template(shape, run_id), launcher_template(shape, run_id)
    again = "OnFailure" if shape.claim else "Never"
    worker["spec"]["restartPolicy"], launcher["spec"]["restartPolicy"] = again, "OnFailure"
    spec: Object = {
        "slotsPerWorker": shape.ranks_per_node,
        "mpiImplementation": "OpenMPI",
        "sshAuthMountPath": names.SSH,
        "launcherCreationPolicy": "WaitForWorkersReady",
        "runPolicy": {
            "cleanPodPolicy": "None",
            "backoffLimit": names.MOST_LOST,
            "ttlSecondsAfterFinished": names.KEPT_S,
        },
        "mpiReplicaSpecs": {
            "Launcher": _replicas(1, merged(launcher, _beside(shape.patch))),
            "Worker": _replicas(shape.nodes, merged(worker, shape.patch)),
        },
    }
    return _queued(shape, _object(("kubeflow.org/v2beta1", "MPIJob"), shape, run_id, spec=spec))


def _replicas(count: int, template: Object) -> Object:
    return {"replicas": count, "restartPolicy": template["spec"]["restartPolicy"], "template": template}


def _beside(patch: Object) -> Object:
    """What of the user's patch is for the launcher too: all but containers, which it has none of."""
    spec = {name: one for name, one in patch.get("spec", {}).items() if name not in ("containers", "initContainers")}
    return {**patch, "spec": spec} if "spec" in patch else patch


def _queued(shape: Shape, made: Object) -> Object:
    if shape.queue:
        made["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] = shape.queue
    return made
