"""The objects of a run: a Job with its Service or another kind, its order, its token, and who may reach its nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from podwright.clients.kubernetes import names
from podwright.clients.kubernetes.kinds import KINDS, NODE
from podwright.clients.kubernetes.merge import merged
from podwright.clients.kubernetes.paths import GROUPS
from podwright.engines.kubernetes.hold import AFTER, PARALLEL, hold
from podwright.engines.kubernetes.pod_template import Object, launcher_template, node_template
from podwright.engines.kubernetes.run_spec import RunSpec

PASSWD = """\
root:x:0:0:root:/root:/bin/sh
nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin
podwright:x:{uid}:{gid}:podwright:{home}:/bin/sh
"""
HOLDS = f"{names.DOMAIN}/holds"
POLICY_VERSION = "networking.k8s.io/v1"
PATCHED = (
    "serviceAccountName",
    "securityContext",
    "nodeSelector",
    "affinity",
    "tolerations",
    "imagePullSecrets",
    "volumes",
    "containers",
)
"""Of a Kubernetes pod: what a TrainJob lets be changed in that of its training runtime (since 2.2)."""


def run_objects(run: RunSpec, run_id: str, order: str, index: int = 0) -> list[Object]:
    """Return the objects in the order in which they are applied; the last is the run itself, and owns the others."""
    objects = [_order(run, run_id, order), _secret(run, run_id)]
    if run.kind is KINDS["job"] and run.nodes > 1:
        objects.append(_service(run, run_id))
    if run.policy:
        objects.append(_policy(run, run_id))
    if run.placement.scheduler:
        objects.append(_group(run, run_id))
    own = _object((run.kind.version, run.kind.name), run, run_id, spec=SPECS[run.kind.name](run, run_id))
    if run.queue:
        own["metadata"]["labels"][names.QUEUE] = run.queue
    if run.placement.parallel and index >= run.placement.parallel:
        hold(run.kind, own, PARALLEL)
    if run.after:
        own["metadata"].setdefault("annotations", {})[names.HELD_FOR] = run.after
        hold(run.kind, own, AFTER)
    return [*objects, own]


def _object(kind: tuple[str, str], run: RunSpec, run_id: str, **fields: Any) -> Object:
    labels = names.labels(run_id, run.parent, run.name)
    metadata = {"name": run_id, "namespace": run.namespace, "labels": labels}
    return {"apiVersion": kind[0], "kind": kind[1], "metadata": metadata, **fields}


def _order(run: RunSpec, run_id: str, order: str) -> Object:
    data = {"order.json": order}
    if run.mpi and run.named_uid is not None:
        data["passwd"] = PASSWD.format(uid=run.named_uid, gid=run.uid or 0, home=f"{names.WORK}/home")
    return _object(("v1", "ConfigMap"), run, run_id, immutable=True, data=data)


def _secret(run: RunSpec, run_id: str) -> Object:
    """Return the Secret without its values: they come in when it is submitted, and are written nowhere else."""
    secret = _object(("v1", "Secret"), run, run_id, type="Opaque")
    secret["metadata"]["annotations"] = {HOLDS: " ".join(["token", *(f"env.{name}" for name in run.secrets)])}
    return secret


def _group(run: RunSpec, run_id: str) -> Object:
    """Return the group by which Volcano places all nodes of a run, or none."""
    return _object((GROUPS["PodGroup"], "PodGroup"), run, run_id, spec={"minMember": run.nodes})


def _service(run: RunSpec, run_id: str) -> Object:
    """Return a Service without an address of its own: it gives the run's nodes names, before they are ready."""
    selector = {names.RUN: run_id}
    spec = {"clusterIP": "None", "publishNotReadyAddresses": True, "selector": selector}
    return _object(("v1", "Service"), run, run_id, spec=spec)


def _policy(run: RunSpec, run_id: str) -> Object:
    """Return who may reach the run's nodes: its own Kubernetes pods on all ports, and nobody else."""
    members = {"podSelector": {"matchLabels": {names.RUN: run_id}}}
    spec = {**members, "policyTypes": ["Ingress"], "ingress": [{"from": [members]}]}
    return _object((POLICY_VERSION, "NetworkPolicy"), run, run_id, spec=spec)


def _job(run: RunSpec, run_id: str, **kept: int) -> Object:
    """Return a Job's spec.

    It has no podFailurePolicy: with one, Kubernetes fills the place of a node that is gone only once that node is back.
    """
    return {
        "completionMode": "Indexed",
        "completions": run.nodes,
        "parallelism": run.nodes,
        **_replaced(run),
        **kept,
        "template": merged(node_template(run, run_id), run.patch),
    }


