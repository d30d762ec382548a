"""A session: one user's work with Podwright, with the home and the engines behind its targets.

A command line makes one for each command, a Python program one for all it does, a console keeps one for weeks. So the
engines it keeps are bounded, may be asked from several threads, and let go of their connections at the end.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from podwright.engines import ENGINES, SCHEDULERS
from podwright.engines.site import SiteLost
from podwright.files.untrusted import read_untrusted
from podwright.launch import pods
from podwright.launch.exchange.unfinished import UnfinishedSyncs
from podwright.runs import Home, RunFolder
from podwright.runs.folder import POD_FILE
from podwright.spec.problems import Refusal, refuse

if TYPE_CHECKING:
    from podwright.engines.base import Engine
    from podwright.spec import Pod

MAX_ENGINES = 32
MAX_RUNS = 4096
"""How many runs' engines are remembered without reading the run's copy of its pod again."""

Key = tuple[bytes, str | None]
"""What makes two engines the same: the pod's file and the scheduler, or the name of an engine without a pod."""


class SessionClock(Protocol):
    """How time passes for a session: as in the module `time`, which is the default."""

    def time(self) -> float: ...

    def monotonic(self) -> float: ...

    def sleep(self, seconds: float, /) -> None: ...


class ReportWriter(Protocol):
    """Who writes reports."""

    def write(self, runs: Sequence[Any]) -> Path:
        """Write the report of a run, or the comparison of several, and return where it is."""


@dataclass(frozen=True)
class _OpenEngine:
    engine: Engine
    lock: threading.RLock = field(default_factory=threading.RLock)


class Session:
    """The home, and one engine for each target: what it asked its cluster a moment ago answers for all runs there."""

    reports: ClassVar[ReportWriter | None] = None
    """`podwright` hands it in, as reports stand above this band."""

    def __init__(
        self,
        home: Home,
        engines: Mapping[str, Callable[[], Engine]] = ENGINES,
        schedulers: Mapping[str, Callable[[Pod, str | None], Engine]] = SCHEDULERS,
        clock: SessionClock = time,
    ) -> None:
        self.home, self.clock = home, clock
        self.syncs = UnfinishedSyncs(home.path, clock.time)
        self._engines, self._schedulers = engines, schedulers
        self._open: OrderedDict[Key, _OpenEngine] = OrderedDict()
        self._of_run: OrderedDict[Path, Key] = OrderedDict()
        self._lock = threading.RLock()

    @classmethod
    def open(cls, path: Path | None = None) -> Session:
        """Open a session on the home at this path, or on the user's own."""
        return cls(Home.open(path))

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of all connections. Runs go on; a session that is used again opens what it needs."""
        with self._lock:
            for opened in self._open.values():
                opened.engine.close()
            self._open.clear()
            self._of_run.clear()

    # engines

    def target(self, name: str) -> tuple[Engine, Pod | None]:
        """Return the engine of the target that a user names, and its pod."""
        if name in self._engines:
            return self._engine((name.encode(), None), self._engines[name]), None
        pod_name, _, scheduler = name.partition(":")
        try:
            pod = pods.find(self.home, pod_name)
        except Refusal as refusal:
            if pod_name.endswith((".yaml", ".yml")):
                raise
            targets = ", ".join(["local", *pods.known(self.home)])
            raise refuse(f"there is no target {name!r}", hint=f"targets here: {targets}", field="--on") from refusal
        return self.engine_for(pod, scheduler or None), pod

    def engine_for(self, pod: Pod, scheduler: str | None) -> Engine:
        """Return the engine of one scheduler of a pod; without a name of the only one."""
        kind = pod.scheduler(scheduler).kind
        if kind not in self._schedulers:
            raise refuse(f"the pod {pod.name} runs {kind}, and Podwright has no engine for it", field="--on")
        return self._engine((pod.source, scheduler), lambda: self._schedulers[kind](pod, scheduler))

    def engine_of(self, folder: RunFolder) -> Engine:
        """Return the engine a run went to, from its own copy of the pod: the file may have changed or gone since.

        Of a run that came in a file nothing is anywhere but here.
        """
        target = "local" if folder.asked.is_apart else folder.asked.target
        if target in self._engines:
            return self._engine((target.encode(), None), self._engines[target])
        # The points of a matrix have no copy of the pod: their parent's is theirs.
        job_path = folder.job_path
        with self._lock:
            known = self._open.get(self._of_run.get(job_path, (b"", None)))
            if known:
                return known.engine
            scheduler = target.rpartition(":")[2] if ":" in target else None
            return self._read(job_path, scheduler)

    def _read(self, job_path: Path, scheduler: str | None) -> Engine:
        from podwright.spec import load_pod

        path = job_path / POD_FILE
        try:
            source = read_untrusted(path.parent, path.name)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise SiteLost(job_path, reason, POD_FILE.as_posix()) from None
        self._of_run[job_path] = (source, scheduler)
        if len(self._of_run) > MAX_RUNS:
            self._of_run.popitem(last=False)
        known = self._open.get((source, scheduler))
        if known:
            return known.engine
        try:
            pod = load_pod(path)
            pod.scheduler(scheduler)
        except Refusal as refusal:
            raise SiteLost(job_path, refusal.problems[0].message, POD_FILE.as_posix()) from None
        return self.engine_for(pod, scheduler)

    def _engine(self, key: Key, make: Callable[[], Engine]) -> Engine:
        with self._lock:
            if key not in self._open:
                self._open[key] = _OpenEngine(make())
            self._open.move_to_end(key)
            if len(self._open) > MAX_ENGINES:
                self._open.popitem(last=False)[1].engine.close()
            return self._open[key].engine

    @contextmanager
    def using(self, engine: Engine) -> Iterator[Any]:
        """Let one thread at a time use an engine; others of this session wait, those of other targets do not."""
        with self._lock:
            locks = [opened.lock for opened in self._open.values() if opened.engine is engine]
        if not locks:  # it was closed, or handed in from elsewhere
            yield engine
            return
        with locks[0]:
            yield engine
