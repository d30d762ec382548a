"""Looks at a cluster once: what it is, what it has, what the user may do there."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from io import BufferedIOBase
from typing import TYPE_CHECKING, Any

from podwright.clients.kubernetes.access import may
from podwright.clients.kubernetes.api import Api, ApiError
from podwright.clients.kubernetes.kinds import ObjectKind
from podwright.clients.kubernetes.names import CODE_FILE, MAX_PIECES
from podwright.clients.kubernetes.paths import path_of
from podwright.clients.kubernetes.quantities import number_of
from podwright.engines.base import Request
from podwright.engines.kubernetes.claims import why_unbound
from podwright.engines.kubernetes.facts import ClaimFacts, KubernetesFacts, KubernetesNodeKind, node_kinds
from podwright.engines.kubernetes.plan import code_pieces
from podwright.engines.kubernetes.run_spec import image_of, kind_of
from podwright.engines.kubernetes.scripts import SCRIPTS, payload_digest
from podwright.engines.payload import pilot_zip
from podwright.pilot.protocol import whole_number

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
    """Look at a cluster; the questions do not wait for each other."""
    claim, image = scheduler.claim, image_of(request.workload, scheduler)
    with ThreadPoolExecutor(max_workers=8) as pool:
        version = pool.submit(api.get, "/version")
        groups = pool.submit(api.get, "/apis")
        space = pool.submit(_allowed, api, path_of("Namespace", None, namespace))
        nodes = pool.submit(_nodes, api)
        claims = pool.submit(_claims, api, namespace)
        rights = pool.submit(_refused, api, request, namespace, claim)
        policies = pool.submit(_may_close, api, namespace)
        payload = of_payload(request.code_tar)
        layered = pool.submit(_layered, image, request.code_tar, payload["code_pieces"])
        kinds = tuple(_kinds(groups.result()))
        queues = _queues(api, namespace, kinds)
        return KubernetesFacts(
            version=_version(version.result()),
            kinds=kinds,
            nodes=nodes.result(),
            claims=claims.result(),
            queues=queues,
            home=api.entry.namespace or "default",
            refused=tuple(right for right in rights.result() if right not in _unknown(request, kinds)),
            policies=policies.result(),
            **_of_namespace(space.result()),
            **payload,
            **layered.result(),
        )


def of_payload(tar: BufferedIOBase | None) -> dict[str, Any]:
    """Return what travels, by its digests."""
    files = {"pilot.pyz": pilot_zip()}
    files |= {name: text.encode() for name, text in SCRIPTS.items()}
    payload = {"payload": payload_digest(files), "code": "", "code_pieces": 0, "code_bytes": 0}
    if tar is None:
        return payload
    digest, sizes = hashlib.sha256(), []
    for piece in code_pieces(tar):
        digest.update(piece)
        sizes.append(len(piece))
    return {**payload, "code": digest.hexdigest()[:12], "code_pieces": len(sizes), "code_bytes": sum(sizes)}


def _layered(image: str, tar: BufferedIOBase | None, pieces: int) -> dict[str, Any]:
    """Return the image for more code than ConfigMaps hold; a registry that does not answer is told of later."""
    if pieces <= MAX_PIECES or tar is None or not image:
        return {}
    from podwright.clients.registry import RegistryError
    from podwright.images.layer import prepare

    try:
        with prepare(image, tar, CODE_FILE) as layered:
            return {"code_image": layered.image}
    except RegistryError as error:
        if error.status not in (401, 403):
            return {"code_refused": str(error)}
        host = image.partition("/")[0]
        return {"code_refused": f"{host} says: {error}; is `podman login {host}` done?"}


def _version(row: dict[str, Any]) -> tuple[int, int]:
    """Return release and minor number, which some vendors write with a plus behind it."""
    digits = re.findall(r"^\d+", str(row["minor"])) or ["0"]
    return int(row["major"]), int(digits[0])


def _kinds(row: dict[str, Any]) -> Iterator[str]:
    for group in row.get("groups") or []:
        if ("." in group["name"] and not group["name"].endswith(".k8s.io")) or group["name"].startswith("kueue."):
            yield from (version["groupVersion"] for version in group["versions"])


def _allowed(api: Api, path: str) -> dict[str, Any] | bool | None:
    """Return the object; None where there is none; True where the user may not look."""
    try:
        return api.find(path)
    except ApiError as error:
        if error.status == 403:
            return True
        raise


def _of_namespace(namespace: dict[str, Any] | bool | None) -> dict[str, Any]:
    if not isinstance(namespace, dict):
        return {"namespace": bool(namespace)}
    metadata = namespace["metadata"]
    uids = str((metadata.get("annotations") or {}).get("openshift.io/sa.scc.uid-range", "")).partition("/")[0]
    enforced = (metadata.get("labels") or {}).get("pod-security.kubernetes.io/enforce", "")
    return {"pod_security": enforced, "uid": whole_number(uids)}


def _items(api: Api, path: str) -> list[dict[str, Any]] | None:
    """Return None where the user may not look."""
    try:
        return api.items(path)[0]
    except ApiError as error:
        if error.status in (403, 404):
            return None
        raise


def _nodes(api: Api) -> tuple[KubernetesNodeKind, ...] | None:
    items = _items(api, path_of("Node", None))
    if items is None:
        return None
    return node_kinds(items)


def _claims(api: Api, namespace: str) -> dict[str, ClaimFacts] | None:
    items = _items(api, path_of("PersistentVolumeClaim", namespace))
    if items is None:
        return None
    claims = {}
    for item in items:
        status = item["status"]
        size = number_of((status.get("capacity") or {}).get("storage", 0))
        reason = ""
        if status.get("phase") == "Pending":
            reason = why_unbound(item, *_volumes(api))
        modes = tuple(status.get("accessModes") or item["spec"].get("accessModes") or ())
        claims[item["metadata"]["name"]] = ClaimFacts(str(status.get("phase")), modes, size, reason)
    return claims


def _volumes(api: Api) -> tuple[list[dict[str, Any]] | None, list[dict[str, Any]] | None]:
    return _items(api, path_of("PersistentVolume", None)), _items(api, path_of("StorageClass", None))


def _queues(api: Api, namespace: str, kinds: Iterable[str]) -> tuple[str, ...] | None:
    """Return the queues of a namespace; Kueue names the release of its kinds that it likes best first."""
    version = next((kind for kind in kinds if kind.startswith("kueue.x-k8s.io/")), None)
    if version is None:
        return None
    items = _items(api, path_of("LocalQueue", namespace, group=version))
    if items is None:
        return None
    return tuple(item["metadata"]["name"] for item in items)


def _unknown(request: Request, kinds: tuple[str, ...]) -> tuple[str, ...]:
    """Return rights that are nobody's to give, since the cluster does not know the kind: that is told instead."""
    kind = kind_of(request.workload)
    if kind.made_by and kind.version not in kinds:
        return (_making(kind),)
    return ()


def _making(kind: ObjectKind) -> str:
    return f"make {kind.name}s"


def _refused(api: Api, request: Request, namespace: str, claim: str | None) -> list[str]:
    """Return what the user may not do of that which the run needs."""
    kind = kind_of(request.workload)
    own = ("create", kind.group, kind.plural, _making(kind))
    carrier = CLAIM_RIGHTS if claim else LOG_RIGHTS
    refused = []
    for verb, group, plural, right in dict.fromkeys([own, *RIGHTS, *carrier]):
        if not may(api, namespace, verb, group, plural):
            refused.append(right)
    return refused


def _may_close(api: Api, namespace: str) -> bool:
    """Return whether the user may keep others from a run's nodes; to apply a NetworkPolicy takes both rights."""
    return all(may(api, namespace, verb, "networking.k8s.io", "networkpolicies") for verb in ("create", "patch"))
