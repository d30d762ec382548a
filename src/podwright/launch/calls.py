"""Functions as runs: a pickled function travels, and every rank calls it."""

from __future__ import annotations

import pickle
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from podwright.engines.code_files import AlsoTravels
from podwright.engines.payload import Snapshot, bytecode, snapshot
from podwright.launch.call_values import bring_values, early_values
from podwright.launch.run import Run
from podwright.launch.session import Session
from podwright.launch.submission import Submission, prepare, start
from podwright.spec.nearest import one_of
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.runs import Home, Record
    from podwright.spec import Workload

IN_CODE = ".podwright-call"
VALUES = ("pickle", "json")
RESOURCES = ("gpus", "cpus", "memory")
"""What may be given without `resources` around it."""
LONGEST_PAUSE_S = 1.0
LONGEST_QUIET_S, LONGEST_STREAM_S = 10.0, 30.0
"""Without a value, and with values that come, until all runs of a map are looked at."""
LOOK_PAUSES = 50
"""Times as long as it took does a look let pass until the next one."""


def start_call(
    session: Session,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    on: str,
    given: Mapping[str, Any],
    items: Sequence[Any] | None = None,
) -> Run:
    """Start a run whose ranks call a function; with items one run for each, as one array.

    `given` are the fields of a workload, and `values`: how what is returned travels, `pickle` or `json`.
    """
    values = given.get("values", VALUES[0])
    if values not in VALUES:
        raise refuse(f'"{values}" is no form of values', one_of(str(values), "`values`", VALUES), field="values")
    workload = _workload(function, on, {name: field for name, field in given.items() if name != "values"}, items)
    call = _call(function, args, items, values)
    code, run_id = _code(session.home, workload, call), session.home.new_id(workload.name)
    with prepare(session, Submission(workload, on, run_id, code=code)) as prepared:
        return Run(session, start(session, prepared))


def _workload(function: Callable[..., Any], on: str, given: Mapping[str, Any], items: Sequence[Any] | None) -> Workload:
    from podwright.spec.loader import workload_of

    own = {name: value for name, value in given.items() if name not in RESOURCES}
    values: dict[str, Any] = {"name": _name(function), **own}
    if len(own) < len(given):
        values["resources"] = {**own.get("resources", {}), **{name: given[name] for name in RESOURCES if name in given}}
    python = values.pop("python", sys.executable if on == "local" and "image" not in values else "python3")
    command = [str(python), f"{IN_CODE}/call.py", f"{IN_CODE}/call.pkl"]
    if items is not None:
        if not items:
            raise refuse("there are no items to map over")
        values["matrix"] = {"item": list(range(len(items)))}
        command.append("{matrix.item}")
    return workload_of({**values, "command": command}, Path.cwd())


def _name(function: Callable[..., Any]) -> str:
    """Return a run's name that comes near the function's."""
    inner = getattr(function, "func", function)  # of functools.partial
    text = getattr(inner, "__name__", "call").lower().replace("_", "-")
    kept = "".join(letter for letter in text if letter.isascii() and (letter.isalnum() or letter == "-")).strip("-")
    return kept[:40].rstrip("-") or "call"


def _call(
    function: Callable[..., Any], args: tuple[Any, ...], items: Sequence[Any] | None, values: str
) -> dict[str, Any]:
    """Return what `call_rank` reads."""
    import cloudpickle

    return {
        "python": sys.version_info[:2],
        "function": _pickled(function),
        "args": cloudpickle.dumps(args),
        "items": [cloudpickle.dumps(item) for item in items or ()],
        "values": values,
    }


