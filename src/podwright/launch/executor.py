"""Futures whose work is runs: `concurrent.futures` on this machine, on Slurm and on Kubernetes."""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from concurrent.futures import Executor as BaseExecutor
from dataclasses import dataclass, field
from typing import Any

from podwright.launch.call_values import CallFailed
from podwright.launch.calls import start_call
from podwright.launch.run import Run
from podwright.launch.session import Session
from podwright.launch.value_watch import ValueCame, ValueWatch

MAX_AT_ONCE = 1000
"""Runs of one executor that are at work or wait on a cluster, unless it is told otherwise."""


class RunFuture(Future[Any]):
    """What a function will return; `runs` are those that were started for it, the last one counts."""

    def __init__(self) -> None:
        super().__init__()
        self.runs: list[Run] = []

    @property
    def run(self) -> Run | None:
        """Return the run that is at work on it, or was last."""
        return self.runs[-1] if self.runs else None


@dataclass(frozen=True)
class CallRetry:
    """How often a function is called again in a run of its own, and after which exceptions."""

    on: tuple[type[BaseException], ...] = ()
    times: int = 0

    def is_due(self, error: BaseException, tried: int) -> bool:
        """Return whether to try again after so many runs.

        Of a run that is not trusted its error is known by the last line of its text alone.
        """
        if tried > self.times:
            return False
        if not isinstance(error, CallFailed):
            return isinstance(error, self.on)
        last = (error.remote.strip().splitlines() or [""])[-1].partition(":")[0]
        names = {f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.") for kind in self.on}
        return isinstance(error, self.on) or last in names


@dataclass(frozen=True)
class Task:
    """A call that was asked for."""

    future: RunFuture
    function: Callable[..., Any]
    args: tuple[Any, ...]
    keywords: dict[str, Any] = field(default_factory=dict)

    def dependencies(self) -> list[Future[Any]]:
        """Return the futures among its arguments."""
        return [value for value in (*self.args, *self.keywords.values()) if isinstance(value, Future)]

    def given(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return the function with its keywords, and its arguments, with values in place of futures."""
        from functools import partial

        keywords = {name: _value(value) for name, value in self.keywords.items()}
        function = partial(self.function, **keywords) if keywords else self.function
        return function, tuple(map(_value, self.args))


def _value(given: Any) -> Any:
    return given.result() if isinstance(given, Future) else given


class Executor(BaseExecutor):
    """Calls functions in runs of their own, as any executor of `concurrent.futures` does.

    A future among the arguments is waited for, and its value stands in its place. `fields` are those of a workload.
    """

    def __init__(
        self,
        on: str = "local",
        max_workers: int | None = None,
        retry: CallRetry = CallRetry(),  # noqa: B008 - it is frozen
        trust: bool = False,
        session: Session | None = None,
        **fields: Any,
    ) -> None:
        if max_workers is not None and max_workers < 1:
            raise ValueError("max_workers must be greater than 0")
        self._session, self._owns_session = session or Session.open(), session is None
        self._on, self._retry, self._trust, self._fields = on, retry, trust, fields
        self._most = max_workers or ((os.cpu_count() or 1) if on == "local" else MAX_AT_ONCE)
        self._waiting: deque[Task] = deque()
        self._at_work: dict[str, Task] = {}
        self._changed = threading.Condition()
        self._is_closed = False
        self._watcher: threading.Thread | None = None

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> RunFuture:
        """Have a function called in a run; its turn comes after those that were asked for before."""
        with self._changed:
            if self._is_closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            future = RunFuture()
            self._waiting.append(Task(future, fn, args, kwargs))
            if self._watcher is None:
                self._watcher = threading.Thread(target=self._work, name="podwright-executor", daemon=True)
                self._watcher.start()
            self._changed.notify()
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls; wait for those that were asked for, or cancel what has not begun."""
        with self._changed:
            self._is_closed = True
            waiting = list(self._waiting) if cancel_futures else []
            self._changed.notify()
        for task in waiting:
            task.future.cancel()
        if wait and self._watcher is not None:
            self._watcher.join()

    # what the watcher's thread does

    def _work(self) -> None:
        try:
            self._watch(ValueWatch(self._session))
        except BaseException as error:
            self._give_up(error)
        if self._owns_session:
            self._session.close()

    def _give_up(self, error: BaseException) -> None:
        """Let nobody wait for ever where runs cannot be watched any more; those that were started go on."""
        with self._changed:
            self._is_closed = True
            waiting, at_work = list(self._waiting), list(self._at_work.values())
            self._waiting.clear()
            self._at_work.clear()
        left = [task for task in waiting if task.future.set_running_or_notify_cancel()]
        for task in (*at_work, *left):
            task.future.set_exception(error)

    def _watch(self, watch: ValueWatch) -> None:
        while True:
            with self._changed:
                while not (self._waiting or self._at_work or self._is_closed):
                    self._changed.wait()
                if not (self._waiting or self._at_work):
                    return
            started = self._start_what_may(watch)
            for come in watch.look():
                self._settle(come, watch)
            with self._changed:
                if not started and (self._at_work or self._waiting):
                    self._changed.wait(watch.pause_s)

    def _start_what_may(self, watch: ValueWatch) -> int:
        """Start calls in their order as far as there is room; one that waits for another lets later ones pass."""
        started = 0
        with self._changed:
            waiting = list(self._waiting)
        for task in waiting:
            if task.future.cancelled():
                self._leave(task)
                task.future.set_running_or_notify_cancel()
                continue
            if len(self._at_work) >= self._most:
                break
            if all(needed.done() for needed in task.dependencies()):
                self._leave(task)
                if task.future.set_running_or_notify_cancel():
                    self._start(task, watch)
                    started += 1
        return started

    def _leave(self, task: Task) -> None:
        with self._changed:
            self._waiting.remove(task)

    def _start(self, task: Task, watch: ValueWatch) -> None:
        try:
            function, args = task.given()
            run = start_call(self._session, function, args, self._on, self._fields)
        except (Exception, CancelledError) as error:
            task.future.set_exception(error)
        else:
            task.future.runs.append(run)
            self._at_work[run.id] = task
            watch.add(run)

    def _settle(self, come: ValueCame, watch: ValueWatch) -> None:
        task = self._at_work.pop(come.run.id)
        try:
            value = come.value(self._trust)
        except Exception as failed:
            error = _own_error(failed)
            if self._retry.is_due(error, len(task.future.runs)):
                self._start(task, watch)
            else:
                task.future.set_exception(error)
        else:
            task.future.set_result(value)


def _own_error(failed: Exception) -> BaseException:
    """Return the function's own error where it could travel, with what is known of its run as the cause."""
    own = failed.__cause__
    if isinstance(failed, CallFailed) and isinstance(own, BaseException):
        failed.__cause__ = None
        own.__cause__ = failed
        return own
    return failed
