"""Running a suite: cell by cell in turn, each run noted before it starts, so that a killed client repeats nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from itertools import product
from pathlib import Path
from typing import Any

from podwright.analysis.differences import is_version
from podwright.analysis.settings import settings_of
from podwright.files.locks import only
from podwright.files.whole import make_private
from podwright.launch import Run, Session, find, start, start_with_code_of
from podwright.prove.sides import values_of
from podwright.prove.suite_file import SuiteFile, load_suite
from podwright.prove.suite_folder import Cell, CellKey, SuiteFolder, Trial, suite_folder
from podwright.spec import Workload, load_workload
from podwright.spec.problems import Refusal, refuse


@dataclass(frozen=True)
class TrialEnded:
    """A run that ended: of which cell, how, and which of how many it was; 0 where nobody knows how many it takes."""

    name: str
    run: str
    state: str
    number: int = 0
    count: int = 0


Progress = Callable[[TrialEnded], None]


def ignore(ended: TrialEnded) -> None:
    """Report nothing."""


@dataclass(frozen=True)
class SuitePlan:
    """The cells of a suite with the workload of each, in the order of the file."""

    suite: SuiteFile
    path: Path
    cells: Mapping[CellKey, Workload]


@dataclass(frozen=True)
class SuiteResult:
    """What a suite's newest round comes to, and how many runs it still lacks."""

    folder: SuiteFolder
    cells: tuple[Cell, ...]
    missing: int

    def as_json(self) -> dict[str, Any]:
        """Return the document of `bench run`."""
        cells = [cell.as_json() for cell in self.cells]
        return {"suite": self.folder.name, "cells": cells, "round": self.folder.round()}


def plan_suite(path: Path) -> SuitePlan:
    """Return the cells of a suite's file; all is read, so that what is wrong is said before anything is run."""
    return lay_out(load_suite(path), path)


def lay_out(suite: SuiteFile, path: Path) -> SuitePlan:
    """Return every workload on every target, in every runtime, at every size, with every image."""
    path = path.absolute()
    folder, cells = path.parent, {}
    _check_names(suite, path)
    axes = (suite.workloads, suite.targets, suite.runtimes or ("",), suite.sizes or (0,), suite.images or ("",))
    for file, target, runtime, size, image in product(*axes):
        sets = {"runtime": runtime, "nodes": size, "image": image}
        workload = load_workload(folder / file, [f"{name}={value}" for name, value in sets.items() if value])
        key = CellKey(workload.name, target, workload.runtime, workload.nodes, image)
        if not any(rule.holds(asdict(key)) for rule in suite.exclude):
            cells[key] = workload
    if not cells:
        raise refuse("leaves no cell to run", hint="take a rule out", file=str(path), field="exclude")
    return SuitePlan(suite, path, cells)


def _check_names(suite: SuiteFile, path: Path) -> None:
    """Refuse two files whose workloads have one name."""
    seen: dict[str, str] = {}
    for file in suite.workloads:
        name = load_workload(path.parent / file).name
        if name in seen:
            message = f"{file} and {seen[name]} are both named {name}"
            raise refuse(message, hint="give one of them another name", file=str(path), field="workloads")
        seen[name] = file


def alone(folder: SuiteFolder) -> AbstractContextManager[None]:
    """Hold the suite: two clients would measure each other."""
    make_private(folder.path)
    refusal = refuse(f"the suite {folder.name} is being run by another client", hint="wait until it has ended")
    return only(folder.path / "run.lock", refusal)


def run_suite(session: Session, plan: SuitePlan, again: bool = False, progress: Progress = ignore) -> SuiteResult:
    """Run what the newest round lacks; a round that is complete stays as it is, unless a new one is asked for."""
    folder = suite_folder(session.home, plan.suite.name)
    with alone(folder):
        number = folder.round()
        if number == 0 or (again and not missing(plan, folder, number)):
            number += 1
            cells = [asdict(key) for key in plan.cells]
            folder.note("round", round=number, file=str(plan.path), repeats=plan.suite.repeats, cells=cells)
        for trial in folder.trials():
            if trial.round == number and not trial.state:
                _take_up(session, folder, trial)
        _run_missing(session, plan, folder, number, progress)
    return SuiteResult(folder, tuple(folder.cells()), len(missing(plan, folder, number)))


