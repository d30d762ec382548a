"""The lab's storage: gives every claim of its class a folder of this machine, and takes it back with the claim.

A program of its own, as a storage system's driver is. All nodes share the machine's file system, so a volume may be
written on many nodes at once, as on a parallel file system.
"""

from __future__ import annotations

import shutil
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from podwright.clients.kubernetes.api import Api, ApiError, Away
from podwright.lab.kubernetes.api import admin_api, follow

PROVISIONER = "podwright.lab/folder"
PROGRAM = "provisioner"
_CLAIMS = "/api/v1/persistentvolumeclaims"
_VOLUMES = "/api/v1/persistentvolumes"
_AGAIN_S = 1.0


def volume_for(claim: dict[str, Any], storage_class: str, folder: Path) -> dict[str, Any] | None:
    """Return the volume that a claim waits for; None where it waits for none of ours."""
    spec = claim["spec"]
    deleted = claim["metadata"].get("deletionTimestamp")
    if spec.get("storageClassName") != storage_class or spec.get("volumeName") or deleted:
        return None
    name = f"pvc-{claim['metadata']['uid']}"
    same = {key: claim["metadata"][key] for key in ("name", "namespace", "uid")}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name, "annotations": {"pv.kubernetes.io/provisioned-by": PROVISIONER}},
        "spec": {
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "accessModes": spec["accessModes"],
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": storage_class,
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", **same},
            "hostPath": {"path": str(folder / name), "type": "Directory"},
        },
    }


def is_left(volume: dict[str, Any]) -> bool:
    """Return whether a volume of ours has lost its claim."""
    ours = volume["metadata"].get("annotations", {}).get("pv.kubernetes.io/provisioned-by") == PROVISIONER
    return bool(ours and volume.get("status", {}).get("phase") == "Released")


def provide(api: Api, claim: dict[str, Any], storage_class: str, folder: Path) -> None:
    """Make the folder and the volume of a claim; any user may write into it, as none of them is known here."""
    volume = volume_for(claim, storage_class, folder)
    if volume is not None:
        path = Path(volume["spec"]["hostPath"]["path"])
        path.mkdir(exist_ok=True)
        path.chmod(0o777)
        api.apply(f"{_VOLUMES}/{volume['metadata']['name']}", volume)


def take_back(api: Api, volume: dict[str, Any]) -> None:
    """Remove a volume that has lost its claim, and what lies on it."""
    if is_left(volume):
        shutil.rmtree(volume["spec"]["hostPath"]["path"], ignore_errors=True)
        api.delete(f"{_VOLUMES}/{volume['metadata']['name']}")


def _watch(where: tuple[str, int, Path], path: str, handle: Callable[[Api, dict[str, Any]], None]) -> None:
    """Handle all objects of a kind for ever; after any trouble it begins again with all there are."""
    api = admin_api(*where)
    while True:
        try:
            for thing in follow(api, path):
                handle(api, thing)
        except (OSError, ApiError, Away, ValueError) as error:
            print(f"{path}: {error}", file=sys.stderr, flush=True)
        time.sleep(_AGAIN_S)


def main(host: str, port: str, pki: str, folder: str, storage_class: str) -> None:
    """Run until it is killed."""
    # The name by which the lab finds its programs.
    Path("/proc/self/comm").write_text(PROGRAM)
    where = (host, int(port), Path(pki))
    volumes = threading.Thread(target=_watch, args=(where, _VOLUMES, take_back), daemon=True)
    volumes.start()
    _watch(where, _CLAIMS, lambda api, claim: provide(api, claim, storage_class, Path(folder)))
