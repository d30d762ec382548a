"""The same programs on threads and on runs: the same values, errors, states and order."""

from __future__ import annotations

import concurrent.futures
import functools
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_EXCEPTION, CancelledError, Future, ThreadPoolExecutor
from concurrent.futures import Executor as AnyExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import podwright
from podwright.runs import Home

Make = Callable[[int], AnyExecutor]
Program = Callable[[Make, Path], Any]
PATIENCE_S = 300


class Odd(Exception):
    """An error of a program's own, with more than a text."""

    def __init__(self, number: int, text: str) -> None:
        super().__init__(number, text)
        self.number = number


def square(number: int) -> int:
    return number * number


def add(first: int, second: int = 0, *, third: int = 0) -> int:
    return first + 10 * second + 100 * third


def fail(error: BaseException) -> None:
    raise error


def fail_at(number: int, bad: int) -> int:
    if number == bad:
        raise ValueError(f"bad {number}")
    return number


def held(path: str) -> str:
    """Wait until somebody makes a file."""
    while not Path(path).exists():
        time.sleep(0.02)
    return "let go"


def note(path: str, text: str) -> str:
    with Path(path).open("a") as file:
        file.write(text)
    return text


def deep(number: int) -> int:
    return deep(number + 1)


def error_of(future: Future[Any]) -> tuple[str, tuple[Any, ...]]:
    error = future.exception(PATIENCE_S)
    assert error is not None
    return type(error).__name__, error.args


def said(call: Callable[[], Any]) -> tuple[str, str]:
    try:
        return "value", repr(call())
    except BaseException as error:  # CancelledError is none of Exception's
        return type(error).__name__, str(error)


def states_of(future: Future[Any]) -> tuple[bool, bool, bool]:
    return future.running(), future.done(), future.cancelled()


