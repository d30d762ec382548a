"""Why a claim has no volume: what Kubernetes looks at, volume by volume."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from podwright.clients.kubernetes.quantities import number_of
from podwright.theme.words import format_size


def why_unbound(
    claim: Mapping[str, Any], volumes: Sequence[Mapping[str, Any]] | None, classes: Sequence[Mapping[str, Any]] | None
) -> str:
    """Return why a claim has no volume; nothing where it can still get one, or where the user may not look."""
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
    """Return why a class gives no volume; a volume may name a class that is no object, and is then there already."""
    known = {row["metadata"]["name"]: row for row in classes or ()}
    if wanted not in known:
        if classes is None or volumes is None:
            return ""
        if any(volume["spec"].get("storageClassName") == wanted for volume in volumes):
            return _why_of_volumes(claim, volumes)
        return f"there is no storage class {wanted}; there are {', '.join(known) or 'none'}"
    if known[wanted]["provisioner"] == "kubernetes.io/no-provisioner" and volumes is not None:
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
    counted = [f"{count} {reason}" for reason, count in sorted(reasons.items(), key=lambda row: -row[1])]
    return f"no volume fits: {', '.join(counted)}"


def misfits(claim: Mapping[str, Any], volume: Mapping[str, Any]) -> Iterator[str]:
    """Yield what keeps a claim from this volume, as Kubernetes looks at it: class, labels, modes, size, its owner."""
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
