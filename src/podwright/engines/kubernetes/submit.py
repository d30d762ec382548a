"""Gives a run's objects to the API server: each of them once, however often it is tried."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from podwright.clients.kubernetes import names
from podwright.clients.kubernetes.api import AGAIN, STRATEGIC, Api, ApiError, Away, refusal_of
from podwright.clients.kubernetes.kinds import BY_NAME
from podwright.clients.kubernetes.manifest import yaml_objects
from podwright.clients.kubernetes.paths import path_of, path_of_object
from podwright.engines.base import Unfinished
from podwright.engines.kubernetes.data import manifest_maps
from podwright.engines.kubernetes.hold import MAKING, held_reason, hold, release
from podwright.engines.kubernetes.objects import HOLDS
from podwright.engines.kubernetes.plan import OBJECTS, code_pieces
from podwright.runs import RunFolder
from podwright.spec.problems import refuse

COME_BACK_S = 60.0
"""How long a server that is away is waited for when a run is submitted."""
AT_ONCE, CHUNK = 8, 64
"""Requests in flight, and points that are made before their files follow."""
T = TypeVar("T")
Keep = Callable[[Callable[[], Any]], Any]
"""Asks again while the server is away."""


def submit(
    api: Api, site: Mapping[str, Any], parent: Path, folders: Sequence[RunFolder], come_back_s: float = COME_BACK_S
) -> None:
    """Give the run's own object first, all else belongs to it: what it leaves behind goes with it, at any moment.

    It is suspended until all else is there, so that a client that dies in between leaves no run that cannot start.
    Points of a matrix are made some at a time.
    """
    keep = partial(lasting, come_back_s=come_back_s)
    known = keep(lambda: _known(api, site, parent.name))
    maps = list(shared_maps(site, parent))
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        for at in range(0, len(folders), CHUNK):
            chunk = folders[at : at + CHUNK]
            begun = list(pool.map(lambda folder: _begin(api, known, folder, keep), chunk))
            holder = begun[0]
            if folders[0].asked.parent:
                holder = _anchor(api, site, parent.name, begun, keep)
            # What is shared needs one owner: the first chunk gives it.
            while maps:
                share(api, maps.pop(0), holder, keep)
            list(pool.map(lambda folder, job: _finish(api, site, folder, job, keep), chunk, begun))


def _known(api: Api, site: Mapping[str, Any], parent: str) -> dict[str, dict[str, Any]]:
    """Return what of the job is there already, since a client may have died in the middle of it."""
    items, _ = api.items(path_of(site["kind"], site["namespace"]), labelSelector=f"{names.JOB}={parent}")
    return {item["metadata"]["name"]: item for item in items}


def _begin(api: Api, known: Mapping[str, dict[str, Any]], folder: RunFolder, keep: Keep) -> dict[str, Any]:
    """Return the run's own object, made or found; one of its name that is not ours stays."""
    *_, job = yaml_objects((folder.path / OBJECTS).read_text())
    mark = owner_mark(folder)
    job["metadata"].setdefault("annotations", {})[names.OWNER] = mark
    hold(BY_NAME[job["kind"]], job, MAKING)
    there = known.get(folder.id) or keep(lambda: api.apply(path_of_object(job), job))
    if there["metadata"].get("annotations", {}).get(names.OWNER) != mark:
        message = f"the namespace {job['metadata']['namespace']} has a run {folder.id} of somebody else"
        raise refuse(message, hint="start it again: it gets another name")
    # A list does not repeat in every item what it is a list of.
    return {**there, "apiVersion": job["apiVersion"], "kind": job["kind"]}


def _finish(api: Api, site: Mapping[str, Any], folder: RunFolder, job: Mapping[str, Any], keep: Keep) -> None:
    """Make all else of a run, and let it start; what was finished before is left alone."""
    if held_reason(job) != MAKING:
        return
    *others, _ = yaml_objects((folder.path / OBJECTS).read_text())
    for manifest in others:
        whole = owned(_filled(manifest, folder), job)
        keep(partial(api.apply, path_of_object(whole), whole))
    keep(lambda: release(api, site, job, MAKING))


def mend(api: Api, site: Mapping[str, Any], folder: RunFolder, job: Mapping[str, Any], is_stuck: bool) -> None:
    """Make what a run needs again, where somebody has deleted it; `is_stuck`: a container of it is still being made.

    Nobody may read a Secret: it is made again where it may be missing, and where its values are known here.
    """
    kind = BY_NAME[site["kind"]]
    owner = {**job, "apiVersion": kind.version, "kind": kind.name}
    *others, _ = yaml_objects((folder.path / OBJECTS).read_text())
    for manifest in others:
        with suppress(ApiError):
            if manifest["kind"] == "Secret":
                _mend_secret(api, owned(manifest, owner), folder, is_stuck)
            elif api.find(path_of_object(manifest)) is None:
                api.apply(path_of_object(manifest), owned(manifest, owner))
    if is_stuck:
        for shared in shared_maps(site, folder.path.parent / folder.asked.job_id):
            if api.find(path_of_object(shared)) is None:
                share(api, shared, owner, lambda ask: ask())


def _mend_secret(api: Api, manifest: dict[str, Any], folder: RunFolder, is_stuck: bool) -> None:
    if is_stuck and all(name in os.environ for name in folder.asked.secrets):
        path = path_of(manifest["kind"], manifest["metadata"]["namespace"])
        api.create(path, _filled(manifest, folder))