def _code(home: Home, workload: Workload, call: Mapping[str, Any]) -> Snapshot:
    """Pack the call, and what it needs to be unpickled, beside the code that was asked for, if any."""
    import cloudpickle

    from podwright.launch import call_rank

    library = Path(cloudpickle.__file__).parent
    files = {"call.py": Path(call_rank.__file__).read_bytes(), "call.pkl": pickle.dumps(call)}
    for path in library.glob("*.py"):
        name, source = f"cloudpickle/{path.name}", path.read_bytes()
        files[name] = source
        compiled = f"cloudpickle/__pycache__/{path.stem}.{sys.implementation.cache_tag}.pyc"
        files[compiled] = bytecode(source, name)  # each rank would compile it anew
    packed = {f"{IN_CODE}/{name}": data for name, data in files.items()}
    also = AlsoTravels(patterns=workload.include, made=packed, home=home.path.resolve())
    return snapshot(workload.code_folder, also)


def _pickled(function: Callable[..., Any]) -> bytes:
    """Pickle a function; one of a module that is no installed package goes by value, since it is only here."""
    import cloudpickle

    inner = getattr(function, "func", function)  # of functools.partial
    module = sys.modules.get(getattr(inner, "__module__", "") or "")
    by_value = module is not None and module.__name__ != "__main__" and not _is_installed(module)
    if not by_value or module is None:
        return bytes(cloudpickle.dumps(function))
    cloudpickle.register_pickle_by_value(module)
    try:
        return bytes(cloudpickle.dumps(function))
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def _is_installed(module: ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    if file is None:
        return True
    return Path(file).is_relative_to(Path(sys.base_prefix, "lib")) or "site-packages" in Path(file).parts


def values_of(run: Run, trust: bool = False) -> list[Any]:
    """Return the values of all ranks, in their order."""
    return [run.value(rank, trust) for rank in range(run.wait().world_size)]


def values_as_they_come(
    session: Session, run: Run, pause_s: float = 0.2, trust: bool = False
) -> Iterator[tuple[int, Any]]:
    """Yield the number of each item and its value, as they come.

    A value is taken when it is there, even while its run closes its record. That a run failed is seen by a look at all
    of them, which costs their target more.
    """
    waiting = {part.id: part for part in run.parts()}
    turn = LookTurn(pause_s)
    while waiting:
        began = time.monotonic()
        over: dict[str, Record] = {}
        if turn.is_due(began):
            whole, points = run.records()
            over = {record.id: record for record in points or [whole] if record.is_final and record.id in waiting}
            turn.looked(began, time.monotonic())
        here = bring_values(session, [waiting[run_id].folder for run_id in over])
        early, erred = early_values(session, [point.folder for run_id, point in waiting.items() if run_id not in over])
        turn.erred(erred)
        took_s = time.monotonic() - began
        for run_id in [*over, *early]:
            point = waiting.pop(run_id)
            number = int((point.folder.asked.matrix or {})["item"])
            if run_id in early or run_id in here:
                yield number, point.value_here(over.get(run_id), trust=trust)
            else:  # another client is at it just now, or its target is away: that is waited for, but not for ever
                yield number, point.value(trust=trust)
        if over or early:
            turn.came(time.monotonic())
        if waiting:
            time.sleep(max(pause_s, min(took_s, LONGEST_PAUSE_S)))


class LookTurn:
    """When it is time to look at all points: when no value came for a while, and now and then although some do."""

    def __init__(self, least_s: float) -> None:
        self._least_s = self._quiet_s = least_s
        self._looked_at = self._came_at = -LONGEST_STREAM_S
        self._erred: set[str] = set()

    def is_due(self, now: float) -> bool:
        """Return whether a look is due."""
        if now - self._looked_at >= LONGEST_STREAM_S:
            return True
        return now - max(self._looked_at, self._came_at) >= self._quiet_s

    def looked(self, began: float, ended: float) -> None:
        """Note a look: one that took long is followed by a long pause."""
        self._looked_at = ended
        self._quiet_s = min(max(self._least_s, LOOK_PAUSES * (ended - began)), LONGEST_QUIET_S)

    def erred(self, runs: set[str]) -> None:
        """Note who has erred: whether that is the end of a run is seen by a look."""
        if runs - self._erred:
            self._looked_at = -LONGEST_STREAM_S
        self._erred |= runs

    def came(self, now: float) -> None:
        """Note that values came: those who wrote them are well."""
        self._came_at = now
