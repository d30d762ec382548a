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
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime, timedelta
    from pathlib import Path

    from podwright.bringup import Bringup, BringupProgress
    from podwright.data import Catalog, CatalogLauncher
    from podwright.launch import Run, Session
    from podwright.launch.run_list import RunList
    from podwright.launch.run_options import RunOptions
    from podwright.runs import Record
    from podwright.spec import Pod, Refusal, Workload

__all__ = [
    "Bringup",
    "CallFailed",
    "CallRetry",
    "Executor",
    "Pod",
    "Record",
    "Refusal",
    "Run",
    "RunOptions",
    "Session",
    "Workload",
    "__version__",
    "as_completed",
    "bringup_of",
    "call",
    "catalog",
    "find",
    "list_runs",
    "load",
    "log",
    "map",
    "run",
    "submit",
]

_HOMES = {
    "Bringup": "podwright.bringup",
    "CallFailed": "podwright.launch.call_values",
    "CallRetry": "podwright.launch.executor",
    "Executor": "podwright.launch.executor",
    "Pod": "podwright.spec",
    "Record": "podwright.runs",
    "Refusal": "podwright.spec",
    "Run": "podwright.launch",
    "RunOptions": "podwright.launch.run_options",
    "Session": "podwright.launch",
    "Workload": "podwright.spec",
}


def load(given: str | Path | Mapping[str, Any], sets: Iterable[str] = ()) -> Workload:
    """Read a workload file, or check a dict with the fields of one; `sets` are changes such as `resources.gpus=4`.

    Raises Refusal with all problems at once. Paths in a dict are relative to the current folder.
    """
    from pathlib import Path

    from podwright.spec import load_workload
    from podwright.spec.loader import workload_of

    if isinstance(given, (str, Path)):
        return load_workload(given, sets)
    return workload_of(given, Path.cwd(), sets)


def run(
    workload: Workload | str | Path | Mapping[str, Any] | None = None,
    options: RunOptions | None = None,
    **keywords: Any,
) -> Run:
    """Start a workload, its file or its dict, and return once it is submitted. It outlives this program.

    Keywords are those of RunOptions: `on="adas"`, `sets=["nodes=4"]`, `like="last"`, `tags=["paper"]`, ...
    """
    from dataclasses import replace

    from podwright.launch.run_options import RunOptions, start_with
    from podwright.spec import Workload

    def load_it(sets: Iterable[str]) -> Workload:
        if isinstance(workload, Workload):
            if sets:
                raise TypeError("`sets` change a file or a dict, not a Workload: give them to podwright.load")
            return workload
        return load(workload or {}, sets)

    said = replace(options or RunOptions(), **keywords)
    return start_with(_session(), None if workload is None else load_it, said)


def find(ref: str = "last") -> Run:
    """Return a run that is there already: its id, an unambiguous start of it, or `last`."""
    from podwright import launch

    return launch.find(_session(), ref)


def list_runs(
    state: str | None = None,
    name: str | None = None,
    on: str | None = None,
    since: datetime | timedelta | None = None,
) -> RunList:
    """Return the runs there are, oldest first; all, or those in a state, of a name, on a target, since a time."""
    import time
    from datetime import timedelta

    from podwright import launch
    from podwright.launch.run_list import RunList

    earliest = None
    if isinstance(since, timedelta):
        earliest = time.time() - since.total_seconds()
    elif since is not None:
        earliest = since.timestamp()
    session = _session()
    records = launch.recent(session, None, launch.RunChoice(state, name, on, earliest))
    return RunList(launch.Run(session, record.id) for record in records)


def submit(function: Callable[..., Any], *args: Any, on: str = "local", **workload: Any) -> Run:
    """Start a run whose ranks call a function, and return it: `run.value()` waits for what the function returns.

    `workload` has fields of a workload file, such as `nodes=2`; `gpus`, `cpus` and `memory` may stand by themselves.
    `values="json"` has the value travel as JSON, else it is pickled. Keywords of the function are given by
    functools.partial.
    """
    from podwright.launch import calls

    return calls.start_call(_session(), function, args, on, workload)


