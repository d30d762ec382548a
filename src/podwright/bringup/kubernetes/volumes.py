"""Storage of a pod as Kubernetes has it: classes that make volumes, volumes that are there, claims on either."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from podwright.clients.kubernetes import names
from podwright.clients.kubernetes.quantities import size_text
from podwright.spec.problems import refuse

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
    """Return what gives a namespace this storage: a claim, and the class or the volume that it is met with.

    A storage class makes volumes as they are claimed; a server and a path are there already.
    """
    if storage.storage_class:
        claim = _claim(storage, namespace)
        claim["spec"]["storageClassName"] = storage.storage_class
        known = storage_class(storage)
        if known is None:
            return [claim]
        return [known, claim]
    if storage.server is None:
        message = f"the storage {storage.name} has neither a storage class nor a server"
        raise refuse(message, hint="name one of them in the pod file", field="storage")
    name = f"{pod.name}-{storage.name}-{namespace}"
    claim = _claim(storage, namespace)
    claim["spec"] |= {"storageClassName": "", "selector": {"matchLabels": _labels(pod, storage)}, "volumeName": name}
    return [_volume(pod, storage, name, namespace), claim]


def storage_class(storage: Storage) -> Object | None:
    """Return None for a driver whose parameters only the site knows: its class must be there."""
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
    """Return the parameters by kind. Spectrum Scale: `server` is CLUSTER/FILE SYSTEM; NFS: HOST:/PATH."""
    head, _, rest = (storage.server or "").partition("/")
    if storage.kind == "spectrum-scale" and rest:
        return {"clusterId": head, "volBackendFs": rest}
    if storage.kind == "netapp":
        parameters = {"backendType": "ontap-nas"}
        if storage.server:
            parameters["storagePools"] = storage.server
        return parameters
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
    """Return a volume that is kept when its claim goes: the data was there before it."""
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
        message = f"Podwright knows no driver for {storage.kind}"
        raise refuse(
            message, hint=f"name it with `csi:` of the storage {storage.name} in the pod file", field="storage"
        )
    if storage.kind == "spectrum-scale":
        cluster, _, system = server.partition("/")
        handle = f"0;0;{cluster};{system};;;{storage.mount or '/'}"
        return {"csi": {"driver": driver, "volumeHandle": handle}}
    if storage.kind == "nfs":
        host, _, path = server.partition(":")
        attributes = {"server": host, "share": path or "/"}
        return {"csi": {"driver": driver, "volumeHandle": f"{host}#{path}", "volumeAttributes": attributes}}
    if storage.kind == "lustre":
        return {"csi": {"driver": driver, "fsType": "lustre", "volumeHandle": server}}
    return {"csi": {"driver": driver, "volumeHandle": server}}