def begun(future: Future[Any]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not future.running():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def one(function: Callable[..., Any], *args: Any, **keywords: Any) -> Program:
    """Return the program that calls a function, and tells its value or its error."""

    def program(make: Make, folder: Path) -> Any:
        with make(2) as pool:
            future = pool.submit(function, *args, **keywords)
            return said(lambda: future.result(PATIENCE_S)), states_of(future)

    return program


def failing(error: BaseException) -> Program:
    def program(make: Make, folder: Path) -> Any:
        with make(2) as pool:
            future = pool.submit(fail, error)
            return error_of(future), vars(future.exception()), states_of(future)

    return program


def mapped(make: Make, folder: Path) -> Any:
    with make(2) as pool:
        return list(pool.map(square, [3, 1, 2]))


def mapped_of_two(make: Make, folder: Path) -> Any:
    with make(2) as pool:
        return list(pool.map(add, [1, 2], [3, 4, 5]))


def mapped_nothing(make: Make, folder: Path) -> Any:
    with make(2) as pool:
        return list(pool.map(square, []))


def mapped_until_one_fails(make: Make, folder: Path) -> Any:
    come = []
    with make(1) as pool:
        values = pool.map(fail_at, [0, 1, 2], [1, 1, 1])
        end = said(lambda: [come.append(value) for value in values])
    return come, end


def mapped_too_slowly(make: Make, folder: Path) -> Any:
    with make(1) as pool:
        values = pool.map(held, [str(folder / "go")], timeout=0.05)
        end = said(lambda: list(values))
        (folder / "go").touch()
    return end[0]


def as_they_come(make: Make, folder: Path) -> Any:
    with make(2) as pool:
        slow = pool.submit(held, str(folder / "go"))
        quick = pool.submit(square, 4)
        order = []
        for future in concurrent.futures.as_completed([slow, quick], PATIENCE_S):
            order.append(future.result())
            (folder / "go").touch()
    return order


def waited_for_an_error(make: Make, folder: Path) -> Any:
    with make(2) as pool:
        slow = pool.submit(held, str(folder / "go"))
        bad = pool.submit(fail, KeyError("x"))
        done, left = concurrent.futures.wait([slow, bad], PATIENCE_S, FIRST_EXCEPTION)
        (folder / "go").touch()
    return bad in done, slow in left, slow.result()


def waited_for_all(make: Make, folder: Path) -> Any:
    with make(2) as pool:
        futures = [pool.submit(square, number) for number in range(3)]
        done, left = concurrent.futures.wait(futures, PATIENCE_S)
    return len(done), len(left), [future.result() for future in futures]


def called_back(make: Make, folder: Path) -> Any:
    told: list[Any] = []
    with make(1) as pool:
        first = pool.submit(square, 5)
        first.add_done_callback(lambda future: told.append(("first", future.result())))
        first.add_done_callback(lambda future: told.append(("again", future is first)))
        second = pool.submit(square, 6)
        second.add_done_callback(lambda future: told.append(("second", future.result())))
    second.add_done_callback(lambda future: told.append(("late", future.done())))
    return told


def cancelled_before_its_turn(make: Make, folder: Path) -> Any:
    with make(1) as pool:
        first, second = pool.submit(held, str(folder / "go")), pool.submit(square, 2)
        begun(first)
        before = states_of(second)
        answers = second.cancel(), second.cancel(), states_of(second)
        (folder / "go").touch()
    return before, answers, said(second.result)[0], first.result()


def not_cancelled_at_work(make: Make, folder: Path) -> Any:
    with make(1) as pool:
        future = pool.submit(held, str(folder / "go"))
        begun(future)
        answers = states_of(future), future.cancel()
        (folder / "go").touch()
    return answers, future.result(), states_of(future)


def shut_down_at_once(make: Make, folder: Path) -> Any:
    pool = make(1)
    futures = [pool.submit(held, str(folder / "go")), pool.submit(square, 1), pool.submit(square, 2)]
    begun(futures[0])
    pool.shutdown(wait=False, cancel_futures=True)
    late = said(lambda: pool.submit(square, 3))
    (folder / "go").touch()
    pool.shutdown()
    return late, futures[0].result(), [future.cancelled() for future in futures]


def shut_down_in_order(make: Make, folder: Path) -> Any:
    pool = make(1)
    futures = [pool.submit(square, number) for number in range(2)]
    pool.shutdown()
    return [states_of(future) for future in futures], said(lambda: pool.submit(square, 3))


def in_their_order(make: Make, folder: Path) -> Any:
    with make(1) as pool:
        for text in "abc":
            pool.submit(note, str(folder / "log"), text)
    return (folder / "log").read_text()


def not_done_in_time(make: Make, folder: Path) -> Any:
    with make(1) as pool:
        future = pool.submit(held, str(folder / "go"))
        late = said(lambda: future.result(0.01))[0], said(lambda: future.exception(0.01))[0]
        (folder / "go").touch()
        return late, future.result(PATIENCE_S), future.exception()


def at_the_same_time(make: Make, folder: Path) -> Any:
    """The one makes what the other waits for."""
    with make(2) as pool:
        futures = pool.submit(held, str(folder / "go")), pool.submit(note, str(folder / "go"), "x")
        return [future.result(PATIENCE_S) for future in futures]


def of_two_pools(make: Make, folder: Path) -> Any:
    with make(1) as one_pool, make(1) as other:
        return [one_pool.submit(square, 2).result(), other.submit(square, 3).result()]


def of_two_threads(make: Make, folder: Path) -> Any:
    values: dict[int, int] = {}
    with make(2) as pool:

        def ask(number: int) -> None:
            values[number] = pool.submit(square, number).result(PATIENCE_S)

        threads = [threading.Thread(target=ask, args=(number,)) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    return values


def no_worker(make: Make, folder: Path) -> Any:
    return said(lambda: make(0))


def never_used(make: Make, folder: Path) -> Any:
    pool = make(1)
    pool.shutdown()
    return said(lambda: pool.submit(square, 1))


def asked_twice(make: Make, folder: Path) -> Any:
    with make(1) as pool:
        future = pool.submit(square, 7)
        return future.result(PATIENCE_S), future.result(), future.exception(), states_of(future)


def noted(error: Exception) -> Exception:
    error.add_note("seen on a Tuesday")
    return error


QUICK: dict[str, Program] = {
    "value": one(square, 3),
    "error": failing(ValueError("no data")),
    "map": mapped,
    "map until one fails": mapped_until_one_fails,
    "as they come": as_they_come,
    "called back": called_back,
    "cancelled before its turn": cancelled_before_its_turn,
    "not cancelled at work": not_cancelled_at_work,
    "shut down at once": shut_down_at_once,
    "in their order": in_their_order,
    "no worker": no_worker,
    "never used": never_used,
}
BY_NIGHT: dict[str, Program] = {
    "nothing": one(print, "x"),
    "keywords": one(add, 1, second=2, third=3),
    "partial": one(functools.partial(add, second=4), 1),
    "lambda": one(lambda number: number + 1, 4),
    "closure": one((lambda text: lambda: text * 2)("ab")),
    "dict": one(dict, a=[1, 2], b={"c": (3, 4)}),
    "large": one(bytes, 1 << 20),
    "letters": one(str.upper, "straße ∞ \N{SNOWMAN}"),
    "returned error": one(ValueError, "not raised"),
    "returned set": one(set, [3, 1, 2]),
    "path": one(Path, "a/b"),
    "numbers": one(complex, 1, 2),
    "error of its own": failing(Odd(7, "odd")),
    "key error": failing(KeyError("gone")),
    "system error": failing(FileNotFoundError(2, "No such file", "x.txt")),
    "noted error": failing(noted(RuntimeError("late"))),
    "error without words": failing(LookupError()),
    "too deep": lambda make, folder: one(deep, 0)(make, folder)[0][0],
    "wrong arguments": one(square, 1, 2),
    "not defined there": one(eval, "undefined_name"),
    "map of two": mapped_of_two,
    "map nothing": mapped_nothing,
    "map too slowly": mapped_too_slowly,
    "waited for an error": waited_for_an_error,
    "waited for all": waited_for_all,
    "shut down in order": shut_down_in_order,
    "not done in time": not_done_in_time,
    "at the same time": at_the_same_time,
    "of two pools": of_two_pools,
    "of two threads": of_two_threads,
    "asked twice": asked_twice,
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("PODWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    yield tmp_path / "home"
    for run in podwright.list_runs():
        run.cancel()
        assert run.wait(PATIENCE_S).is_final


def check(program: Program, tmp_path: Path) -> None:
    outcomes = []
    for name, make in (("threads", ThreadPoolExecutor), ("runs", _runs)):
        folder = tmp_path / name
        folder.mkdir()
        outcomes.append(program(make, folder))
    assert outcomes[0] == outcomes[1]


def _runs(max_workers: int) -> podwright.Executor:
    return podwright.Executor(max_workers=max_workers)


@pytest.mark.parametrize("name", QUICK)
def test_a_program_does_the_same_on_threads_and_on_runs(name: str, tmp_path: Path) -> None:
    check(QUICK[name], tmp_path)


@pytest.mark.nightly
@pytest.mark.parametrize("name", BY_NIGHT)
def test_by_night_a_program_does_the_same_on_threads_and_on_runs(name: str, tmp_path: Path) -> None:
    check(BY_NIGHT[name], tmp_path)


def test_there_are_forty_programs() -> None:
    assert len(QUICK) + len(BY_NIGHT) >= 40


def fail_at_first(path: str) -> str:
    """Fail as a disk does, until it was tried twice."""
    with Path(path).open("a") as file:
        file.write("x")
    if Path(path).stat().st_size < 3:
        raise OSError("disk went away")
    return "third time"


def test_a_call_is_tried_again_after_chosen_errors_alone(tmp_path: Path) -> None:
    retry = podwright.CallRetry((OSError,), 2)
    with podwright.Executor(max_workers=2, retry=retry) as pool:
        flaky = pool.submit(fail_at_first, str(tmp_path / "tries"))
        other = pool.submit(fail, ValueError("no"))
        assert flaky.result(PATIENCE_S) == "third time"
        assert error_of(other) == ("ValueError", ("no",))
    assert (len(flaky.runs), len(other.runs)) == (3, 1)


def test_the_error_of_a_stranger_is_known_by_its_name() -> None:
    failed = podwright.CallFailed("x-1", 0, "Traceback ...\nFileNotFoundError: gone\n")
    assert podwright.CallRetry((FileNotFoundError,), 1).is_due(failed, 1)
    assert not podwright.CallRetry((FileNotFoundError,), 1).is_due(failed, 2)
    assert not podwright.CallRetry((ValueError,), 1).is_due(failed, 1)


def test_a_future_among_the_arguments_is_waited_for(tmp_path: Path) -> None:
    with podwright.Executor(max_workers=2) as pool:
        slow = pool.submit(held, str(tmp_path / "go"))
        after = pool.submit(str.upper, slow)
        bad = pool.submit(fail, KeyError("x"))
        never = pool.submit(repr, bad)
        assert error_of(never) == ("KeyError", ("x",))
        assert not after.done()
        (tmp_path / "go").touch()
        assert after.result(PATIENCE_S) == "LET GO"
    assert never.runs == []


def test_what_cannot_be_started_is_said_by_its_future() -> None:
    with podwright.Executor(on="nowhere") as pool:
        error = pool.submit(square, 1).exception(PATIENCE_S)
    assert isinstance(error, podwright.Refusal)
    assert "there is no target 'nowhere'" in str(error)


def test_a_waiting_call_ends_with_its_dependency() -> None:
    gone: Future[Any] = Future()
    gone.cancel()
    gone.set_running_or_notify_cancel()
    with podwright.Executor() as pool:
        assert isinstance(pool.submit(square, gone).exception(PATIENCE_S), CancelledError)


class Failing(podwright.Session):
    """A session that can be made to fail at every question."""

    is_broken = False

    @contextmanager
    def using(self, engine: Any) -> Iterator[Any]:
        if self.is_broken:
            raise RuntimeError("no descriptors left")
        with super().using(engine) as one:
            yield one


def test_nobody_waits_for_ever_where_runs_cannot_be_watched(tmp_path: Path) -> None:
    session = Failing(Home.open())
    pool = podwright.Executor(max_workers=1, session=session)
    first, second = pool.submit(held, str(tmp_path / "go")), pool.submit(square, 1)
    deadline = time.monotonic() + PATIENCE_S
    while not first.runs:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    session.is_broken = True
    assert error_of(first) == error_of(second) == ("RuntimeError", ("no descriptors left",))
    assert said(lambda: pool.submit(square, 2))[0] == "RuntimeError"
    pool.shutdown()
    session.is_broken = False
    (tmp_path / "go").touch()
    assert first.runs[0].wait(PATIENCE_S).state == "succeeded"
