"""Running a suite: cell by cell in turn, each run noted before it starts, so that a killed client repeats nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path

from podwright.files.locks import only
from podwright.files.whole import make_private
from podwright.launch import Run, Session, find, start
from podwright.prove.suite_file import SuiteFile, distinct_names, workload_of
from podwright.prove.suite_folder import CellKey, SuiteFolder, Trial, key_json
from podwright.runs import Record
from podwright.spec import Workload
from podwright.spec.problems import Refusal, refuse

Told = Callable[[int, int, CellKey, str], None]
"""Told of each run that ended: which of how many, whose it is, how it ended and which run it was."""


@dataclass(frozen=True)
class Plan:
    """The cells of a suite with the workload of each, in the order of the file."""

    suite: SuiteFile
    path: Path
    cells: Mapping[CellKey, Workload]


def plan_suite(suite: SuiteFile, path: Path) -> Plan:
    """Lay the matrix out; every workload is read, so that what is wrong is said before anything is run."""
    path = path.absolute()
    folder, cells, names = path.parent, {}, {}
    for file in suite.workloads:
        names[file] = workload_of(folder, file, []).name
    distinct_names(names, str(path))
    axes = (suite.workloads, suite.targets, suite.runtimes or ("",), suite.sizes or (0,), suite.images or ("",))
    for file, target, runtime, size, image in product(*axes):
        sets = {"runtime": runtime, "nodes": size, "image": image}
        workload = workload_of(folder, file, [f"{name}={value}" for name, value in sets.items() if value])
        key = CellKey(workload.name, target, workload.runtime, workload.nodes, image)
        if not any(rule.holds(asdict(key)) for rule in suite.exclude):
            cells[key] = workload
    if not cells:
        raise refuse("leaves no cell to run", hint="take a rule out", file=str(path), field="exclude")
    return Plan(suite, path, cells)


def alone(folder: SuiteFolder) -> AbstractContextManager[None]:
    """Hold the suite: two clients would measure each other."""
    make_private(folder.path)
    refusal = refuse(f"the suite {folder.name} is being run by another client", hint="wait until it has ended")
    return only(folder.path / "run.lock", refusal)


def run_suite(session: Session, plan: Plan, folder: SuiteFolder, again: bool, tell: Told) -> None:
    """Run what the newest round lacks; a round that is complete stays as it is, unless a new one is asked for."""
    number = folder.round()
    if number == 0 or (again and not list(missing(plan, folder, number))):
        number += 1
        folder.note("round", round=number, file=str(plan.path))
    for trial in _unfinished(folder, number):
        _take_up(session, folder, trial)
    due = list(missing(plan, folder, number))
    given_up: set[CellKey] = set()
    for place, (key, warmup) in enumerate(due, start=1):
        if key in given_up:
            continue
        run_id, state = run_trial(session, folder, key, plan.cells[key], number, warmup)
        tell(place, len(due), key, f"{state} {run_id}")
        if state != "succeeded":
            given_up.add(key)


def missing(plan: Plan, folder: SuiteFolder, number: int) -> Iterator[tuple[CellKey, bool]]:
    """Yield the cells whose runs are still to be done, in their order, each with whether it is a warm-up.

    A run that failed does not count. Its cell is left, and tried again the next time the suite is run.
    """
    done = [trial for trial in folder.trials() if trial.round == number and trial.state == "succeeded"]
    for warmup, times in ((True, plan.suite.warmup), (False, plan.suite.repeats)):
        counted = Counter(trial.key for trial in done if trial.warmup == warmup)
        left = {key: times - counted[key] for key in plan.cells}
        yield from ((key, warmup) for key in in_turn(left, plan.suite.order))


def in_turn(left: Mapping[CellKey, int], order: str) -> Iterator[CellKey]:
    """Yield each cell as often as it is left: all in turn, or one cell after the other."""
    if order == "blocks":
        for key, count in left.items():
            yield from [key] * count
        return
    # The cells that have most left come first, so that one that lags behind catches up before all alternate.
    for turn in range(max(left.values(), default=0), 0, -1):
        yield from (key for key, count in left.items() if count >= turn)


def run_trial(
    session: Session, folder: SuiteFolder, key: CellKey, workload: Workload, number: int, warmup: bool
) -> tuple[str, str]:
    """Run a cell once and return the run and how it ended; its id is noted first, so that the run cannot get lost."""
    run_id = session.home.new_id(workload.name)
    folder.note("asked", round=number, cell=key_json(key), warmup=warmup, run=run_id)
    try:
        run = start(session, workload, on=key.target, run_id=run_id)
    except Refusal as refusal:
        folder.note("done", run=run_id, state="refused", why=refusal.problems[0].message)
        raise
    return run_id, _end(folder, run)


def _unfinished(folder: SuiteFolder, number: int) -> Sequence[Trial]:
    return [trial for trial in folder.trials() if trial.round == number and not trial.state]


def _take_up(session: Session, folder: SuiteFolder, trial: Trial) -> None:
    """Finish what a killed client began: its run went on, or never was."""
    if session.home.has(trial.run):
        _end(folder, find(session, trial.run))
    else:
        folder.note("done", run=trial.run, state="never started")


def _end(folder: SuiteFolder, run: Run) -> str:
    record = run.wait()
    folder.note("done", run=run.id, state=record.state, values=_values(record), version=version_of(run))
    return record.state


def _values(record: Record) -> dict[str, float]:
    times = {"duration_s": record.duration_s, "time_to_train_s": record.time_to_train_s}
    return {**record.results, **{name: value for name, value in times.items() if value is not None}}


def version_of(run: Run) -> str:
    """Return what was measured: the digest of the image, or of the code where there is none."""
    asked = run.folder.asked
    image, code = asked.image or {}, asked.code or {}
    return str(image.get("digest") or image.get("name") or code.get("sha256") or "")