def _anchor(
    api: Api, site: Mapping[str, Any], parent: str, owners: Sequence[Mapping[str, Any]], keep: Keep
) -> dict[str, Any]:
    """Make what holds all that the points of a matrix share, while one of them is there: an object with many owners."""
    path = path_of("ConfigMap", site["namespace"], parent)
    labels = {"app.kubernetes.io/managed-by": names.MANAGER, names.JOB: parent}
    metadata = {"name": parent, "namespace": site["namespace"], "labels": labels}
    anchor = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    references = {"metadata": {"ownerReferences": [reference(owner) for owner in owners]}}
    if not keep(lambda: api.find(path)):
        keep(lambda: api.apply(path, anchor))
    metadata = keep(lambda: api.patch(path, json.dumps(references).encode(), STRATEGIC))["metadata"]
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}


def owner_mark(folder: RunFolder) -> str:
    """Return the mark by which we know a run's object as our own; it does not give the token away."""
    token = (folder.path / "token").read_bytes().strip()
    return hashlib.sha256(b"owner " + token).hexdigest()[:32]


def lasting(ask: Callable[[], T], come_back_s: float = COME_BACK_S) -> T:
    """Ask until the server is back, or give up in words; a refusal of the server's own is told at once."""
    deadline = time.monotonic() + come_back_s
    while True:
        try:
            return ask()
        except (ApiError, Away) as error:
            refusal = refusal_of(error, "take the run")
            if isinstance(error, ApiError) and error.status not in AGAIN:
                raise refusal from None
            if time.monotonic() > deadline:
                raise Unfinished(refusal.problems, refusal.exit_code) from None
            time.sleep(0.5)


def _filled(manifest: dict[str, Any], folder: RunFolder) -> dict[str, Any]:
    """Give a Secret its values, here and nowhere else."""
    if manifest["kind"] != "Secret":
        return manifest
    values = {}
    for key in manifest["metadata"]["annotations"][HOLDS].split():
        if key == "token":
            raw = (folder.path / "token").read_bytes().strip()
        else:
            raw = os.fsencode(os.environ[key.removeprefix("env.")])
        values[key] = base64.b64encode(raw).decode()
    return {**manifest, "data": values}


def reference(owner: Mapping[str, Any]) -> dict[str, str]:
    """Return how an object names the one that it goes with."""
    metadata = owner["metadata"]
    row = {"apiVersion": owner["apiVersion"], "kind": owner["kind"]}
    return {**row, "name": metadata["name"], "uid": metadata["uid"]}


def owned(manifest: dict[str, Any], owner: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object that goes when its owner does."""
    return {**manifest, "metadata": {**manifest["metadata"], "ownerReferences": [reference(owner)]}}


def shared_maps(site: Mapping[str, Any], parent: Path) -> Iterable[dict[str, Any]]:
    """Yield the ConfigMaps that runs have in common: the pilot with its scripts; code and manifests in pieces."""
    payload = {name: (parent / "job" / name).read_bytes() for name in site["payload"]["files"]}
    yield _map(site, site["payload"]["name"], payload)
    if site["code"]:
        with (parent / "job" / "code.tar").open("rb") as tar:
            for index, (name, piece) in enumerate(zip(site["code"], code_pieces(tar), strict=True)):
                yield _map(site, name, {f"code.{index}": piece})
    for name, files in manifest_maps(site.get("data", {}), parent / "job"):
        yield _map(site, name, files)


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


def share(api: Api, shared: dict[str, Any], owner: Mapping[str, Any], keep: Keep) -> None:
    """Let one more run have a ConfigMap, which goes with the last one; it may go just now, and is then made anew."""
    path, name = path_of("ConfigMap", shared["metadata"]["namespace"]), shared["metadata"]["name"]
    one_more = json.dumps({"metadata": {"ownerReferences": [reference(owner)]}}).encode()
    for _ in range(5):
        if keep(lambda: _is_shared(api, f"{path}/{name}", shared, one_more)):
            return
        if keep(lambda: _is_made(api, path, owned(shared, owner))):
            return
    raise refuse(f"the ConfigMap {name} comes and goes", exit_code=3)


def _is_shared(api: Api, path: str, shared: Mapping[str, Any], one_more: bytes) -> bool:
    """Take part in a ConfigMap that is there already, unless it holds anything else than this run would give."""
    there = api.find(path)
    if there is None:
        return False
    _check_same(there, shared)
    try:
        changed = api.patch(path, one_more, STRATEGIC)
    except ApiError as error:
        if error.status == 404:
            return False
        raise
    same = changed["metadata"].get("uid") == there["metadata"].get("uid")
    return same and "deletionTimestamp" not in changed["metadata"]


def _check_same(there: Mapping[str, Any], shared: Mapping[str, Any]) -> None:
    """Refuse a ConfigMap under the name of ours that others can change, or that holds something else.

    All users of a namespace share it by its name: whoever made it decides what the containers of all of them run.
    """
    content = ("immutable", "data", "binaryData")
    if all((there.get(key) or None) == (shared.get(key) or None) for key in content):
        return
    name, namespace = shared["metadata"]["name"], shared["metadata"]["namespace"]
    message = f"the ConfigMap {name} in the namespace {namespace} does not hold what its name says"
    hint = f"find out who made it; `kubectl -n {namespace} delete configmap {name}` makes room for the right one"
    raise refuse(message, hint=hint)


def _is_made(api: Api, path: str, manifest: Mapping[str, Any]) -> bool:
    try:
        api.create(path, manifest)
    except ApiError as error:
        if error.status == 409:
            return False
        raise
    return True