def _kept_job(run: RunSpec, run_id: str) -> Object:
    return _job(run, run_id, ttlSecondsAfterFinished=names.KEPT_S)


def _jobset(run: RunSpec, run_id: str) -> Object:
    """Return a set of one Job, which replaces its nodes by itself: a restart of the whole set would count them anew.

    The set gives its nodes names in the network, so that no Service of ours is needed.
    """
    return {
        "ttlSecondsAfterFinished": names.KEPT_S,
        "network": {"enableDNSHostnames": True, "subdomain": run_id, "publishNotReadyAddresses": True},
        "failurePolicy": {"maxRestarts": 0},
        "replicatedJobs": [{"name": NODE, "replicas": 1, "template": {"spec": _job(run, run_id)}}],
    }


def _trainjob(run: RunSpec, run_id: str) -> Object:
    """Return a TrainJob's spec: its runtime decides what the Kubernetes pods are, the pilot is the program in them.

    Its own deadline counts from before there are nodes, so that none is set: the pilot itself keeps to the time limit.
    """
    template = merged(node_template(run, run_id), run.patch)
    containers = {container["name"]: container for container in template["spec"]["containers"]}
    container = containers[run.kind.container]
    trainer = {name: container[name] for name in ("image", "command", "env")}
    trainer |= {"numNodes": run.nodes, "numProcPerNode": run.ranks_per_node}
    if "resources" in container:
        trainer["resourcesPerNode"] = container["resources"]
    patch = {name: template["spec"][name] for name in PATCHED if name in template["spec"]}
    patch["containers"] = [{name: container[name] for name in ("name", "volumeMounts", "securityContext")}]
    job = {"template": {"metadata": template["metadata"], "spec": patch}}
    rows = {"replicatedJobs": [{"name": NODE, "template": {"spec": job}}]}
    return {
        "runtimeRef": {"name": run.training_runtime},
        "trainer": trainer,
        "runtimePatches": [{"manager": names.DOMAIN, "trainingRuntimeSpec": {"template": {"spec": rows}}}],
    }


def _replaced(run: RunSpec) -> Object:
    """Return how often nodes are replaced: one that is lost again and again ends the run."""
    most = names.MAX_LOST
    if run.nodes > 1 and run.claim:
        most = names.MAX_STARTS
    elif run.nodes > 1:
        most += names.MAX_GIVEN_BACK
    if run.counted:
        return {"backoffLimitPerIndex": most, "maxFailedIndexes": 0}
    return {"backoffLimit": most * run.nodes}


def _mpijob(run: RunSpec, run_id: str) -> Object:
    """Return an MPIJob's spec, with the run's nodes as workers. All stay when over: logs may not be saved yet.

    Without a claim nobody counts how often a node began, so that it begins once only.
    """
    worker, launcher = node_template(run, run_id), launcher_template(run, run_id)
    again = "OnFailure" if run.claim else "Never"
    worker["spec"]["restartPolicy"], launcher["spec"]["restartPolicy"] = again, "OnFailure"
    return {
        "slotsPerWorker": run.ranks_per_node,
        "mpiImplementation": "OpenMPI",
        "sshAuthMountPath": names.SSH,
        "launcherCreationPolicy": "WaitForWorkersReady",
        "runPolicy": {
            "cleanPodPolicy": "None",
            "backoffLimit": names.MAX_LOST,
            "ttlSecondsAfterFinished": names.KEPT_S,
        },
        "mpiReplicaSpecs": {
            "Launcher": _replicas(1, merged(launcher, _beside(run.patch))),
            "Worker": _replicas(run.nodes, merged(worker, run.patch)),
        },
    }


def _replicas(count: int, template: Object) -> Object:
    return {"replicas": count, "restartPolicy": template["spec"]["restartPolicy"], "template": template}


def _beside(patch: Object) -> Object:
    """Return what of the user's patch is for the launcher too: all but containers, which it has none of."""
    if "spec" not in patch:
        return patch
    spec = {name: field for name, field in patch["spec"].items() if name not in ("containers", "initContainers")}
    return {**patch, "spec": spec}


SPECS: dict[str, Callable[[RunSpec, str], Object]] = {
    "Job": _kept_job,
    "MPIJob": _mpijob,
    "JobSet": _jobset,
    "TrainJob": _trainjob,
}
