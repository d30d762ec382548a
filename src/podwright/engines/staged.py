"""Inputs of a run that its pilots bring to their nodes, as a request and an order have them. Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from podwright.spec.inputs import SELECTION
from podwright.theme.words import format_size

if TYPE_CHECKING:
    from podwright.spec import Pod, Workload


@dataclass(frozen=True)
class StagedData:
    """An input that the pilots bring to their nodes: its manifest, and what it takes to read its source."""

    manifest: bytes
    site: Mapping[str, str]
    size_bytes: int
    paths: tuple[str, ...]
    """The folders that the files lie in, which nodes must see; none of what lies behind an address."""
    verify: bool = False
    """What nodes have of it already is read again and compared."""


Staged = Mapping[str, StagedData]
"""By the name of the input."""


def manifests(staged: Staged) -> dict[str, bytes]:
    """Return the manifests by the names of their files beside the order."""
    return {_file(name): given.manifest for name, given in staged.items()}


def _file(name: str) -> str:
    return f"data-{name}.gz"


def staged_entries(staged: Staged, folder: str) -> list[dict[str, Any]]:
    """Return what the order says of these inputs; `folder` is where it finds the manifests."""
    entries = []
    for name, given in sorted(staged.items()):
        digest = hashlib.sha256(given.manifest).hexdigest()
        entry = {"name": name, "manifest": f"{folder}{_file(name)}", "sha256": digest, "site": dict(given.site)}
        entries.append({**entry, "verify": True} if given.verify else entry)
    return entries


def cache_of(staged: Staged, workload: Workload, pod: Pod) -> dict[str, Any] | None:
    """Return where the nodes of a pod keep what is staged, as the order says it; refuse a cache that is too small."""
    if not staged:
        return None
    space, need = pod.cache, sum(given.size_bytes for given in staged.values())
    if space.size_bytes is not None and need > space.size_bytes:
        message = f"{format_size(need)} of data are more than the {format_size(space.size_bytes)} of a node's cache"
        raise workload.refusal([("data", message, "choose fewer samples, or give `cache: size:` of the pod more")])
    return {"path": space.path or "", "bytes": space.size_bytes}


def check_data(workload: Workload, paths: Iterable[tuple[str, str]], missing: Sequence[str]) -> None:
    """Refuse inputs of whose paths the nodes of a cluster do not have one."""
    problems = []
    for name, path in paths:
        if path not in missing:
            continue
        hint = "an absolute path must be there already; a relative one inside `code:` travels with the run"
        if workload.data[name].startswith(SELECTION):
            hint = "`podwright data stage` copies a selection to a folder that the nodes see; scan it there"
        problems.append((f"data.{name}", f"{path} is not on the cluster", hint))
    if problems:
        raise workload.refusal(problems)
