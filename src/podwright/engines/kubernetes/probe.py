"""Looks at a cluster once: what it is, what it has, what the user may do there."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from podwright.clients.kubernetes.access import may
from podwright.clients.kubernetes.api import Api, ApiError
from podwright.clients.kubernetes.kinds import ObjectKind
from podwright.clients.kubernetes.names import CODE_FILE, MOST_PIECES
from podwright.clients.kubernetes.paths import path_of
from podwright.clients.kubernetes.quantities import number_of
from podwright.engines.base import Request
from podwright.engines.kubernetes.claims import why_unbound
from podwright.engines.kubernetes.facts import ClaimFacts, KubernetesFacts, node_kinds
from podwright.engines.kubernetes.plan import code_pieces
from podwright.engines.kubernetes.run_spec import image_of, kind_of
from podwright.engines.kubernetes.scripts import SCRIPTS, payload_digest
from podwright.engines.payload import compiled_name, compiled_pilot, pilot_zip

if TYPE_CHECKING:
    from podwright.spec import KubernetesScheduler

RIGHTS = (
    ("create", "", "configmaps", "make ConfigMaps"),
    ("create", "", "secrets", "make Secrets"),
    ("create", "", "services", "make Services"),
    ("list", "", "pods", "see Kubernetes pods"),
)
CLAIM_RIGHTS = (
    ("create", "", "pods/exec", "run commands in containers"),
    ("create", "batch", "jobs", "make Jobs"),
)
LOG_RIGHTS = (("get", "", "pods/log", "read what containers print"),)


def probe(api: Api, request: Request, namespace: str, scheduler: KubernetesScheduler) -> KubernetesFacts:
    """The questions do not wait for each other."""
    claim, image = scheduler.claim, image_of(request.workload, scheduler)
    with ThreadPoolExecutor(max_workers=7) as pool:
        version = pool.submit(api.get, "/version")
        groups = pool.submit(api.get, "/apis")
        space = pool.submit(_allowed, api, path_of("Namespace", None, namespace))
        nodes = pool.submit(_items, api, path_of("Node", None))
        claims = pool.submit(_claims, api, namespace)
        rights = pool.submit(_refused, api, request, namespace, claim)
        payload = of_payload(request.code_tar)
        layered = pool.submit(_layered, image, request.code_tar, payload["code_pieces"])
        kinds = tuple(_kinds(groups.result()))
        queues = _queues(api, namespace, kinds)
        found = nodes.result()
        return KubernetesFacts(
            version=_version(version.result()),
            kinds=kinds,
            nodes=node_kinds(found) if found is not None else None,
            claims=claims.result(),
            queues=queues,
            home=api.entry.namespace or "default",
            refused=tuple(words for words in rights.result() if words not in _unknown(request, kinds)),
            **_of_namespace(space.result()),
            **payload,
            **layered.result(),
        )


def of_payload(tar: bytes | None) -> dict[str, Any]:
    """What travels, by its digests."""
    files = {"pilot.pyz": pilot_zip(), compiled_name(): compiled_pilot()}
    files |= {name: text.encode() for name, text in SCRIPTS.items()}
    pieces = code_pieces(tar) if tar is not None else []
    return {
        "payload": payload_digest(files),
        "compiled": compiled_name(),
        "code": hashlib.sha256(b"".join(pieces)).hexdigest()[:12] if pieces else "",
        "code_pieces": len(pieces),
        "code_bytes": sum(map(len, pieces)),
    }


def _layered(image: str, tar: bytes | None, pieces: int) -> dict[str, Any]:
    """More code than ConfigMaps hold goes with the image; a registry that does not answer is told of later."""
    if pieces <= MOST_PIECES or tar is None or not image:
        return {}
    from podwright.clients.registry import RegistryError
    from podwright.images.layer import prepare

    try:
        return {"code_image": prepare(image, tar, CODE_FILE).image}
    except RegistryError as error:
        host = image.partition("/")[0]
        closed = f"{host} says: {error}; is `podman login {host}` done?"
        return {"code_refused": closed if error.status in (401, 403) else str(error)}


def _version(row: dict[str, Any]) -> tuple[int, int]:
    minor = re.match(r"\d+", str(row["minor"]))
    return int(row["major"]), int(minor[0]) if minor else 0


def _kinds(row: dict[str, Any]) -> Iterator[str]:
    for group in row.get("groups") or []:
        if ("." in group["name"] and not group["name"].endswith(".k8s.io")) or group["name"].startswith("kueue."):
            yield from (version["groupVersion"] for version in group["versions"])


def _allowed(api: Api, path: str) -> dict[str, Any] | bool | None:
    """The object; None where there is none; True where the user may not look."""
    try:
        return api.find(path)
    except ApiError as error:
        if error.status == 403:
            return True
        raise


def _of_namespace(found: dict[str, Any] | bool | None) -> dict[str, Any]:
    if not isinstance(found, dict):
        return {"namespace": bool(found)}
    metadata = found["metadata"]
    uids = str((metadata.get("annotations") or {}).get("openshift.io/sa.scc.uid-range", "")).partition("/")[0]
    enforced = (metadata.get("labels") or {}).get("pod-security.kubernetes.io/enforce", "")
    return {"pod_security": enforced, "uid": int(uids) if uids.isdigit() else None}


def _items(api: Api, path: str) -> list[dict[str, Any]] | None:
    """None where the user may not look."""
    try:
        return api.items(path)[0]
    except ApiError as error:
        if error.status in (403, 404):
            return None
        raise


def _claims(api: Api, namespace: str) -> dict[str, ClaimFacts] | None:
    items = _items(api, path_of("PersistentVolumeClaim", namespace))
    if items is None:
        return None
    found = {}
    for item in items:
        status = item["status"]
        size = number_of((status.get("capacity") or {}).get("storage", 0))
        words = why_unbound(item, *_volumes(api)) if status.get("phase") == "Pending" else ""
        modes = tuple(status.get("accessModes") or item["spec"].get("accessModes") or ())
        found[item["metadata"]["name"]] = ClaimFacts(str(status.get("phase")), modes, size, words)
    return found


def _volumes(api: Api) -> tuple[list[dict[str, Any]] | None, list[dict[str, Any]] | None]:
    return _items(api, path_of("PersistentVolume", None)), _items(api, path_of("StorageClass", None))


def _queues(api: Api, namespace: str, kinds: Iterable[str]) -> tuple[str, ...] | None:
    """Kueue names the release of its kinds that it likes best first."""
    version = next((kind for kind in kinds if kind.startswith("kueue.x-k8s.io/")), None)
    items = _items(api, path_of("LocalQueue", namespace, group=version)) if version else None
    return tuple(item["metadata"]["name"] for item in items) if items is not None else None


def _unknown(request: Request, kinds: tuple[str, ...]) -> tuple[str, ...]:
    """The right to make what the cluster does not know is nobody's to give: that it lacks it is told instead."""
    kind = kind_of(request.workload)
    return (_making(kind),) if kind.made_by and kind.version not in kinds else ()


def _making(kind: ObjectKind) -> str:
    return f"make {kind.name}s"


def _refused(api: Api, request: Request, namespace: str, claim: str | None) -> list[str]:
    """What the user may not do of that which the run needs."""
    made = kind_of(request.workload)
    own = ("create", made.group, made.plural, _making(made))
    wanted = [own, *RIGHTS, *(CLAIM_RIGHTS if claim else LOG_RIGHTS)]
    return [words for verb, group, kind, words in dict.fromkeys(wanted) if not may(api, namespace, verb, group, kind)]