def suite_result(folder: SuiteFolder) -> SuiteResult:
    """Return what a suite's newest round comes to, by its journal alone: nothing is run, and no file of it is read."""
    number = folder.round()
    cells = folder.cells(number)
    done = {cell.key: len(cell.runs) for cell in cells}
    lacking = sum(max(0, due - done.get(key, 0)) for key, due in folder.planned(number).items())
    return SuiteResult(folder, tuple(cells), lacking)


def _run_missing(session: Session, plan: SuitePlan, folder: SuiteFolder, number: int, progress: Progress) -> None:
    """Run what a round lacks; a cell whose run failed is left, and tried again the next time the suite is run."""
    due = missing(plan, folder, number)
    failed: set[CellKey] = set()
    for index, (key, warmup) in enumerate(due, start=1):
        if key in failed:
            continue
        run_id, state = run_trial(session, folder, plan.cells[key], key, number, warmup)
        progress(TrialEnded(key.name, run_id, state, index, len(due)))
        if state != "succeeded":
            failed.add(key)


def missing(plan: SuitePlan, folder: SuiteFolder, number: int) -> list[tuple[CellKey, bool]]:
    """Return the cells whose runs are still to be done, in their order, each with whether it is a warm-up."""
    done = [trial for trial in folder.trials() if trial.round == number and trial.state == "succeeded"]
    due = []
    for warmup, times in ((True, plan.suite.warmup), (False, plan.suite.repeats)):
        counted = Counter(trial.key for trial in done if trial.warmup == warmup)
        left = {key: times - counted[key] for key in plan.cells}
        due += [(key, warmup) for key in in_turn(left, plan.suite.order)]
    return due


def in_turn(left: Mapping[CellKey, int], order: str) -> Iterator[CellKey]:
    """Yield each cell as often as it is left: all in turn, or one cell after the other."""
    if order == "blocks":
        for key, count in left.items():
            yield from [key] * count
        return
    # The cells that have most left come first, so that one that lags behind catches up before all alternate. Each turn
    # goes the other way (ABBA), so that what drifts favours none.
    most = max(left.values(), default=0)
    for turn in range(most):
        due = [key for key, count in left.items() if count >= most - turn]
        yield from reversed(due) if turn % 2 else due


def run_trial(
    session: Session, folder: SuiteFolder, workload: Workload, key: CellKey, number: int, warmup: bool = False
) -> tuple[str, str]:
    """Run a cell once and return the run and how it ended; its id is noted first, so that the run cannot get lost."""
    run_id, earlier = session.home.new_id(workload.name), _code_of_round(session, folder, key.workload, number)
    folder.note("asked", round=number, cell=asdict(key), warmup=warmup, run=run_id)
    try:
        if earlier is None:
            run = start(session, workload, on=key.target, run_id=run_id)
        else:
            run = start_with_code_of(session, earlier, workload, key.target, run_id)
    except Refusal as refusal:
        folder.note("done", run=run_id, state="refused", why=refusal.problems[0].message)
        raise
    return run_id, _end(folder, run)


def _take_up(session: Session, folder: SuiteFolder, trial: Trial) -> None:
    """Finish what a killed client began: its run went on, or never was."""
    if session.home.has(trial.run):
        _end(folder, find(session, trial.run))
    else:
        folder.note("done", run=trial.run, state="never started")


def _code_of_round(session: Session, folder: SuiteFolder, workload: str, number: int) -> str | None:
    """Return a run whose code this round is about: the first one's, so that an edit meanwhile waits for the next."""
    for trial in folder.trials():
        if trial.round == number and trial.key.workload == workload and session.home.has(trial.run):
            return trial.run
    return None


def _end(folder: SuiteFolder, run: Run) -> str:
    """Wait for a run, and note what came of it and what was measured: the image's digest, or the code's without one."""
    record, asked = run.wait(), run.folder.asked
    image, code = asked.image or {}, asked.code or {}
    version = str(image.get("digest") or image.get("name") or code.get("sha256") or "")
    reached = record.goal is None or record.time_to_train_s is not None
    settings = settings_of(asked, run.folder.events())
    told = {
        "values": values_of(record),
        "version": version,
        "settings": [[*key, value] for key, value in settings.items() if is_version(*key)],
        "commit": code.get("commit"),
        "folder": code.get("folder"),
        "reached": reached,
    }
    folder.note("done", run=run.id, state=record.state, **told)
    return record.state
