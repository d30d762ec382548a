"""The Kubernetes pod of one node of a run: what it may use, what it sees, and what it may not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from podwright.clients.kubernetes import names
from podwright.clients.kubernetes.confinement import confined
from podwright.clients.kubernetes.kinds import KINDS
from podwright.clients.kubernetes.quantities import size_text
from podwright.engines.kubernetes.run_spec import RunSpec

Object = dict[str, Any]
FAILURES = "metadata.annotations['batch.kubernetes.io/job-index-failure-count']"
UID_OF_JOB = "metadata.labels['batch.kubernetes.io/controller-uid']"
REPLICA = "metadata.labels['training.kubeflow.org/replica-index']"
BESIDE = {"cpu": "100m", "memory": "128Mi"}
"""What the containers get that only wait or copy."""
LAUNCHER_VOLUMES, LAUNCHER_ENV = ("job", "work", "claim"), ("PODWRIGHT_RUN", "PODWRIGHT_CLAIM", "HOME")
"""Of an MPIJob's launcher, which only waits for the end."""


def node_template(run: RunSpec, run_id: str) -> Object:
    """Return the template of a node, before the user's patch."""
    spec = pod_spec(run, run_id)
    spec["containers"] = [pilot_container(run, run_id)]
    if run.claim is None:
        spec["initContainers"] = [ship_container(run, run_id)]
    return {"metadata": _metadata(run, run_id), "spec": spec}


def launcher_template(run: RunSpec, run_id: str) -> Object:
    """Return the template of an MPIJob's launcher, which is no node of the run and needs no device."""
    run = replace(run, placement=replace(run.placement, scheduler=None))  # the group is that of the nodes
    spec = pod_spec(run, run_id)
    spec["volumes"] = [volume for volume in spec["volumes"] if volume["name"] in LAUNCHER_VOLUMES]
    spec.pop("affinity", None)
    mounts = [mount for mount in _mounts(run) if mount["name"] in LAUNCHER_VOLUMES]
    env = [variable for variable in environment(run, run_id) if variable["name"] in LAUNCHER_ENV]
    container = _container(names.LAUNCHER, run.image, "launch.sh", env)
    container |= {"resources": {"limits": dict(BESIDE)}, "securityContext": confined([]), "volumeMounts": mounts}
    return {"metadata": _metadata(run, run_id), "spec": {**spec, "containers": [container]}}


def _metadata(run: RunSpec, run_id: str) -> Object:
    metadata: Object = {"labels": names.labels(run_id, run.parent, run.name)}
    if run.queue and run.near:
        metadata["annotations"] = {"kueue.x-k8s.io/podset-preferred-topology": names.UNIT}
    if run.placement.scheduler:
        metadata.setdefault("annotations", {})[names.GROUP] = run_id
    return metadata


