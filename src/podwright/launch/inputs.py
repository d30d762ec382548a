"""Makes paths of what a workload's `data:` names otherwise: selections, and places in a pod's storage."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from podwright.launch import pods
from podwright.launch.session import Session
from podwright.spec.inputs import SELECTION, STORAGE, Input
from podwright.spec.problems import Refusal, refuse

if TYPE_CHECKING:
    from podwright.spec import Pod, Workload

Pinned = dict[str, Any]


def resolve(session: Session, workload: Workload, pod: Pod | None) -> tuple[dict[str, Input], Pinned]:
    """Return where ranks find each input, and what its selections hold just now, by the names of the inputs.

    A selection becomes a folder of links in the home, which is made once for what it holds.
    """
    inputs, pinned, wrong = workload.inputs(), {}, []
    for name, given in inputs.items():
        try:
            if given.kind == "selection":
                inputs[name], pinned[name] = _selection(session, given.text)
            elif given.kind == "storage":
                inputs[name] = _storage(session, given.text, pod)
        except Refusal as refusal:
            problem = refusal.problems[0]
            wrong.append((f"data.{name}", f"{problem.file}: " * bool(problem.file) + problem.message, problem.hint))
    if wrong:
        raise workload.refusal(wrong)
    return inputs, pinned


def _selection(session: Session, text: str) -> tuple[Input, Pinned]:
    from podwright.data.extra import need_packages

    need_packages()
    from podwright.data.links import link
    from podwright.data.selections import check_split, load
    from podwright.data.store import open_store

    name, _, split = text.removeprefix(SELECTION).partition("/")
    store = open_store(session.home.path)
    selection = load(store, name)
    split_or_all = check_split(selection, split or None)
    linked = link(store, selection, split_or_all)
    pin = {"selection": name, "split": split_or_all, "digest": selection.digest}
    return Input("path", str(linked.folder), linked.roots), pin


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
