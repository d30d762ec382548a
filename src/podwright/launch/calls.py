"""Functions as runs: a pickled function travels, and every rank calls it."""

from __future__ import annotations

import pickle
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from podwright.engines.code_files import AlsoTravels
from podwright.engines.payload import Snapshot, bytecode, snapshot
from podwright.launch.run import Run
from podwright.launch.session import Session
from podwright.launch.submission import Submission, prepare, start
from podwright.launch.value_watch import ValueWatch
from podwright.spec.nearest import one_of
from podwright.spec.problems import refuse

if TYPE_CHECKING:
    from podwright.runs import Home
    from podwright.spec import Workload

IN_CODE = ".podwright-call"
VALUES = ("pickle", "json")
_PICKLING = threading.Lock()
"""Which modules go by value is noted for all threads at once."""
RESOURCES = ("gpus", "cpus", "memory")
"""What may be given without `resources` around it."""


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

    with _by_value(function):
        return {
            "python": sys.version_info[:2],
            "function": cloudpickle.dumps(function),
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


@contextmanager
def _by_value(function: Callable[..., Any]) -> Iterator[None]:
    """Have what a function's module defines travel by value, its classes too: that module may be only here."""
    import cloudpickle

    inner = getattr(function, "func", function)  # of functools.partial
    module = sys.modules.get(getattr(inner, "__module__", "") or "")
    if module is None or module.__name__ == "__main__" or _is_installed(module):
        yield
        return
    with _PICKLING:
        cloudpickle.register_pickle_by_value(module)
        try:
            yield
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
    """Yield the number of each item and its value, as they come."""
    watch = ValueWatch(session, pause_s)
    for part in run.parts():
        watch.add(part)
    while watch.waiting:
        for come in watch.look():
            yield int((come.run.folder.asked.matrix or {})["item"]), come.value(trust)
        watch.rest()
