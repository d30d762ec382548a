"""Gives a run's objects to the API server: each of them once, however often it is tried."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from podwright.clients.kubernetes import names
from podwright.clients.kubernetes.api import STRATEGIC, Api, ApiError, Away, refusal_of
from podwright.clients.kubernetes.manifest import yaml_objects
from podwright.clients.kubernetes.paths import path_of, path_of_object
from podwright.engines.kubernetes.objects import HOLDS
from podwright.engines.kubernetes.plan import OBJECTS, code_pieces
from podwright.runs import RunFolder
from podwright.spec.problems import refuse

COME_BACK_S = 60.0
"""How long a server that is away is waited for when a run is submitted."""
AT_ONCE, CHUNK = 8, 64
"""Requests in flight, and points that are made before their files follow."""
T = TypeVar("T")


def submit(api: Api, site: Mapping[str, Any], parent: Path, folders: Sequence[RunFolder]) -> None:
    """The run itself comes first, all else belongs to it: what it leaves behind goes with it, at any moment.

    Kubernetes pods that come before their files wait for them. Points of a matrix are made some at a time.
    """
    known = lasting(lambda: _known(api, site, parent.name))
    maps = list(shared_maps(site, parent))
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        for at in range(0, len(folders), CHUNK):
            some = folders[at : at + CHUNK]
            begun = list(pool.map(lambda folder: _begin(api, known, folder), some))
            owners = [owner for owner, _ in begun]
            holder = owners[0] if len(folders) == 1 else _anchor(api, site, parent.name, owners)
            for made in maps if at == 0 else []:
                share(api, made, holder)
            list(pool.map(lambda folder, made: _follow_up(api, folder, *made), some, begun))


def _known(api: Api, site: Mapping[str, Any], parent: str) -> dict[str, dict[str, Any]]:
    """What of the job is there already, since a client may have died in the middle of it."""
    items, _ = api.items(path_of(site["kind"], site["namespace"]), labelSelector=f"{names.JOB}={parent}")
    return {item["metadata"]["name"]: item for item in items}


def _begin(api: Api, known: Mapping[str, dict[str, Any]], folder: RunFolder) -> tuple[dict[str, Any], list[Any]]:
    """The run's own object, made or found, and those that follow. One of its name that is not ours is left alone."""
    *others, job = yaml_objects((folder.path / OBJECTS).read_text())
    mark = owner_mark(folder)
    job["metadata"].setdefault("annotations", {})[names.OWNER] = mark
    found = known.get(folder.id) or _apply(api, job)
    if found["metadata"].get("annotations", {}).get(names.OWNER) != mark:
        words = f"the namespace {job['metadata']['namespace']} has a run {folder.id} of somebody else"
        raise refuse(words, hint="start it again: it gets another name")
    return {"apiVersion": job["apiVersion"], "kind": job["kind"], "metadata": found["metadata"]}, others


def _follow_up(api: Api, folder: RunFolder, owner: Mapping[str, Any], others: Sequence[dict[str, Any]]) -> None:
    for made in others:
        _apply(api, _owned(_filled(made, folder), owner))


def _anchor(api: Api, site: Mapping[str, Any], parent: str, owners: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Holds what the points of a matrix share, for as long as one of them is there: a small object with many owners."""
    path = path_of("ConfigMap", site["namespace"], parent)
    labels = {"app.kubernetes.io/managed-by": names.MANAGER, names.JOB: parent}
    metadata = {"name": parent, "namespace": site["namespace"], "labels": labels}
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    references = {"metadata": {"ownerReferences": [reference(owner) for owner in owners]}}
    if not lasting(lambda: api.find(path)):
        lasting(lambda: api.apply(path, made))
    metadata = lasting(lambda: api.patch(path, json.dumps(references).encode(), STRATEGIC))["metadata"]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def owner_mark(folder: RunFolder) -> str:
    token = (folder.path / "token").read_bytes().strip()
    return hashlib.sha256(b"owner " + token).hexdigest()[:32]


def _apply(api: Api, made: Mapping[str, Any]) -> dict[str, Any]:
    return lasting(lambda: api.apply(path_of_object(made), made))


def lasting(ask: Callable[[], T]) -> T:
    """Asks until the server is back, or gives up in words."""
    deadline = time.monotonic() + COME_BACK_S
    while True:
        try:
            return ask()
        except ApiError as error:
            raise refusal_of(error, "take the run") from None
        except Away as error:
            if time.monotonic() > deadline:
                raise refusal_of(error, "take the run") from None
            time.sleep(0.5)


def _filled(made: dict[str, Any], folder: RunFolder) -> dict[str, Any]:
    """A Secret gets its values here and nowhere else."""
    if made["kind"] != "Secret":
        return made
    values = {}
    for key in made["metadata"]["annotations"][HOLDS].split():
        name = key.removeprefix("env.")
        raw = (folder.path / "token").read_bytes().strip() if key == "token" else os.fsencode(os.environ[name])
        values[key] = base64.b64encode(raw).decode()
    return {**made, "data": values}


def reference(owner: Mapping[str, Any]) -> dict[str, str]:
    metadata = owner["metadata"]
    row = {"apiVersion": owner["apiVersion"], "kind": owner["kind"]}
    return {**row, "name": metadata["name"], "uid": metadata["uid"]}


def _owned(made: dict[str, Any], owner: Mapping[str, Any]) -> dict[str, Any]:
    return {**made, "metadata": {**made["metadata"], "ownerReferences": [reference(owner)]}}


def shared_maps(site: Mapping[str, Any], parent: Path) -> Iterable[dict[str, Any]]:
    """ConfigMaps that runs have in common: the pilot with its scripts, and the code piece by piece."""
    payload = {name: (parent / "job" / name).read_bytes() for name in site["payload"]["files"]}
    yield _map(site, site["payload"]["name"], payload)
    if site["code"]:
        pieces = code_pieces((parent / "job" / "code.tar").read_bytes())
        for index, (name, piece) in enumerate(zip(site["code"], pieces, strict=True)):
            yield _map(site, name, {f"code.{index}": piece})


def _map(site: Mapping[str, Any], name: str, files: Mapping[str, bytes]) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": site["namespace"],
            "labels": {"app.kubernetes.io/managed-by": names.MANAGER},
        },
        "immutable": True,
        "binaryData": {key: base64.b64encode(data).decode() for key, data in files.items()},
    }


def share(api: Api, made: dict[str, Any], owner: Mapping[str, Any]) -> None:
    """One more run has it: it goes with the last one. It may go just now, and is then made anew."""
    path = path_of("ConfigMap", made["metadata"]["namespace"])
    one_more = json.dumps({"metadata": {"ownerReferences": [reference(owner)]}}).encode()
    for _ in range(5):
        if lasting(lambda: _is_shared(api, f"{path}/{made['metadata']['name']}", one_more)):
            return
        if lasting(lambda: _is_made(api, path, _owned(made, owner))):
            return
    raise refuse(f"the ConfigMap {made['metadata']['name']} comes and goes", exit_code=3)


def _is_shared(api: Api, path: str, one_more: bytes) -> bool:
    try:
        found = api.patch(path, one_more, STRATEGIC)
    except ApiError as error:
        if error.status == 404:
            return False
        raise
    return "deletionTimestamp" not in found["metadata"]


def _is_made(api: Api, path: str, made: Mapping[str, Any]) -> bool:
    try:
        api.create(path, made)
    except ApiError as error:
        if error.status == 409:
            return False
        raise
    return True
