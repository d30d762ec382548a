"""Podwright takes a GPU pod from drawing board to trained model.

import podwright

run = podwright.run(podwright.load("examples/segmentation.yaml"))
print(run.wait().state, run.result()["mean_iou"])
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from podwright.pilot import __version__

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from podwright.launch import Run, Session
    from podwright.runs import Record
    from podwright.spec import Pod, Refusal, Workload

__all__ = ["Pod", "Record", "Refusal", "Run", "Session", "Workload", "__version__", "find", "load", "run"]

_HOMES = {
    "Pod": "podwright.spec",
    "Record": "podwright.runs",
    "Refusal": "podwright.spec",
    "Run": "podwright.launch",
    "Session": "podwright.launch",
    "Workload": "podwright.spec",
}


def load(path: str | Path, sets: Iterable[str] = ()) -> Workload:
    """Read a workload file; `sets` are changes such as `resources.gpus=4`. Raises Refusal with all problems at once."""
    from podwright.spec import load_workload

    return load_workload(path, sets)


def run(workload: Workload | str | Path, on: str = "local", repeat: int = 1, after: Run | str | None = None) -> Run:
    """Start a workload, or a workload file, on a target; returns once it is submitted. It outlives this program."""
    from podwright import launch
    from podwright.spec import Workload

    loaded = workload if isinstance(workload, Workload) else load(workload)
    before = after if isinstance(after, str) or after is None else after.id
    return launch.start(_session(), loaded, on=on, repeat=repeat, after=before)


def find(ref: str = "last") -> Run:
    """Return a run that is there already: its id, an unambiguous start of it, or `last`."""
    from podwright import launch

    return launch.find(_session(), ref)


def _session() -> Session:
    """Return the session of the user's home: one for all that a program does, so that its runs share their engines."""
    from podwright.runs.store import default_home

    return _session_of(default_home())


@lru_cache(maxsize=4)
def _session_of(home: Path) -> Session:
    from podwright.launch import Session

    return Session.open(home)


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: a command that needs no pydantic does not pay for it."""
    if name not in _HOMES:
        raise AttributeError(f"module 'podwright' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
