"""Makes paths of what a workload's `data:` names otherwise: selections, and places in a pod's storage."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from podwright.engines.staged import StagedData
from podwright.launch import pods
from podwright.launch.session import Session
from podwright.spec.inputs import SELECTION, STORAGE, Input
from podwright.spec.problems import Refusal, refuse

if TYPE_CHECKING:
    from podwright.data.selecting.selections import Selection
    from podwright.data.selecting.verifying import Verified
    from podwright.spec import Pod, Workload

Pinned = dict[str, Any]


@dataclass(frozen=True)
class Resolved:
    """Where ranks find each input, what its selections hold just now, and what the pilots must bring, by input."""

    inputs: dict[str, Input]
    pinned: Pinned
    staged: dict[str, StagedData]
    verified: dict[str, Any] | None
    """How the files of its selections were compared with those that were chosen; None where it has none."""


def resolve(session: Session, workload: Workload, pod: Pod | None, sees_home: bool, verify: bool = False) -> Resolved:
    """Return what becomes of each input on a target; `sees_home` says whether its ranks see this session's home.

    A selection of files that they see becomes a folder of links in the home, made once for what it holds; any other is
    staged by the pilots. `verify` has all bytes compared, and not only those of files that somebody touched.
    """
    inputs, wrong = workload.inputs(), []
    pinned: Pinned = {}
    staged: dict[str, StagedData] = {}
    compared: list[Verified] = []
    for name, given in inputs.items():
        try:
            if given.kind == "selection":
                selection, split = _selection(session, given.text)
                pinned[name] = {"selection": selection.name, "split": split, "digest": selection.digest}
                if sees_home and not selection.roots.has_address:
                    inputs[name], verified = _linked(session, selection, split, verify)
                else:
                    staged[name], verified = _staged(workload, selection, split, verify)
                    inputs[name] = Input("staged", os.fsdecode(selection.root))
                compared.append(verified)
            elif given.kind == "storage":
                inputs[name] = _storage(session, given.text, pod)
        except Refusal as refusal:
            problem = refusal.problems[0]
            wrong.append((f"data.{name}", f"{problem.file}: " * bool(problem.file) + problem.message, problem.hint))
    if wrong:
        raise workload.refusal(wrong)
    return Resolved(inputs, pinned, staged, _summed(compared))


def _summed(compared: list[Verified]) -> dict[str, Any] | None:
    return sum(compared[1:], compared[0]).as_json() if compared else None


def _selection(session: Session, text: str) -> tuple[Selection, str | None]:
    from podwright.data.extra import need_packages

    need_packages()
    from podwright.data.catalog.store import open_store
    from podwright.data.selecting.selections import check_split, load

    name, _, split = text.removeprefix(SELECTION).partition("/")
    store = open_store(session.home.path)
    selection = load(store, name)
    return selection, check_split(selection, split or None)


def _linked(session: Session, selection: Selection, split: str | None, verify: bool) -> tuple[Input, Verified]:
    from podwright.data.catalog.store import Store
    from podwright.data.selecting.links import link

    linked = link(Store(session.home.path), selection, split, verify)
    return Input("path", str(linked.folder), linked.roots), linked.verified


def _staged(workload: Workload, selection: Selection, split: str | None, verify: bool) -> tuple[StagedData, Verified]:
    from podwright.data.selecting.manifests import make_manifest
    from podwright.data.selecting.verifying import will_be_verified

    for _, root in selection.roots:
        _check_keys(workload, root)
    verified = will_be_verified(selection, split, verify)
    manifest = make_manifest(selection, split)
    paths = tuple(map(os.fsdecode, selection.roots.folders))
    return StagedData(manifest.data, manifest.site, manifest.size_bytes, paths, verify), verified


def _check_keys(workload: Workload, root: bytes) -> None:
    """Refuse a run that does not name the keys by which its data is read."""
    from podwright.data.selecting.manifests import unnamed_keys

    unnamed = unnamed_keys(root, workload.secrets, os.environ)
    if unnamed:
        message = f"{os.fsdecode(root)} is read with keys that the run does not name"
        raise refuse(message, hint=f"secrets: [{', '.join(unnamed)}]")


def _storage(session: Session, text: str, pod: Pod | None) -> Input:
    """Return the path of `data://POD/STORAGE/PATH` where nodes of that pod see it."""
    pod_name, _, rest = text.removeprefix(STORAGE).partition("/")
    storage_name, _, path = rest.partition("/")
    if not pod_name or not storage_name or ".." in PurePosixPath(path).parts:
        raise refuse(f'"{text}" names no place in a pod\'s storage', hint="write it like `data://POD/STORAGE/PATH`")
    if pod is None or pod.name != pod_name:
        pod = pods.find(session.home, pod_name)
    for storage in pod.storage:
        if storage.name == storage_name and storage.mount:
            return Input("path", str(PurePosixPath(storage.mount) / path))
    mounted = ", ".join(storage.name for storage in pod.storage if storage.mount) or "none"
    raise refuse(f"the pod {pod_name} mounts no storage {storage_name}", hint=f"storage that is mounted: {mounted}")