def as_completed(runs: Iterable[Run], timeout_s: float | None = None) -> Iterator[Run]:
    """Yield runs as they end; raise TimeoutError where some have not by then.

    Futures of an Executor go into `as_completed` of `concurrent.futures`.
    """
    from podwright.launch.ending import as_they_end

    return as_they_end(_session(), list(runs), timeout_s)


def call(
    function: Callable[..., Any],
    *args: Any,
    on: str = "local",
    all_ranks: bool = False,
    trust: bool = False,
    **workload: Any,
) -> Any:
    """Call a function in a run, and return rank 0's value, or a list of all ranks'; raises CallFailed where it failed.

    The fields are those of `submit`. From a container or a cluster only plain types and arrays of numpy are read,
    unless it is trusted: to unpickle any other value can run any code here.
    """
    from podwright.launch import calls

    started = submit(function, *args, on=on, **workload)
    return calls.values_of(started, trust) if all_ranks else started.value(trust=trust)


def map(
    function: Callable[..., Any],
    items: Iterable[Any],
    *args: Any,
    on: str = "local",
    trust: bool = False,
    **workload: Any,
) -> Iterator[Any]:
    """Call a function with each item, as one array of runs, and yield the values as they come, as `call` reads them."""
    from podwright.launch import calls

    session = _session()
    started = calls.start_call(session, function, args, on, workload, list(items))
    return (value for _, value in calls.values_as_they_come(session, started, trust=trust))


def catalog(session: Session | None = None) -> Catalog:
    """Return the datasets, selections and policies of the user's home, or of a session's."""
    from podwright.data import Catalog
    from podwright.runs import Home

    def launcher() -> CatalogLauncher:
        from podwright.launch.catalogs import SessionLauncher

        return SessionLauncher(session or _session())

    home = session.home if session else Home.open()
    return Catalog.of_home(home.path, launcher)


def bringup_of(
    pod: Pod | str | Path, on_progress: Callable[[BringupProgress], None] | None = None, accepts_untested: bool = False
) -> Bringup:
    """Return what brings a pod up: a pod, its file, or the name of one that is known; by this nothing is asked yet."""
    from podwright import bringup
    from podwright.bringup.progress import ignore
    from podwright.launch import pods
    from podwright.runs import Home
    from podwright.spec import Pod

    home = Home.open()
    loaded = pod if isinstance(pod, Pod) else pods.find(home, str(pod))
    parts = bringup.BringupParts(bringup.vault_of(home.path, loaded.name), pods.HomePods(home))
    return bringup.Bringup(loaded, parts, on_progress or ignore, accepts_untested)


def log(**values: float) -> None:
    """Tell values from inside a program, as the line that any program may print: `log(step=120, loss=0.41)`."""
    import json

    print(json.dumps({"podwright": values}), flush=True)


def _session() -> Session:
    """Return the session of the user's home: one for all that a program does, so that its runs share their engines."""
    from podwright.runs.store import default_home

    return _session_of(default_home())


@lru_cache(maxsize=4)
def _session_of(home: Path) -> Session:
    return _with_reports().open(home)


class _Reports:
    """Writes reports for runs: a band above theirs does."""

    def write(self, runs: Sequence[Any]) -> Path:
        from importlib import import_module  # by its name, as bands beneath reports import this package

        path: Path = import_module("podwright.report").write_report(runs)
        return path


def _with_reports() -> type[Session]:
    from podwright.launch import Session

    Session.reports = _Reports()
    return Session


def __getattr__(name: str) -> Any:
    """Import a name when it is first used: a command that needs no pydantic does not pay for it."""
    if name not in _HOMES:
        raise AttributeError(f"module 'podwright' has no attribute {name!r}")
    if name == "Session":
        return _with_reports()
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)
