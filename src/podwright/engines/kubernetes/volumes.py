"""Storage of a pod as Kubernetes has it: classes that make volumes, volumes that are there, claims on either."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from podwright.engines.kubernetes import names
from podwright.engines.kubernetes.facts import number_of, size_text
from podwright.spec.problems import refuse
from podwright.spec.quantity import format_size

if TYPE_CHECKING:
    from podwright.spec import Pod, Storage

Object = dict[str, Any]
STORAGE = f"{names.DOMAIN}/storage"
DEFAULT_BYTES = 1 << 40
"""Of a claim on a system whose size the pod file does not say."""

DRIVERS = {
    "spectrum-scale": "spectrumscale.csi.ibm.com",
    "netapp": "csi.trident.netapp.io",
    "lustre": "lustre-csi.hpe.com",
    "nfs": "nfs.csi.k8s.io",
}
"""The driver of a kind of storage that names none."""


def storage_objects(pod: Pod, storage: Storage, namespace: str) -> list[Object]:
    """What gives a namespace this storage: a claim, and the class or the volume that it is met with.

    A storage class makes volumes as they are claimed; a server and a path are there already.
    """
    if storage.storage_class:
        made = storage_class(storage)
        claim = _claim(storage, namespace)
        claim["spec"]["storageClassName"] = storage.storage_class
        return [made, claim] if made else [claim]
    if storage.server is None:
        words = f"the storage {storage.name} has neither a storage class nor a server"
        raise refuse(words, hint="name one of them in the pod file", field="storage")
    name = f"{pod.name}-{storage.name}-{namespace}"
    claim = _claim(storage, namespace)
    claim["spec"] |= {"storageClassName": "", "selector": {"matchLabels": _labels(pod, storage)}, "volumeName": name}
    return [_volume(pod, storage, name, namespace), claim]


def storage_class(storage: Storage) -> Object | None:
    """None for a driver whose parameters only the site knows: its class must be there."""
    driver = storage.csi or DRIVERS.get(storage.kind)
    parameters = _class_parameters(storage)
    if driver is None or parameters is None:
        return None
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": storage.storage_class, "labels": {"app.kubernetes.io/managed-by": names.MANAGER}},
        "provisioner": driver,
        "parameters": parameters,
        "reclaimPolicy": "Retain",
        "allowVolumeExpansion": True,
        "volumeBindingMode": "Immediate",
    }


def _class_parameters(storage: Storage) -> dict[str, str] | None:
    """Spectrum Scale: `server` is CLUSTER/FILE SYSTEM; NFS: HOST:/PATH."""
    head, _, rest = (storage.server or "").partition("/")
    if storage.kind == "spectrum-scale" and rest:
        return {"clusterId": head, "volBackendFs": rest}
    if storage.kind == "netapp":
        return {"backendType": "ontap-nas", **({"storagePools": storage.server} if storage.server else {})}
    if storage.kind == "nfs" and storage.server:
        host, _, path = storage.server.partition(":")
        return {"server": host, "share": path or "/"}
    return None


def _labels(pod: Pod, storage: Storage) -> dict[str, str]:
    return {f"{names.DOMAIN}/pod": pod.name, STORAGE: storage.name}


def _claim(storage: Storage, namespace: str) -> Object:
    size = size_text(storage.capacity_bytes or DEFAULT_BYTES)
    labels = {"app.kubernetes.io/managed-by": names.MANAGER}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": storage.name, "namespace": namespace, "labels": labels},
        "spec": {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": size}}},
    }


def _volume(pod: Pod, storage: Storage, name: str, namespace: str) -> Object:
    """Kept when its claim goes: the data was there before it."""
    labels = {"app.kubernetes.io/managed-by": names.MANAGER, **_labels(pod, storage)}
    claim = {"kind": "PersistentVolumeClaim", "namespace": namespace, "name": storage.name}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "capacity": {"storage": size_text(storage.capacity_bytes or DEFAULT_BYTES)},
            "accessModes": ["ReadWriteMany"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": "",
            "claimRef": claim,
            **_source(storage),
        },
    }


def _source(storage: Storage) -> Object:
    server, driver = storage.server or "", storage.csi or DRIVERS.get(storage.kind)
    if storage.kind == "nfs" and storage.csi is None:
        host, _, path = server.partition(":")
        return {"nfs": {"server": host, "path": path or "/"}, "mountOptions": ["nfsvers=4.1"]}
    if driver is None:
        words = f"Podwright knows no driver for {storage.kind}"
        raise refuse(words, hint=f"name it with `csi:` of the storage {storage.name} in the pod file", field="storage")
    if storage.kind == "spectrum-scale":
        cluster, _, system = server.partition("/")
        handle = f"0;0;{cluster};{system};;;{storage.mount or '/'}"
        return {"csi": {"driver": driver, "volumeHandle": handle}}
    if storage.kind == "nfs":
        host, _, path = server.partition(":")
        attributes = {"server": host, "share": path or "/"}
        return {"csi": {"driver": driver, "volumeHandle": f"{host}#{path}", "volumeAttributes": attributes}}
    kind = {"fsType": "lustre"} if storage.kind == "lustre" else {}
    return {"csi": {"driver": driver, **kind, "volumeHandle": server}}


def local_objects(pod: Pod, hosts: Iterable[str], path: str, size_bytes: int) -> list[Object]:
    """NVMe disks of the nodes themselves: a volume on each, bound only when a node is chosen."""
    name = f"{pod.name}-nvme"
    made: list[Object] = [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name, "labels": {"app.kubernetes.io/managed-by": names.MANAGER}},
            "provisioner": "kubernetes.io/no-provisioner",
            "volumeBindingMode": "WaitForFirstConsumer",
        }
    ]
    for host in hosts:
        here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [host]}
        spec = {
            "capacity": {"storage": size_text(size_bytes)},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "storageClassName": name,
            "local": {"path": path},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        }
        labels = {"app.kubernetes.io/managed-by": names.MANAGER, f"{names.DOMAIN}/pod": pod.name}
        metadata = {"name": f"{name}-{host}", "labels": labels}
        made.append({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec})
    return made


def why_unbound(
    claim: Mapping[str, Any], volumes: Sequence[Mapping[str, Any]] | None, classes: Sequence[Mapping[str, Any]] | None
) -> str:
    """Why a claim has no volume, in words; nothing where it can still get one, or where the user may not look."""
    wanted = claim["spec"].get("storageClassName")
    if wanted:
        return _why_of_class(claim, str(wanted), volumes, classes)
    if volumes is None:
        return ""
    return _why_of_volumes(claim, volumes)


def _why_of_class(
    claim: Mapping[str, Any],
    wanted: str,
    volumes: Sequence[Mapping[str, Any]] | None,
    classes: Sequence[Mapping[str, Any]] | None,
) -> str:
    """A volume may name a class that is no object: then it must be there already."""
    found = next((one for one in classes or () if one["metadata"]["name"] == wanted), None)
    if found is None:
        if classes is None or volumes is None:
            return ""
        if any(one["spec"].get("storageClassName") == wanted for one in volumes):
            return _why_of_volumes(claim, volumes)
        known = ", ".join(one["metadata"]["name"] for one in classes) or "none"
        return f"there is no storage class {wanted}; there are {known}"
    if found["provisioner"] == "kubernetes.io/no-provisioner" and volumes is not None:
        return _why_of_volumes(claim, volumes)
    return ""


def _why_of_volumes(claim: Mapping[str, Any], volumes: Sequence[Mapping[str, Any]]) -> str:
    reasons: dict[str, int] = {}
    for volume in volumes:
        misfit = next(misfits(claim, volume), None)
        if misfit is None:
            return ""
        reasons[misfit] = reasons.get(misfit, 0) + 1
    if not reasons:
        return "there are no volumes"
    told = (f"{count} {words}" for words, count in sorted(reasons.items(), key=lambda row: -row[1]))
    return f"no volume fits: {', '.join(told)}"


def misfits(claim: Mapping[str, Any], volume: Mapping[str, Any]) -> Iterator[str]:
    """What keeps a claim from this volume, as Kubernetes looks at it: class, labels, modes, size, and who has it."""
    asked, given = claim["spec"], volume["spec"]
    if (asked.get("storageClassName") or "") != (given.get("storageClassName") or ""):
        yield f"of the class {given.get('storageClassName') or 'none'}"
    if asked.get("volumeName") and asked["volumeName"] != volume["metadata"]["name"]:
        yield f"not named {asked['volumeName']}"
    labels = volume["metadata"].get("labels") or {}
    for name, value in (asked.get("selector") or {}).get("matchLabels", {}).items():
        if labels.get(name) != value:
            yield f"without the label {name}={value}"
    lacking = set(asked.get("accessModes") or ()) - set(given.get("accessModes") or ())
    if lacking:
        yield f"without {', '.join(sorted(lacking))}"
    size = number_of(asked["resources"]["requests"]["storage"])
    if number_of(given["capacity"]["storage"]) < size:
        yield f"smaller than {format_size(size)}"
    owner, own = given.get("claimRef"), claim["metadata"]
    if owner and (owner.get("namespace"), owner.get("name")) != (own.get("namespace"), own["name"]):
        yield "taken"