def pod_spec(run: RunSpec, run_id: str) -> Object:
    """Return everything of a Kubernetes pod but its containers."""
    spec: Object = {"restartPolicy": "Never", "terminationGracePeriodSeconds": run.grace_s}
    if run.kind is KINDS["job"] and run.nodes > 1:
        spec["subdomain"] = run_id
    if run.deadline_s is not None:
        spec["activeDeadlineSeconds"] = run.deadline_s
    if run.priority:
        spec["priorityClassName"] = run.priority
    if run.placement.scheduler:
        spec["schedulerName"] = run.placement.scheduler
    if run.placement.selector:
        spec["nodeSelector"] = dict(run.placement.selector)
    if run.placement.pull_secrets:
        spec["imagePullSecrets"] = [{"name": name} for name in run.placement.pull_secrets]
    if run.account:
        spec["serviceAccountName"] = run.account
    spec |= {"automountServiceAccountToken": False, "enableServiceLinks": False}
    spec["securityContext"] = _who(run)
    spec["tolerations"] = _tolerations(run)
    if run.near:
        wishes = [_near(run_id, label, 100 // place) for place, label in enumerate(run.near, 1)]
        spec["affinity"] = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": wishes}}
    spec["volumes"] = _volumes(run, run_id)
    return spec


def _who(run: RunSpec) -> Object:
    """Return who the processes are; where the cluster decides that, nothing is said of it."""
    context: Object = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    if run.uid is not None:
        context |= {"runAsUser": run.uid, "runAsGroup": run.uid, "fsGroup": run.uid}
        context["fsGroupChangePolicy"] = "OnRootMismatch"
    return context


def _tolerations(run: RunSpec) -> list[Object]:
    """Return which nodes it may go to all the same: those with GPUs are kept for those who ask."""
    tolerations = gone_tolerations()
    if any(name.startswith("nvidia.com/") for name in run.limits):
        tolerations.append({"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"})
    return [*tolerations, *map(dict, run.placement.tolerations)]


def gone_tolerations() -> list[Object]:
    """Return the tolerations by which a node that is gone is given up after half a minute, not after five."""
    gone = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": names.UNREACHABLE_S}
    return [{"key": f"node.kubernetes.io/{why}", **gone} for why in ("unreachable", "not-ready")]


def _near(run_id: str, key: str, weight: int) -> Object:
    """Return a wish, not a demand: a unit that is nearly full must not keep a run from starting."""
    same = {"matchLabels": {names.RUN: run_id}}
    return {"weight": weight, "podAffinityTerm": {"labelSelector": same, "topologyKey": key}}


def _volumes(run: RunSpec, run_id: str) -> list[Object]:
    own = ["order.json"]
    if _named(run):
        own.append("passwd")
    sources = [
        _from_map(names.payload_name(run.payload), run.pilot_files),
        _from_map(run_id, own),
        *(_from_map(name, [f"code.{index}"]) for index, name in enumerate(run.code)),
    ]
    if run.data:
        sources += [_from_map(name, [key]) for name, key in run.data.pieces()]
    own_disk = {"sizeLimit": size_text(run.limit_bytes)}
    # As much as the memory limit allows, and where there is none as the node has, which Kubernetes sees to.
    shm_size = run.limits.get("memory", own_disk["sizeLimit"])
    if run.shm_bytes is not None:
        shm_size = size_text(run.shm_bytes)
    volumes: list[Object] = [
        {"name": "job", "projected": {"defaultMode": 0o444, "sources": sources}},
        {"name": "token", "secret": {"secretName": run_id, "defaultMode": 0o440, "items": [_item("token")]}},
        {"name": "work", "emptyDir": dict(own_disk)},
        {"name": "tmp", "emptyDir": dict(own_disk)},
        {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": shm_size}},
    ]
    if run.claim:
        volumes.append({"name": "claim", "persistentVolumeClaim": {"claimName": run.claim}})
    for index, mount in enumerate(run.mounts):
        claim: Object = {"claimName": mount.claim}
        if mount.read_only:
            claim["readOnly"] = True
        volumes.append({"name": f"data-{index}", "persistentVolumeClaim": claim})
    if run.data:
        volumes.append({"name": "cache", **run.data.cache.source()})
    return volumes


def _from_map(name: str, keys: Any) -> Object:
    return {"configMap": {"name": name, "items": [_item(key) for key in keys]}}


def _item(key: str) -> Object:
    return {"key": key, "path": key}


def _named(run: RunSpec) -> bool:
    return run.mpi and run.named_uid is not None


def _mounts(run: RunSpec) -> list[Object]:
    mounts: list[Object] = [
        {"name": "job", "mountPath": names.JOB_FOLDER, "readOnly": True},
        {"name": "token", "mountPath": names.TOKEN, "readOnly": True},
        {"name": "work", "mountPath": names.WORK},
        {"name": "tmp", "mountPath": "/tmp"},
        {"name": "shm", "mountPath": "/dev/shm"},
    ]
    if _named(run):
        mounts.append({"name": "job", "mountPath": "/etc/passwd", "subPath": "passwd", "readOnly": True})
    if run.claim:
        mounts.append({"name": "claim", "mountPath": names.CLAIM})
    for index, mount in enumerate(run.mounts):
        row: Object = {"name": f"data-{index}", "mountPath": mount.path}
        if mount.read_only:
            row["readOnly"] = True
        mounts.append(row)
    if run.data:
        mounts.append({"name": "cache", "mountPath": names.CACHE})
    return mounts


def value(name: str, text: str) -> Object:
    """Return a variable of a container."""
    return {"name": name, "value": text}


def _field(name: str, path: str) -> Object:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def environment(run: RunSpec, run_id: str) -> list[Object]:
    """Return how a pilot finds its place; without a claim, a Job tells how many copies of the node failed before."""
    leader = "127.0.0.1"
    if run.nodes > 1:
        leader = f"{run.kind.first.format(run=run_id)}.{run_id}"
    env = [value("PODWRIGHT_RUN", run_id), value("PODWRIGHT_LEADER", leader)]
    if run.mpi:
        env += [_field("JOB_COMPLETION_INDEX", REPLICA), value("PODWRIGHT_JOB", run_id)]
        env += [value("PODWRIGHT_WORKERS", str(run.nodes))]
    else:
        env += [_field("PODWRIGHT_JOB", UID_OF_JOB)]
    if not run.mpi and not run.claim:
        env += [_field("PODWRIGHT_RESTART", FAILURES)]
    env += [
        _field("PODWRIGHT_HOST", "spec.nodeName"),
        value("PODWRIGHT_TOKEN_FILE", f"{names.TOKEN}/token"),
        value("PODWRIGHT_CLAIM", names.run_folder(run_id) if run.claim else ""),
        value("HOME", f"{names.WORK}/home"),
        value("TMPDIR", "/tmp"),
    ]
    for name in run.secrets:
        env.append({"name": name, "valueFrom": {"secretKeyRef": {"name": run_id, "key": f"env.{name}"}}})
    return env


def pilot_container(run: RunSpec, run_id: str) -> Object:
    """Return the container of a node's pilot."""
    container = _container(run.kind.container, run.image, "enter.sh", environment(run, run_id))
    limits = {**run.limits, **run.placement.rdma.of(run_id)}
    if limits:
        container["resources"] = {"limits": limits}
    container["securityContext"] = confined(["IPC_LOCK"] if run.lock_memory else [])
    container["volumeMounts"] = _mounts(run)
    return container


def ship_container(run: RunSpec, run_id: str) -> Object:
    """Return the container that sends the record through its own output; it ends after the pilot in any case."""
    wanted = ("PODWRIGHT_R", "PODWRIGHT_J", "JOB_")
    env = [variable for variable in environment(run, run_id) if variable["name"].startswith(wanted)]
    container = _container(names.SHIP, run.image, "ship.sh", env)
    container["restartPolicy"] = "Always"
    container |= {"resources": {"limits": dict(BESIDE)}, "securityContext": confined([])}
    container["volumeMounts"] = [mount for mount in _mounts(run) if mount["name"] in ("job", "work", "tmp")]
    return container


def _container(name: str, image: str, script: str, env: list[Object]) -> Object:
    return {
        "name": name,
        "image": image,
        "command": ["/bin/sh", f"{names.JOB_FOLDER}/{script}"],
        "env": env,
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
