"""How far runs are, as their pilots say it in small files: no kernel and no scheduler knows that.

Everybody on the host may write there. A file is of its owner's runs alone, and of no run that only others hold GPUs of:
whoever forges a name speaks of nobody but himself.
"""

from __future__ import annotations

import json
import os
import stat
import time
from collections import deque
from contextlib import suppress
from typing import Any, Callable, Deque, Dict, Iterator, List, NamedTuple, Optional, Tuple

from ...pilot.sensors.proc import Scope
from ...pilot.system.plain_files import names_in
from ..page import Labels, MetricSample
from .jobs import run_name, user_name

WORDS = "/run/podwright/words"
_MAX_BYTES, _MAX_FILES, _OPEN = 65536, 1000, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_OLD_S = 60.0
"""A pilot writes every few seconds: one that has not for so long is gone."""
_REMEMBERED = 20
SPENT = "spent."
CLASSES = ("productive", "compile", "restore", "data_wait", "checkpoint_save", "evaluation")
WORK = {
    "work_s": "work_seconds",
    "work_slowest_s": "work_slowest_seconds",
    "work_slowest_rank": "work_slowest_rank",
}
"""What is told of the ranks' own work in a step, and the ends of the names of its series."""
HoldsIt = Callable[[str], List[str]]


class Said(NamedTuple):
    """What one file says: `at` is when it was written, by this host's clock."""

    user: str
    run: str
    step: Optional[float]
    checkpoint_at: Optional[float]
    at: float
    time: Dict[str, float] = {}  # noqa: RUF012 - nobody changes it
    """What its program says of its own time, by the names that it gives it."""


class Course:
    """What was heard of one run: when its step changed last, and how often it does."""

    def __init__(self) -> None:
        self.steps: Deque[Tuple[float, float]] = deque(maxlen=_REMEMBERED)
        self.checkpoints: Deque[float] = deque(maxlen=_REMEMBERED)
        self.time: Dict[str, float] = {}

    def hear(self, said: Said) -> None:
        """Take what is new of it."""
        if said.step is not None and (not self.steps or said.step != self.steps[-1][0]):
            self.steps.append((said.step, said.at))
        self.time.update(said.time)
        newest = said.checkpoint_at
        if newest is not None and (not self.checkpoints or newest > self.checkpoints[-1]):
            self.checkpoints.append(newest)

    def told(self) -> Iterator[Tuple[str, float]]:
        """Yield what is known, by the ends of the names of its series."""
        if self.steps:
            step, at = self.steps[-1]
            yield "step", step
            yield "step_timestamp_seconds", at
        if len(self.steps) > 1:
            (first, began), (last, ended) = self.steps[0], self.steps[-1]
            yield "report_interval_seconds", (ended - began) / (len(self.steps) - 1)
            # A program that counts from zero again has no steps in between.
            if last > first:
                yield "step_seconds", (ended - began) / (last - first)
        if self.checkpoints:
            yield "checkpoint_timestamp_seconds", self.checkpoints[-1]
        if len(self.checkpoints) > 1:
            taken = self.checkpoints[-1] - self.checkpoints[0]
            yield "checkpoint_interval_seconds", taken / (len(self.checkpoints) - 1)
        for name, ending in WORK.items():
            if name in self.time:
                yield ending, self.time[name]

    def spent(self) -> Iterator[Tuple[str, float]]:
        """Yield how many seconds the program says it spent on each class."""
        for name, seconds in sorted(self.time.items()):
            if name.startswith(SPENT):
                yield name[len(SPENT) :], seconds


class RunWords:
    """The words of all pilots of this host; `users_of` says who holds GPUs under a run's name."""

    def __init__(self, scope: Scope, users_of: HoldsIt) -> None:
        self._folder, self._users_of = scope.path(WORDS), users_of
        self._courses: Dict[Tuple[str, str], Course] = {}

    def open(self) -> None:
        """Make the folder, for everybody to write to and for nobody to take another's file away."""
        with suppress(OSError):
            os.makedirs(self._folder, exist_ok=True)
            os.chmod(self._folder, 0o1777)

    def read(self, now: float) -> List[MetricSample]:
        """Return what is known of each run that still speaks."""
        courses: Dict[Tuple[str, str], Course] = {}
        for said in self._words():
            key = (said.run, said.user)
            course = courses.setdefault(key, self._courses.get(key) or Course())
            course.hear(said)
        self._courses = courses
        samples = []
        for (run, user), course in sorted(courses.items()):
            labels: Labels = (("run", run), ("user", user))
            samples += [MetricSample("podwright_run_" + name, labels, value) for name, value in course.told()]
            for name, seconds in course.spent():
                labels_of_class = (*labels, ("class", name))
                samples.append(MetricSample("podwright_run_spent_seconds_total", labels_of_class, seconds))
        return samples

    def _words(self) -> Iterator[Said]:
        for name in sorted(names_in(self._folder))[:_MAX_FILES]:
            if not name.endswith(".json"):
                continue
            said = word_of(os.path.join(self._folder, name), time.time())
            if said is None:
                continue
            holders = self._users_of(said.run)
            # Whoever holds GPUs under a name that is another's must not silence the other.
            if not holders or said.user in holders:
                yield said


def word_of(path: str, now: float) -> Optional[Said]:
    """Return what a file says; None for one that is too old, too large, no plain file, or no word."""
    try:
        file = os.open(path, _OPEN)
    except OSError:
        return None
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or now - status.st_mtime > _OLD_S:
            return None
        document = json.loads(os.read(file, _MAX_BYTES).decode("utf-8", "replace"))
        return _said(document, user_name(status.st_uid), status.st_mtime)
    except (OSError, ValueError, RecursionError):
        return None
    finally:
        os.close(file)


def _said(document: Any, user: str, at: float) -> Optional[Said]:
    if not isinstance(document, dict):
        return None
    run, steps = run_name(str(document.get("run", ""))), document.get("steps")
    values = [_number(value) for value in steps.values()] if isinstance(steps, dict) else []
    known = [value for value in values if value is not None]
    checkpoint = _number(document.get("checkpoint_at"))
    return Said(user, run, max(known, default=None), checkpoint, at, _time_of(document)) if run else None


def _time_of(document: Dict[str, Any]) -> Dict[str, float]:
    """Return what is said of time under the names that have a place on the page, and no others."""
    told = document.get("time")
    if not isinstance(told, dict):
        return {}
    names = [*WORK, *(SPENT + name for name in CLASSES)]
    values = {name: _number(told.get(name)) for name in names}
    return {name: value for name, value in values.items() if value is not None and value >= 0}


def _number(value: Any) -> Optional[float]:
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e15
    return float(value) if is_number else None
