"""What is known of a cluster and a namespace before anything is planned; None where the user may not look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from podwright.clients.kubernetes.quantities import number_of


@dataclass(frozen=True)
class KubernetesNodeKind:
    """Nodes that offer the same."""

    count: int
    resources: dict[str, int]
    """Allocatable: `cpu` in cores, `memory` in bytes, devices by their name."""


@dataclass(frozen=True)
class ClaimFacts:
    """A volume claim of the namespace."""

    phase: str
    modes: tuple[str, ...] = ()
    bytes: int = 0
    words: str = ""
    """Why it is not bound."""


@dataclass(frozen=True)
class KubernetesFacts:
    """What was found out about a cluster, and a namespace of it."""

    version: tuple[int, int]
    payload: str
    """Digest of the pilot and its scripts."""
    code: str = ""
    """Digest of the code as it travels."""
    code_pieces: int = 0
    code_bytes: int = 0
    code_image: str = ""
    """The image with the code as its last layer, where that is more than ConfigMaps hold."""
    code_refused: str = ""
    """Why there is no such image, where one is needed."""
    kinds: tuple[str, ...] = ()
    """Groups and versions there are beyond Kubernetes, such as kubeflow.org/v2beta1."""
    nodes: tuple[KubernetesNodeKind, ...] | None = None
    claims: dict[str, ClaimFacts] | None = None
    queues: tuple[str, ...] | None = None
    home: str = "default"
    """The namespace of the user's own context."""
    namespace: bool = True
    pod_security: str = ""
    uid: int | None = None
    """The first user id of the namespace, on OpenShift."""
    refused: tuple[str, ...] = ()
    """What the user may not do of that which a run needs."""
    policies: bool = True
    """The user may make NetworkPolicies."""

    def has(self, group: str) -> bool:
        """Return whether the cluster serves an API group."""
        return any(kind.startswith(f"{group}/") for kind in self.kinds)

    def resource_names(self) -> list[str]:
        """Return the names of all that any node offers."""
        names: set[str] = set()
        for kind in self.nodes or ():
            names |= {name for name, most in kind.resources.items() if most > 0}
        return sorted(names)

    def most(self, resource: str) -> int:
        """Return the most of a resource that one node offers."""
        return max((kind.resources.get(resource, 0) for kind in self.nodes or ()), default=0)

    def as_json(self) -> dict[str, Any]:
        """Return the facts as plain data, which `facts_from_json` takes."""
        return asdict(self)


def facts_from_json(row: Mapping[str, Any]) -> KubernetesFacts:
    """Return the facts that `as_json` wrote."""
    values = dict(row)
    values["version"] = tuple(values["version"])
    if values.get("nodes") is not None:
        values["nodes"] = tuple(KubernetesNodeKind(**kind) for kind in values["nodes"])
    if values.get("claims") is not None:
        values["claims"] = {name: _claim_from_json(claim) for name, claim in values["claims"].items()}
    for name in ("kinds", "refused", "queues"):
        if values.get(name) is not None:
            values[name] = tuple(values[name])
    return KubernetesFacts(**values)


def _claim_from_json(row: Mapping[str, Any]) -> ClaimFacts:
    return ClaimFacts(**{**row, "modes": tuple(row.get("modes", ()))})


def node_kinds(items: list[dict[str, Any]]) -> tuple[KubernetesNodeKind, ...]:
    """Return the nodes that work may go to, alike ones together; the most there are of come first."""
    counts: dict[tuple[tuple[str, int], ...], int] = {}
    for node in items:
        conditions = node["status"].get("conditions", [])
        ready = any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
        if not ready or node["spec"].get("unschedulable"):
            continue
        offered = node["status"].get("allocatable", {})
        kept = {name: number_of(value) for name, value in offered.items() if name in ("cpu", "memory") or "/" in name}
        key = tuple(sorted(kept.items()))
        counts[key] = counts.get(key, 0) + 1
    ordered = sorted(counts.items(), key=lambda row: (-row[1], row[0]))
    return tuple(KubernetesNodeKind(count, dict(key)) for key, count in ordered)
