"""Targets: `local`, or `POD[:SCHEDULER]`; from a name, or from a run that went there before."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from podwright.engines import ENGINES, SCHEDULERS, Engine
from podwright.launch import pods
from podwright.runs import Home, RunFolder
from podwright.spec.problems import Refusal, refuse

if TYPE_CHECKING:
    from podwright.spec import Pod

POD_FILE = Path("spec", "pod.yaml")
_KNOWN: dict[tuple[bytes, str | None], Engine] = {}
"""One engine for all runs of a pod: what it asked the cluster a moment ago answers for all of them."""
_OF_RUN: dict[Path, Engine] = {}
"""The engine of a run and of its points, which do not read the pod again."""


def find_target(home: Home, target: str) -> tuple[Engine, Pod | None]:
    """The engine a user names, and its pod."""
    if target in ENGINES:
        return ENGINES[target](), None
    name, _, scheduler = target.partition(":")
    try:
        pod = pods.find(home, name)
    except Refusal as refusal:
        if name.endswith((".yaml", ".yml")):
            raise
        targets = ", ".join(["local", *pods.known(home)])
        raise refuse(f"there is no target {target!r}", hint=f"targets here: {targets}", field="--on") from refusal
    return engine_for(pod, scheduler or None), pod


def engine_for(pod: Pod, scheduler: str | None) -> Engine:
    kind = pod.scheduler(scheduler).kind
    if kind not in SCHEDULERS:
        raise refuse(f"the pod {pod.name} runs {kind}, and Podwright has no engine for it", field="--on")
    return SCHEDULERS[kind](pod, scheduler)


def engine_of(folder: RunFolder) -> Engine:
    """The engine a run went to, from its own copy of the pod: the file may have changed or gone since."""
    target = folder.asked.target
    if target in ENGINES:
        return _KNOWN.setdefault((target.encode(), None), ENGINES[target]())
    whole = folder.path.parent / (folder.asked.parent or folder.id)
    if whole not in _OF_RUN:
        _OF_RUN[whole] = _read(whole / POD_FILE, target.rpartition(":")[2] if ":" in target else None)
    return _OF_RUN[whole]


def _read(path: Path, scheduler: str | None) -> Engine:
    try:
        key = (path.read_bytes(), scheduler)
    except OSError as error:
        raise refuse(f"{path} cannot be read: {error.strerror}", hint="`podwright rm` removes the run") from None
    if key not in _KNOWN:
        from podwright.spec import load_pod

        _KNOWN[key] = engine_for(load_pod(path), scheduler)
    return _KNOWN[key]
